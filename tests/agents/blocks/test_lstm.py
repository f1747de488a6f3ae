"""The LSTM against tf_keras's cell, and its resets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from agents.blocks.lstm import LSTMState, ResettingLSTM

T, B, FEATURES, UNITS = 7, 3, 5, 4


def random(*shape: int, seed: int = 0) -> tf.Tensor:
    return tf.random.stateless_normal(shape, seed=[seed, 0])


def inputs() -> tuple[tf.Tensor, np.ndarray, LSTMState]:
    is_first = np.random.default_rng(0).random((T, B)) < 0.3
    return random(T, B, FEATURES), is_first, LSTMState(random(B, UNITS), random(B, UNITS, seed=1))


def keras_cell(lstm: ResettingLSTM) -> tf_keras.layers.LSTMCell:
    """With the same weights."""
    cell = tf_keras.layers.LSTMCell(UNITS)
    cell.build([None, FEATURES])
    cell.set_weights(lstm.get_weights())
    return cell


def run_keras_cell(
    cell: tf_keras.layers.LSTMCell, x: tf.Tensor, is_first: np.ndarray, state: LSTMState
) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    states, outputs = list(state), []
    for t in range(T):
        states = [tf.where(is_first[t][:, None], 0.0, part) for part in states]
        output, states = cell(x[t], states)
        outputs.append(output)
    return outputs, states


def test_equals_keras_cell_with_states_zeroed_by_hand() -> None:
    x, is_first, state = inputs()
    lstm = ResettingLSTM(UNITS)
    outputs, last = lstm(x, is_first, state)
    expected, states = run_keras_cell(keras_cell(lstm), x, is_first, state)
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(last, states, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("through", ["outputs", "last state", "both"])
def test_gradients_equal_those_that_keras_cell_gets_automatically(through: str) -> None:
    x, is_first, state = inputs()
    is_first[:, 0] = False  # one way from the first state to the last
    lstm = ResettingLSTM(UNITS)
    lstm.build(x.shape)
    cell = keras_cell(lstm)
    weights = [random(T, B, UNITS, seed=2), random(B, UNITS, seed=3), random(B, UNITS, seed=4)]

    def loss(outputs: tf.Tensor, states: Any) -> tf.Tensor:
        results = [tf.stack(outputs), *states]
        parts = [tf.reduce_sum(a * tf.sin(b)) for a, b in zip(weights, results, strict=True)]
        return sum({"outputs": parts[:1], "last state": parts[1:], "both": parts}[through])

    def gradients(run: Callable[[], tuple], weights: list[tf.Variable]) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch([x, state])
            result = loss(*run())
        return tape.gradient(result, [x, *state, *weights])

    actual = gradients(lambda: lstm(x, is_first, state), lstm.trainable_weights)
    expected = gradients(lambda: run_keras_cell(cell, x, is_first, state), cell.trainable_weights)
    for ours, theirs in zip(actual, expected, strict=True):
        assert np.any(theirs)
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_initial_bias_is_keras_own() -> None:
    lstm = ResettingLSTM(UNITS)
    lstm.build(tf.TensorShape([T, B, FEATURES]))
    cell = tf_keras.layers.LSTMCell(UNITS)
    cell.build([None, FEATURES])
    np.testing.assert_array_equal(lstm.get_weights()[2], cell.get_weights()[2])


def test_whole_unroll_equals_step_by_step() -> None:
    x, is_first, state = inputs()
    lstm = ResettingLSTM(UNITS)
    outputs, last = lstm(x, is_first, state)
    for t in range(T):
        output, state = lstm(x[t : t + 1], is_first[t : t + 1], state)
        np.testing.assert_allclose(output[0], outputs[t], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(state, last, rtol=1e-5, atol=1e-6)


def test_nothing_before_a_first_step_reaches_what_comes_after() -> None:
    x, is_first, state = inputs()
    is_first[4] = True
    lstm = ResettingLSTM(UNITS)
    with tf.GradientTape() as tape:
        tape.watch([x, state])
        outputs, _ = lstm(x, is_first, state)
        late = tf.reduce_sum(outputs[4:])
    by_x, by_state = tape.gradient(late, [x, state])
    assert not np.any(by_x[:4]) and np.all(by_x[4:])
    assert not np.any(by_state)


def test_bfloat16_products_leave_weights_and_state_in_float32() -> None:
    x, is_first, state = inputs()
    exact, rounded = ResettingLSTM(UNITS), ResettingLSTM(UNITS, tf.bfloat16)
    exact(x, is_first, state)
    rounded(x, is_first, state)
    rounded.set_weights(exact.get_weights())
    outputs, last = rounded(x, is_first, state)
    expected, _ = exact(x, is_first, state)
    assert {outputs.dtype, last.hidden.dtype, last.cell.dtype} == {tf.float32}
    assert {weight.dtype for weight in rounded.weights} == {tf.float32}
    np.testing.assert_allclose(outputs, expected, atol=0.03)
    assert np.any(outputs != expected)


def test_initial_state_is_zero() -> None:
    state = ResettingLSTM(UNITS).initial_state(B)
    assert state.hidden.shape == state.cell.shape == (B, UNITS)
    assert not np.any(state)

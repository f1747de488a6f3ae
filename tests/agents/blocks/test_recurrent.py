"""RecurrentNetwork: frame stack, torso, memory and head together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from agents.blocks.recurrent import RecurrentNetwork
from agents.r2d2.head import DuelingHead
from seed_rl.trajectories import TimeStep, Unroll, transpose_time
from seed_rl.types import StepType
from tests import tiny

LENGTH, BATCH = 6, 3


def inputs() -> Unroll:
    """Random time-major steps from a random state."""
    agent = tiny.vtrace(unroll_length=LENGTH - 1)
    return transpose_time(tiny.unrolls(agent, BATCH, np.random.default_rng(0)))


def run(network: Any, unroll: Unroll, part: slice = slice(None), state: Any = None) -> Any:
    steps = tf.nest.map_structure(lambda x: x[part], (unroll.time_step, unroll.previous_action))
    return network(*steps, unroll.initial_state if state is None else state)


def test_whole_unroll_equals_step_by_step() -> None:
    network, unroll = tiny.dueling(), inputs()
    outputs, _ = run(network, unroll)
    state = unroll.initial_state
    for t in range(LENGTH):
        output, state = run(network, unroll, slice(t, t + 1), state)
        np.testing.assert_allclose(output[0], outputs[t], rtol=1e-4, atol=1e-5)


def test_state_before_a_first_step_does_not_matter() -> None:
    network, unroll = tiny.dueling(), inputs()
    types = unroll.time_step.step_type.numpy()
    types[0] = [StepType.FIRST, StepType.FIRST, StepType.MID]
    unroll = unroll._replace(time_step=unroll.time_step._replace(step_type=tf.constant(types)))
    outputs, _ = run(network, unroll)
    reset, _ = run(network, unroll, state=network.initial_state(BATCH))
    np.testing.assert_array_equal(outputs[:, :2], reset[:, :2])
    assert np.all(np.abs(outputs[0, 2] - reset[0, 2]) > 1e-6)


def test_initial_state_is_all_zeros() -> None:
    assert not any(np.any(leaf) for leaf in tiny.leaves(tiny.dueling().initial_state(2)))


def test_previous_action_and_clipped_reward_are_seen() -> None:
    network, unroll = tiny.dueling(), inputs()
    outputs, _ = run(network, unroll)

    def changed(steps: TimeStep, previous_action: tf.Tensor) -> bool:
        other, _ = network(steps, previous_action, unroll.initial_state)
        return bool(np.any(np.abs(other - outputs) > 1e-5))

    steps, actions = unroll.time_step, unroll.previous_action
    large = steps._replace(reward=tf.fill(steps.reward.shape, 5.0))
    outputs, _ = network(large, actions, unroll.initial_state)
    assert not changed(large._replace(reward=large.reward - 4.0), actions)
    assert changed(large._replace(reward=large.reward - 4.5), actions)
    assert changed(large, (actions + 1) % tiny.NUM_ACTIONS)


def test_bfloat16_core_is_close_to_float32() -> None:
    exact = tiny.network(DuelingHead(tiny.NUM_ACTIONS, hidden=5))
    rounded = tiny.network(DuelingHead(tiny.NUM_ACTIONS, hidden=5), tf.bfloat16)
    tiny.assign(rounded, exact)
    outputs, _ = run(rounded, inputs())
    expected, _ = run(exact, inputs())
    assert outputs.dtype == tf.float32
    np.testing.assert_allclose(outputs, expected, atol=0.05)


def test_a_network_without_memory_or_stack_has_no_state() -> None:
    network = RecurrentNetwork(lambda x: tf.cast(x, tf.float32), tf.identity, tiny.NUM_ACTIONS)
    assert not tf.nest.flatten(network.initial_state(BATCH))
    steps = TimeStep(
        tf.ones([1, 2], tf.int32),
        tf.constant([[0.5, -3.0]]),
        tf.ones([1, 2]),
        tf.fill([1, 2, 2], 7),
    )
    outputs, state = network(steps, tf.constant([[1, 3]]), network.initial_state(2))
    assert not tf.nest.flatten(state)
    np.testing.assert_array_equal(outputs[0], [[7, 7, 0.5, 0, 1, 0, 0], [7, 7, -1.0, 0, 0, 0, 1]])


def test_a_stack_size_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="stack_size: expected 0 to 4, got 5"):
        RecurrentNetwork(tf.identity, tf.identity, tiny.NUM_ACTIONS, stack_size=5)

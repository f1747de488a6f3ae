"""Value rescaling, n-step returns and priorities: by hand, and against naive loops."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from agents.r2d2 import returns
from seed_rl.types import StepType
from tests import tiny

EPSILON = 1e-3


def test_rescale_by_hand() -> None:
    rescaled = returns.rescale(tf.constant([-3.0, 0.0, 8.0]), EPSILON)
    np.testing.assert_allclose(rescaled, [-1.003, 0.0, 2.008], rtol=1e-6)


@pytest.mark.parametrize("epsilon", [1e-3, 1e-2])
def test_unscale_inverts_rescale_in_float32(epsilon: float) -> None:
    magnitudes = np.concatenate([[0.0], np.geomspace(1e-2, 1e7, 100)])
    values = np.concatenate([-magnitudes, magnitudes]).astype(np.float32)
    there_and_back = returns.unscale(returns.rescale(values, epsilon), epsilon)
    np.testing.assert_allclose(there_and_back, values, rtol=2e-5, atol=1e-6)


def test_unscale_equals_the_printed_closed_form_in_float64() -> None:
    x = np.linspace(-500.0, 500.0, 1001)
    inner = np.sqrt(1 + 4 * EPSILON * (np.abs(x) + 1 + EPSILON)) - 1
    closed_form = np.sign(x) * ((inner / (2 * EPSILON)) ** 2 - 1)
    unscaled = returns.unscale(tf.constant(x, tf.float32), EPSILON)
    np.testing.assert_allclose(unscaled, closed_form, rtol=1e-5, atol=1e-5)


def column(numbers: list[float]) -> np.ndarray:
    return np.array(numbers, np.float32)[:, None]


REWARDS, DISCOUNTS = column([1, 2, 4]), column([0.5, 0.5, 0.5])
VALUES = column([10, 20, 30, 40])


@pytest.mark.parametrize(
    "n_steps, expected",
    [
        (1, [1 + 10, 2 + 15, 4 + 20]),
        (2, [1 + 1 + 7.5, 2 + 2 + 10, 4 + 20]),  # the last has only one step left
        (5, [1 + 1 + 1 + 5, 2 + 2 + 10, 4 + 20]),
    ],
)
def test_n_step_returns_by_hand(n_steps: int, expected: list[float]) -> None:
    is_last = np.zeros((3, 1), bool)
    result = returns.n_step_returns(REWARDS, DISCOUNTS, VALUES, is_last, n_steps)
    np.testing.assert_allclose(result, column(expected))


@pytest.mark.parametrize("discount, bootstrap", [(0.5, 0.5 * 20), (0.0, 0.0)])
def test_a_return_ends_with_its_episode(discount: float, bootstrap: float) -> None:
    is_last = np.array([[False], [True], [False]])
    discounts = column([discount, 0.5, 0.5])
    result = returns.n_step_returns(REWARDS, discounts, VALUES, is_last, n_steps=3)
    np.testing.assert_allclose(result, column([1 + bootstrap, 20, 4 + 20]))


def naive_n_step_return(
    t: int,
    rewards: np.ndarray,
    discounts: np.ndarray,
    values: np.ndarray,
    is_last: np.ndarray,
    n_steps: int,
) -> float:
    total, weight = 0.0, 1.0
    for _ in range(n_steps):
        if t == len(rewards) or is_last[t]:
            break
        total += weight * rewards[t]
        weight *= discounts[t]
        t += 1
    return total + weight * values[t]


@pytest.mark.parametrize("n_steps", [1, 3, 20])
def test_n_step_returns_equal_the_naive_sums_on_random_episodes(n_steps: int) -> None:
    rng = np.random.default_rng(n_steps)
    steps = tiny.time_steps(rng, 13, 16)
    arguments = (
        steps.reward[1:],
        np.float32(0.9) * steps.discount[1:],
        rng.normal(size=(13, 16)).astype(np.float32),
        steps.step_type[:-1] == StepType.LAST,
    )
    expected = [
        [naive_n_step_return(t, *[x[:, b] for x in arguments], n_steps) for b in range(16)]
        for t in range(12)
    ]
    np.testing.assert_allclose(
        returns.n_step_returns(*arguments, n_steps), expected, rtol=1e-4, atol=1e-5
    )


def test_a_wrong_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="n_step_returns"):
        returns.n_step_returns(REWARDS, DISCOUNTS[:2], VALUES, np.zeros((3, 1), bool), 1)


def test_select_takes_the_actions_values() -> None:
    q_values = tf.reshape(tf.range(12.0), [2, 2, 3])
    np.testing.assert_array_equal(
        returns.select(q_values, tf.constant([[0, 2], [1, 1]])), [[0, 5], [7, 10]]
    )


def test_priorities_mix_maximum_and_mean_of_the_valid_errors() -> None:
    td_errors = tf.constant([[-4.0, 1.0], [2.0, 9.0], [100.0, 9.0]])
    valid = tf.constant([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    priorities = returns.sequence_priorities(td_errors, valid, eta=0.9)
    np.testing.assert_allclose(priorities, [0.9 * 4 + 0.1 * 3, 0.0], rtol=1e-6)

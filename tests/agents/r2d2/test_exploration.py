"""Epsilons as the papers print them, and epsilon-greedy actions."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from agents.r2d2.exploration import epsilon_greedy, epsilons


def test_training_epsilons_run_from_base_to_its_eighth_power() -> None:
    values = epsilons(8, 0, base=0.4, eval_epsilon=1e-3)
    np.testing.assert_allclose(values, [0.4 ** (1 + i) for i in range(8)], rtol=1e-6)


def test_a_single_environment_has_the_base() -> None:
    np.testing.assert_allclose(epsilons(1, 0, 0.4, 1e-3), [0.4])


def test_evaluation_environments_come_last() -> None:
    np.testing.assert_allclose(epsilons(2, 3, 0.4, 0.01), [0.4, 0.4**8, 0.01, 0.01, 0.01])


def test_each_row_explores_with_its_own_epsilon() -> None:
    count, num_actions = 6000, 4
    q_values = tf.one_hot(tf.fill([3 * count], 2), num_actions)
    epsilon = tf.repeat([0.0, 0.6, 1.0], count)
    actions = epsilon_greedy(q_values, epsilon).numpy().reshape(3, count)
    for row, value in zip(actions, [0.0, 0.6, 1.0], strict=True):
        expected = count * (value / num_actions + (1 - value) * np.eye(num_actions)[2])
        counts = np.bincount(row, minlength=num_actions)
        np.testing.assert_allclose(counts, expected, atol=5 * np.sqrt(count / 4))

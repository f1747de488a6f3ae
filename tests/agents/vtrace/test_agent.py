"""The V-trace agent: its loss by hand, what moves it and what must not, and how it acts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from agents.vtrace.agent import VTrace
from seed_rl.trajectories import TimeStep, Unroll, transpose_time
from seed_rl.types import StepType
from tests import tiny

FIRST, MID, LAST = StepType.FIRST, StepType.MID, StepType.LAST
ROWS = [[0.1, 0.7, -0.3, 0.2, 1.5], [0.4, -0.6, 0.0, 0.3, -2.0], [-0.2, 0.5, 0.9, 0.0, 0.5]]


def tabular(**settings: Any) -> VTrace:
    """An agent with a row of logits and value for each of three states, and no entropy bonus."""
    defaults = dict(unroll_length=1, discounting=0.5, entropy_cost=0.0)
    return tiny.vtrace(lambda: tiny.TabularActorCritic(ROWS), **{**defaults, **settings})


def unroll(
    states: list[int],
    actions: list[int],
    rewards: list[float],
    step_types: list[int] | None = None,
    discounts: list[float] | None = None,
    behaviour: Any = None,
) -> Unroll:
    """One time-major unroll; on-policy if no behaviour logits are given."""
    logits = [ROWS[state][:-1] for state in states] if behaviour is None else behaviour
    logits = tf.constant(logits, tf.float32)[:, tf.newaxis]
    return tiny.unroll_by_hand(states, actions, rewards, logits, step_types, discounts)


def loss_and_gradient(agent: VTrace, unrolls: Unroll) -> tuple[np.ndarray, np.ndarray]:
    with tf.GradientTape() as tape:
        loss = agent.loss(unrolls).loss
    gradient = tape.gradient(loss, agent.network.table)
    return loss.numpy(), tf.convert_to_tensor(gradient).numpy()


def softmax(logits: Any) -> np.ndarray:
    return np.exp(logits) / np.exp(logits).sum()


def test_loss_and_gradient_of_one_transition_are_the_analytic_ones() -> None:
    entropy_cost, baseline_cost = 0.3, 0.5
    agent = tabular(entropy_cost=entropy_cost, baseline_cost=baseline_cost)
    loss, gradient = loss_and_gradient(agent, unroll([0, 1], [2, 0], [9.0, 4.0]))

    pi = softmax(ROWS[0][:-1])
    entropy = -np.sum(pi * np.log(pi))
    target = 4.0 + 0.5 * -2.0
    advantage = target - 1.5
    policy_loss = -np.log(pi[2]) * advantage
    value_loss = baseline_cost * 0.5 * advantage**2
    np.testing.assert_allclose(loss, [policy_loss + value_loss - entropy_cost * entropy], rtol=1e-5)

    expected = np.zeros((3, 5))
    expected[0, :-1] = -advantage * (np.eye(4)[2] - pi)
    expected[0, :-1] += entropy_cost * pi * (np.log(pi) + entropy)
    expected[0, -1] = -baseline_cost * advantage
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)


def test_off_policy_actions_are_weighed_by_the_clipped_ratio() -> None:
    agent = tabular(baseline_cost=0.0)
    pi = softmax(ROWS[0][:-1])
    on_policy, _ = loss_and_gradient(agent, unroll([0, 1], [2, 0], [0.0, 4.0]))
    for probability, weight in (0.1, 1.0), (0.9, pi[2] / 0.9):
        others = (1.0 - probability) / 3.0
        behaviour = np.log([[others, others, probability, others]] * 2)
        loss, _ = loss_and_gradient(agent, unroll([0, 1], [2, 0], [0.0, 4.0], behaviour=behaviour))
        np.testing.assert_allclose(loss, weight * on_policy, rtol=1e-5)


def test_last_steps_give_no_gradient() -> None:
    """Whatever the transition from LAST to FIRST holds, neither loss nor gradient shows it."""
    agent = tabular(unroll_length=3, entropy_cost=0.1, kl_cost=0.1)
    types = [MID, LAST, FIRST, MID]
    results = [
        loss_and_gradient(
            agent,
            unroll(
                [0, 1, 2, 0],
                [0, action, 2, 3],
                [0.5, 1.0, reward, 2.0],
                types,
                [1.0, 1.0, discount, 1.0],
                behaviour=[ROWS[0][:-1], logits, ROWS[2][:-1], ROWS[0][:-1]],
            ),
        )
        for action, reward, discount, logits in (
            (1, 0.0, 1.0, ROWS[1][:-1]),
            (3, 99.0, 0.0, [5.0, -5.0, 0.0, 1.0]),
        )
    ]
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.any(results[0][1][1]), "state 1 was seen at LAST only"


@pytest.mark.parametrize("discount, counts", [(0.0, False), (1.0, True)])
def test_the_final_value_counts_after_truncation_only(discount: float, counts: bool) -> None:
    agent = tabular()
    steps = unroll([0, 1], [2, 0], [0.0, 4.0], [MID, LAST], [1.0, discount])
    before, _ = loss_and_gradient(agent, steps)
    agent.network.table[1, -1].assign(7.0)
    after, _ = loss_and_gradient(agent, steps)
    assert np.any(before != after) == counts


def test_rewards_are_clipped_in_both_directions() -> None:
    def loss(reward: float, max_abs_reward: float) -> np.ndarray:
        agent = tabular(max_abs_reward=max_abs_reward)
        return loss_and_gradient(agent, unroll([0, 1], [2, 0], [0.0, reward]))[0]

    assert loss(5.0, 1.0) == loss(1.0, 0.0)
    assert loss(-5.0, 1.0) == loss(-1.0, 0.0)
    assert loss(5.0, 0.0) != loss(1.0, 0.0)


def test_kl_cost_is_the_divergence_from_the_behaviour_policy() -> None:
    behaviour = [[1.0, 0.0, -1.0, 0.5]] * 2
    steps = unroll([0, 1], [2, 0], [0.0, 4.0], behaviour=behaviour)
    without, _ = loss_and_gradient(tabular(), steps)
    with_cost, _ = loss_and_gradient(tabular(kl_cost=0.7), steps)
    p, q = softmax(behaviour[0]), softmax(ROWS[0][:-1])
    np.testing.assert_allclose(with_cost - without, [0.7 * np.sum(p * np.log(p / q))], rtol=1e-4)


@pytest.mark.parametrize("target, direction", [(0.5, -1), (1.38, 1)])
def test_target_entropy_moves_the_cost_towards_it(target: float, direction: int) -> None:
    """The policy's entropy is 1.33: over the target of 0.5, under that of 1.38."""
    agent = tabular(target_entropy=target, entropy_cost=0.01)
    steps = unroll([0, 1], [2, 0], [0.0, 4.0])
    variables = list(agent.trained_variables)
    with tf.GradientTape() as tape:
        output = agent.loss(steps)
    before = output.metrics["policy/entropy_cost"]
    np.testing.assert_allclose(before, 0.01, rtol=1e-4)
    for variable, gradient in zip(variables, tape.gradient(output.loss, variables), strict=True):
        variable.assign_sub(0.1 * tf.convert_to_tensor(gradient))
    after = agent.loss(steps).metrics["policy/entropy_cost"]
    assert np.sign(after - before) == direction


def test_adapting_the_cost_leaves_the_network_its_gradient() -> None:
    steps = unroll([0, 1], [2, 0], [0.0, 4.0])
    _, constant = loss_and_gradient(tabular(entropy_cost=0.3), steps)
    _, adapted = loss_and_gradient(tabular(entropy_cost=0.3, target_entropy=0.5), steps)
    np.testing.assert_allclose(adapted, constant, rtol=1e-5)


def test_losses_are_of_each_unroll_alone() -> None:
    agent = tiny.vtrace()
    unrolls = tiny.unrolls(agent, 3, np.random.default_rng(0))
    together = agent.loss(transpose_time(unrolls)).loss
    for i in range(3):
        alone = tf.nest.map_structure(lambda x, i=i: x[i : i + 1], unrolls)
        loss = agent.loss(transpose_time(alone)).loss
        np.testing.assert_allclose(loss, together[i : i + 1], rtol=1e-4, atol=1e-6)


def test_metrics_are_finite_when_all_steps_are_last() -> None:
    output = tabular().loss(unroll([0, 1], [2, 0], [0.0, 4.0], [LAST, FIRST]))
    assert all(np.isfinite(metric) for metric in output.metrics.values())


def test_unrolls_share_the_step_that_bootstraps() -> None:
    agent = tiny.vtrace(unroll_length=20)
    assert (agent.steps_per_unroll, agent.overlap) == (21, 1)


def test_acting_samples_the_policy_and_keeps_its_logits() -> None:
    count = 4000
    agent = tabular()
    steps = TimeStep(tf.ones(count, tf.int32), *[tf.zeros(count)] * 2, tf.zeros(count, tf.int32))
    step = agent.act(agent.network, steps, tf.zeros(count, tf.int32), ())
    np.testing.assert_array_equal(step.info, np.tile(np.float32(ROWS[0][:-1]), (count, 1)))
    expected = count * softmax(ROWS[0][:-1])
    chi_square = np.sum((np.bincount(step.action, minlength=4) - expected) ** 2 / expected)
    assert chi_square < 16.3  # p = 0.001 with 3 degrees of freedom

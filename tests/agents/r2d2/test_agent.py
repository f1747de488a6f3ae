"""The R2D2 agent: its loss by hand, burn-in, target network, priorities, and how it acts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from agents.r2d2.agent import R2D2, ActingValues
from seed_rl.inference import CentralInference, network_policy
from seed_rl.trajectories import TimeStep, Unroll, transpose_time
from seed_rl.types import StepType
from tests import tiny

FIRST, MID, LAST = StepType.FIRST, StepType.MID, StepType.LAST
ONLINE = [[3.0, 1.0, 0.0, 2.0], [1.0, 4.0, 0.0, 0.0], [0.0, 0.5, 0.7, 0.0], [0.0, 5.0, 1.0, 2.0]]
TARGET = [
    [9.0, 9.0, 9.0, 9.0],
    [9.0, 9.0, 9.0, 9.0],
    [9.0, 9.0, 1.003, 9.0],
    [9.0, 2.008, 9.0, 9.0],
]


def tabular(**settings: Any) -> R2D2:
    """An agent with a row of Q values for each of four states, and another table as target."""
    defaults = dict(burn_in=0, unroll_length=3, discounting=0.5)
    agent = tiny.r2d2(lambda: tiny.Tabular(ONLINE), **{**defaults, **settings})
    agent.target_network.table.assign(TARGET)
    return agent


def unroll(
    states: list[int],
    actions: list[int],
    rewards: list[float],
    step_types: list[int] | None = None,
    discounts: list[float] | None = None,
) -> Unroll:
    """One time-major unroll of a Tabular network."""
    length = len(states)
    values = ActingValues(tf.zeros([length, 1]), tf.zeros([length, 1]))
    return tiny.unroll_by_hand(states, actions, rewards, values, step_types, discounts)


def loss_and_gradient(agent: R2D2, unrolls: Unroll) -> tuple[np.ndarray, np.ndarray]:
    with tf.GradientTape() as tape:
        loss = agent.loss(unrolls).loss
    gradient = tape.gradient(loss, agent.network.trainable_variables)
    return loss.numpy(), np.concatenate(
        [tf.reshape(tf.convert_to_tensor(g), [-1]) for g in gradient]
    )


def h(x: float) -> float:
    """The rescaling of a positive number."""
    return np.sqrt(x + 1) - 1 + 1e-3 * x


def test_double_q_loss_and_priority_by_hand() -> None:
    # State 0 is burn-in. The online network's best action in state 3 is 1, which the target network
    # values at h(8); one step before the end, there is one step left of the two.
    agent = tabular(burn_in=1, unroll_length=2, n_steps=2)
    output = agent.loss(unroll([0, 1, 2, 3], [3, 0, 1, 2], [7.0, 7.0, 1.0, 2.0]))
    errors = np.array([h(1 + 0.5 * 2 + 0.25 * 8) - 1.0, h(2 + 0.5 * 8) - 0.5])
    np.testing.assert_allclose(output.loss, [0.5 * np.sum(errors**2)], rtol=1e-5)
    priority = 0.9 * errors.max() + 0.1 * errors.mean()
    np.testing.assert_allclose(output.priorities, [priority], rtol=1e-5)


def test_gradient_is_that_of_the_chosen_values() -> None:
    agent = tabular(burn_in=1, unroll_length=2, n_steps=2)
    _, gradient = loss_and_gradient(agent, unroll([0, 1, 2, 3], [3, 0, 1, 2], [7.0, 7.0, 1.0, 2.0]))
    expected = np.zeros((4, 4))
    expected[1, 0] = 1.0 - h(1 + 0.5 * 2 + 0.25 * 8)
    expected[2, 1] = 0.5 - h(2 + 0.5 * 8)
    np.testing.assert_allclose(gradient.reshape(4, 4), expected, rtol=1e-5)


def test_last_steps_give_no_gradient_and_no_priority() -> None:
    """Whatever the transition from LAST to FIRST holds, nothing of it shows."""
    agent = tabular(n_steps=3)
    results = []
    for action, reward, discount in (1, 0.0, 1.0), (3, 99.0, 0.0):
        steps = unroll(
            [0, 2, 1, 3],
            [0, action, 2, 3],
            [0.5, 1.0, reward, 2.0],
            [MID, LAST, FIRST, MID],
            [1.0, 1.0, discount, 1.0],
        )
        results.append((*loss_and_gradient(agent, steps), agent.loss(steps).priorities))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
    # The truncated return: state 2 is worth h(3) = 1.003 to the target network.
    np.testing.assert_allclose(results[0][1][0], 3.0 - h(1 + 0.5 * 3), rtol=1e-5)
    assert not np.any(results[0][1].reshape(4, 4)[2]), "state 2 was seen at LAST only"


@pytest.mark.parametrize("discount, counts", [(0.0, False), (1.0, True)])
def test_the_final_value_counts_after_truncation_only(discount: float, counts: bool) -> None:
    agent = tabular(unroll_length=1)
    steps = unroll([0, 2], [0, 1], [0.0, 4.0], [MID, LAST], [1.0, discount])
    before, _ = loss_and_gradient(agent, steps)
    agent.target_network.table[2, 2].assign(20.0)
    after, _ = loss_and_gradient(agent, steps)
    assert np.any(before != after) == counts


def test_burn_in_only_brings_the_state_up_to_date() -> None:
    """Burn-in equals starting behind it, in the state to which it leads; gradients included."""
    burn_in = tiny.R2D2_SETTINGS.burn_in
    agent, without = tiny.r2d2(), tiny.r2d2(burn_in=0)
    tiny.assign(without, agent)
    unrolls = transpose_time(tiny.unrolls(agent, 3, np.random.default_rng(0)))
    first, rest = (
        tf.nest.map_structure(lambda x, part=part: x[part], unrolls._replace(initial_state=()))
        for part in (slice(burn_in), slice(burn_in, None))
    )
    _, state = agent.network(first.time_step, first.previous_action, unrolls.initial_state)
    results = zip(
        loss_and_gradient(agent, unrolls),
        loss_and_gradient(without, rest._replace(initial_state=state)),
        strict=True,
    )
    for one, other in results:
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_burn_in_starts_both_networks_from_the_stored_state() -> None:
    agent = tiny.r2d2()
    unrolls = transpose_time(tiny.unrolls(agent, 1, np.random.default_rng(1)))
    types = tf.fill(unrolls.time_step.step_type.shape, int(MID))
    unrolls = unrolls._replace(time_step=unrolls.time_step._replace(step_type=types))
    reset = unrolls._replace(initial_state=agent.network.initial_state(1))
    assert np.abs(agent.loss(unrolls).loss - agent.loss(reset).loss) > 1e-4


def test_target_network_follows_every_n_updates() -> None:
    agent = tabular(update_target_every_n_step=3)
    for training_step in 1, 2:
        agent.after_update(training_step)
        np.testing.assert_array_equal(agent.target_network.table, np.float32(TARGET))
    agent.after_update(3)
    np.testing.assert_array_equal(agent.target_network.table, np.float32(ONLINE))


def test_target_network_starts_as_a_copy_and_is_not_trained() -> None:
    agent = tiny.r2d2()
    for target, online in zip(agent.target_network.variables, agent.network.variables, strict=True):
        np.testing.assert_array_equal(target, online)
        assert all(target is not variable for variable in agent.trained_variables)


def test_initial_priorities_are_the_losses_while_both_networks_are_equal() -> None:
    """Real unrolls, exploration included: acting's values are what the loss computes again."""
    agent = tiny.r2d2(exploration_epsilon=0.5)
    inference = CentralInference(agent, tiny.SPEC, 3, 0, queue_capacity=100)
    function = inference.make_function(network_policy(agent, agent.network))
    tiny.play(function, tiny.time_steps(np.random.default_rng(0), 30, 3))
    unrolls = inference.unrolls.dequeue_many(inference.unrolls.size())
    np.testing.assert_allclose(
        agent.initial_priorities(unrolls),
        agent.loss(transpose_time(unrolls)).priorities,
        rtol=1e-4,
        atol=1e-6,
    )


def test_sequences_overlap_by_burn_in_and_the_step_that_bootstraps() -> None:
    agent = tiny.r2d2(unroll_length=80, burn_in=40)
    assert (agent.steps_per_unroll, agent.overlap) == (121, 41)


def act(agent: R2D2, states: list[int], env_ids: list[int] | None) -> Any:
    count = len(states)
    steps = TimeStep(tf.ones(count, tf.int32), *[tf.zeros(count)] * 2, tf.constant(states))
    ids = None if env_ids is None else tf.constant(env_ids)
    return agent.act(agent.network, steps, tf.zeros(count, tf.int32), (), ids)


def test_acting_without_environments_is_greedy() -> None:
    np.testing.assert_array_equal(act(tabular(), [0, 1, 2, 3], None).action, [0, 1, 2, 1])


def test_environments_explore_as_their_ids_say_and_the_values_are_kept() -> None:
    """Environment 0 always explores; 1, an evaluation one, never."""
    agent = tiny.r2d2(
        lambda: tiny.Tabular(ONLINE),
        num_training_envs=1,
        num_eval_envs=1,
        exploration_epsilon=1.0,
        eval_epsilon=0.0,
    )
    step = act(agent, [3] * 200, [0, 1] * 100)
    explored, greedy = step.action[::2].numpy(), step.action[1::2].numpy()
    assert set(explored) == {0, 1, 2, 3}
    assert set(greedy) == {1}
    np.testing.assert_array_equal(step.info.chosen, np.float32(ONLINE[3])[step.action])
    np.testing.assert_array_equal(step.info.greatest, np.full(200, 5.0))

"""Central inference with a real agent, called as the server calls it."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from seed_rl.algorithm import Algorithm
from seed_rl.inference import CentralInference, network_policy, unroll_spec
from seed_rl.trajectories import EnvironmentStep, TimeStep, Unroll
from seed_rl.types import StepType
from tests import tiny

FIRST, MID, LAST = StepType.FIRST, StepType.MID, StepType.LAST


class Setup(NamedTuple):
    agent: Algorithm
    inference: CentralInference
    function: Any


def make(num_training: int, num_eval: int = 0, capacity: int = 100, **settings: Any) -> Setup:
    """V-trace with unrolls of 3 steps, the last of which the next one starts with."""
    agent = tiny.vtrace(**{"unroll_length": 2, **settings})
    inference = CentralInference(agent, tiny.SPEC, num_training, num_eval, capacity)
    return Setup(agent, inference, inference.make_function(network_policy(agent, agent.network)))


def steps_of(*step_types: int, count: int = 1, seed: int = 0) -> TimeStep:
    """Time-major steps of the given types, the same for all of `count` environments."""
    rng = np.random.default_rng(seed)
    shape = (len(step_types), count)
    return TimeStep(
        step_type=np.int32(np.tile(np.array(step_types)[:, None], count)),
        reward=rng.normal(size=shape).astype(np.float32),
        discount=np.ones(shape, np.float32),
        observation=rng.integers(256, size=(*shape, *tiny.FRAME), dtype=np.uint8),
    )


def all_unrolls(inference: CentralInference) -> Unroll:
    return inference.unrolls.dequeue_many(inference.unrolls.size())


def replayed_state(agent: Algorithm, steps: TimeStep, previous_action: np.ndarray) -> Any:
    """The state after steps [T, B] from the initial one, by the network alone."""
    state = agent.network.initial_state(steps.step_type.shape[1])
    for t in range(len(steps.step_type)):
        step = tf.nest.map_structure(lambda x, t=t: x[t : t + 1], (steps, previous_action))
        _, state = agent.network(*tf.nest.map_structure(tf.constant, step), state)
    return state


def assert_initial_states(unrolls: Unroll, rows: slice, expected: Any) -> None:
    for stored, leaf in zip(tiny.leaves(unrolls.initial_state), tiny.leaves(expected), strict=True):
        np.testing.assert_allclose(stored[rows], leaf, rtol=1e-5, atol=1e-6)


def test_unrolls_hold_the_steps_actions_states_and_infos() -> None:
    agent, inference, function = make(num_training=2)
    steps = steps_of(FIRST, MID, MID, LAST, FIRST, count=2)
    actions = tiny.play(function, steps)
    previous = np.concatenate([np.zeros((1, 2), np.int32), actions[:-1]])
    previous[4] = 0  # FIRST
    unrolls = all_unrolls(inference)
    assert unrolls.action.shape == (4, 3)  # both environments' steps 0-2, then both's 2-4
    parts = [(0, slice(3)), (1, slice(3)), (0, slice(2, 5)), (1, slice(2, 5))]
    for i, (env, part) in enumerate(parts):
        expected = tf.nest.map_structure(lambda x, env=env, part=part: x[part, env], steps)
        row = tf.nest.map_structure(lambda x, i=i: x[i], unrolls)
        tf.nest.map_structure(np.testing.assert_array_equal, row.time_step, expected)
        np.testing.assert_array_equal(row.action, actions[part, env])
        np.testing.assert_array_equal(row.previous_action, previous[part, env])
    assert not any(np.any(leaf[:2]) for leaf in tiny.leaves(unrolls.initial_state))
    two = tf.nest.map_structure(lambda x: x[:2], steps)
    assert_initial_states(unrolls, slice(2, 4), replayed_state(agent, two, previous[:2]))
    inputs = tf.nest.map_structure(tf.constant, (steps, previous))
    output, _ = agent.network(*inputs, agent.network.initial_state(2))
    np.testing.assert_allclose(
        unrolls.policy_info[2], output.policy_logits[2:, 0], rtol=1e-4, atol=1e-5
    )


def test_every_step_has_the_version_of_the_policy_that_acted() -> None:
    """Whichever device's function runs; also in steps that two unrolls share."""
    agent, inference, function = make(num_training=1)
    other = inference.make_function(network_policy(agent, agent.network))
    steps = steps_of(FIRST, MID, MID, LAST, FIRST)
    for t, each in enumerate([function, other, function, other, other]):
        inference.policy_version.assign(10 * t)
        tiny.play(each, tf.nest.map_structure(lambda x, t=t: x[t : t + 1], steps))
    np.testing.assert_array_equal(
        all_unrolls(inference).policy_version, [[0, 10, 20], [20, 30, 40]]
    )


def test_unrolls_have_the_spec_that_is_announced() -> None:
    agent, inference, function = make(num_training=1)
    tiny.play(function, steps_of(FIRST, MID, MID))

    def check(x: tf.Tensor, spec: tf.TensorSpec) -> None:
        assert (x.shape[1:], x.dtype) == (spec.shape, spec.dtype)

    tf.nest.map_structure(check, all_unrolls(inference), unroll_spec(agent, tiny.SPEC))


def test_a_new_run_resets_state_previous_action_and_unroll() -> None:
    """The new run starts in the middle of an episode, so that nothing but its id tells."""
    agent, inference, function = make(num_training=1)
    tiny.play(function, steps_of(FIRST, MID), run_id=1)
    steps = steps_of(MID, MID, MID, MID, MID, seed=1)
    actions = tiny.play(function, steps, run_id=2)
    unrolls = all_unrolls(inference)
    assert unrolls.action.shape == (2, 3)
    np.testing.assert_array_equal(unrolls.time_step.reward[0], steps.reward[:3, 0])
    np.testing.assert_array_equal(unrolls.previous_action[0], [0, *actions[:2, 0]])
    assert not any(np.any(leaf[0]) for leaf in tiny.leaves(unrolls.initial_state))
    two = tf.nest.map_structure(lambda x: x[:2], steps)
    previous = unrolls.previous_action.numpy()[0, :2, None]
    assert_initial_states(unrolls, slice(1, 2), replayed_state(agent, two, previous))


def test_environments_come_in_any_subset_and_order() -> None:
    """Two environments interleaved with different partners get what each would get alone."""
    agent = tiny.r2d2(exploration_epsilon=0.0)
    steps = tiny.time_steps(np.random.default_rng(0), 12, 3)
    results = []
    for groups in [[0, 1, 2]], [[2, 0], [1]]:
        inference = CentralInference(agent, tiny.SPEC, 3, 0, queue_capacity=100)
        function = inference.make_function(network_policy(agent, agent.network))
        for t in range(12):
            for group in groups:
                rows = tf.nest.map_structure(lambda x, t=t, group=group: x[t, group], steps)
                step = EnvironmentStep(*rows)
                function(tf.constant(group), tf.fill([len(group)], np.int64(1)), step)
        unrolls = all_unrolls(inference)
        order = np.lexsort(unrolls.time_step.reward.numpy().T)
        results.append([leaf[order] for leaf in tiny.leaves(unrolls)])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_evaluation_environments_reach_the_statistics_but_no_unroll() -> None:
    _, inference, function = make(num_training=1, num_eval=2)
    steps = steps_of(FIRST, MID, LAST, FIRST, LAST, count=3)
    tiny.play(function, steps)
    unrolls = all_unrolls(inference)
    assert unrolls.action.shape == (2, 3)
    np.testing.assert_array_equal(unrolls.time_step.reward[0], steps.reward[:3, 0])
    episodes = inference.episodes.ended.dequeue_many(inference.episodes.ended.size())
    np.testing.assert_array_equal(episodes.env_id, [0, 1, 2, 0, 1, 2])
    np.testing.assert_allclose(episodes.undiscounted_return[:3], steps.reward[1:3].sum(axis=0))


def test_only_evaluation_environments_in_a_batch() -> None:
    _, inference, function = make(num_training=1, num_eval=2)
    rows = tf.nest.map_structure(lambda x: tf.constant(x[0]), steps_of(FIRST, count=2))
    step = EnvironmentStep(*rows)
    actions = function(tf.constant([1, 2]), tf.fill([2], np.int64(5)), step)
    assert actions.shape == (2,)
    assert inference.unrolls.size() == 0


def test_steps_are_the_training_environments_actions_that_took_effect() -> None:
    _, inference, function = make(num_training=2, num_eval=1)
    tiny.play(function, steps_of(FIRST, MID, LAST, FIRST, MID, count=3))
    assert int(inference.steps) == 2 * 3


def test_batch_size_is_the_mean_since_it_was_last_asked() -> None:
    _, inference, function = make(num_training=4, num_eval=1)
    assert inference.take_batch_size() == 0
    for count in 5, 2, 2:
        tiny.play(function, steps_of(MID, count=count))
    assert inference.take_batch_size() == 3
    tiny.play(function, steps_of(MID, count=4))
    assert inference.take_batch_size() == 4
    assert inference.take_batch_size() == 4


def test_a_full_queue_holds_the_call_until_there_is_room() -> None:
    _, inference, function = make(num_training=1, capacity=1)
    tiny.play(function, steps_of(FIRST, MID, MID, MID))
    call = threading.Thread(target=tiny.play, args=(function, steps_of(MID)))
    call.start()
    call.join(timeout=0.5)
    assert call.is_alive()
    inference.unrolls.dequeue_many(1)
    call.join(timeout=30)
    assert not call.is_alive()
    assert inference.unrolls.size() == 1


def test_closing_the_queue_lets_the_held_call_fail() -> None:
    _, inference, function = make(num_training=1, capacity=1)
    tiny.play(function, steps_of(FIRST, MID, MID, MID))
    errors: list[Exception] = []

    def call() -> None:
        try:
            tiny.play(function, steps_of(MID))
        except tf.errors.CancelledError as error:
            errors.append(error)

    caller = threading.Thread(target=call)
    caller.start()
    caller.join(timeout=0.5)
    assert caller.is_alive()
    inference.unrolls.close()
    caller.join(timeout=30)
    assert len(errors) == 1


def test_rows_of_a_wrong_shape_are_refused() -> None:
    _, _, function = make(num_training=1)
    rows = tf.nest.map_structure(lambda x: tf.constant(x[0]), steps_of(FIRST))
    step = EnvironmentStep(*rows)
    with pytest.raises((TypeError, ValueError)):
        function(
            tf.constant([0]),
            tf.constant([1], tf.int64),
            step._replace(observation=tf.zeros([1, 2])),
        )


def _call(function: Any, env_ids: list[int], run_ids: list[int], steps: TimeStep) -> np.ndarray:
    """One call with one time step [N] of each row."""
    step = EnvironmentStep(*tf.nest.map_structure(lambda x: tf.constant(x[0]), steps))
    return function(tf.constant(env_ids), tf.constant(run_ids, tf.int64), step).numpy()


def test_of_two_rows_of_an_environment_the_later_one_counts() -> None:
    """An actor killed while it waits in a batch leaves a row there, which its successor joins."""
    _, inference, function = make(num_training=2)
    for step_type in FIRST, MID:
        _call(function, [0, 1], [1, 1], steps_of(step_type, count=2))
    killed, begun = steps_of(MID, count=3, seed=1), steps_of(FIRST, count=3, seed=2)
    both = tf.nest.map_structure(lambda old, new: np.where(_rows(new, 2), new, old), killed, begun)
    assert len(_call(function, [0, 1, 0], [1, 1, 2], both)) == 3
    assert int(inference.steps) == 3  # two MID steps, then environment 1's
    (completed,) = all_unrolls(inference).time_step.step_type.numpy().tolist()
    assert completed == [FIRST, MID, MID]  # environment 1's: nothing of the killed actor's
    for _ in range(2):
        _call(function, [0], [2], steps_of(MID, seed=3))
    unrolls = all_unrolls(inference)
    np.testing.assert_array_equal(unrolls.time_step.step_type, [[FIRST, MID, MID]])
    np.testing.assert_array_equal(unrolls.time_step.observation[0, 0], begun.observation[0, 2])


def test_rows_of_environments_that_do_not_exist_leave_no_trace() -> None:
    _, inference, function = make(num_training=1, num_eval=1)
    for step_type in FIRST, MID, LAST:
        assert len(_call(function, [0, 7, -1], [1, 1, 1], steps_of(step_type, count=3))) == 3
    assert int(inference.steps) == 2
    assert inference.unrolls.size() == 1
    np.testing.assert_array_equal(inference.episodes.ended.dequeue_many(1).env_id, [0])
    assert inference.episodes.ended.size() == 0


def _rows(like: np.ndarray, row: int) -> np.ndarray:
    """A mask of the shape [1, N, ...] of `like` that is True in one row."""
    mask = np.zeros(like.shape, bool)
    mask[:, row] = True
    return mask

"""Policy lag of unrolls written by hand, and of those of a learner's parts."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from seed_rl.inference import CentralInference, network_policy
from seed_rl.policy_lag import policy_lag
from seed_rl.trajectories import Unroll, transpose_time
from seed_rl.types import StepType
from tests import tiny

FIRST, MID, LAST = StepType.FIRST, StepType.MID, StepType.LAST


def unroll(versions: list[int], step_types: list[int]) -> Unroll:
    """One batch-major unroll [1, T]."""
    zeros = [0] * len(versions)
    by_hand = tiny.unroll_by_hand(zeros, zeros, zeros, (), step_types)
    return transpose_time(by_hand._replace(policy_version=tf.constant(versions, tf.int64)[:, None]))


def test_mean_over_the_transitions_that_are_trained() -> None:
    """Lags 3, 2 and 0; the last step only bootstraps, and is the next unroll's first."""
    lag = policy_lag(unroll([4, 5, 7, 0], [MID] * 4), training_step=7, overlap=1)
    assert lag == pytest.approx(5 / 3)


def test_burn_in_does_not_count() -> None:
    lag = policy_lag(unroll([0, 0, 5, 6, 0], [MID] * 5), training_step=7, overlap=3)
    assert lag == pytest.approx((2 + 1) / 2)


def test_from_last_to_first_nothing_is_trained() -> None:
    lag = policy_lag(unroll([7, 1, 5, 0], [MID, LAST, FIRST, MID]), training_step=7, overlap=1)
    assert lag == pytest.approx((0 + 2) / 2)


def test_an_unroll_without_experience_has_no_lag() -> None:
    assert policy_lag(unroll([1, 1], [LAST, FIRST]), training_step=7, overlap=1) == 0.0


def test_arrays_of_a_replay_are_as_good_as_tensors() -> None:
    batch = tiny.unrolls(tiny.r2d2(), 4, np.random.default_rng(0))
    arrays = tf.nest.map_structure(lambda x: x.numpy(), batch)
    assert policy_lag(arrays, 200, overlap=3) == policy_lag(batch, 200, overlap=3) > 0


def test_of_the_unrolls_that_inference_gives() -> None:
    """Unrolls of 3 steps, one shared; a new version every second step, as if it trained as fast."""
    agent = tiny.vtrace(unroll_length=2)
    inference = CentralInference(agent, tiny.SPEC, 2, 0, queue_capacity=10)
    function = inference.make_function(network_policy(agent, agent.network))
    steps = tiny.time_steps(np.random.default_rng(0), 5, 2)
    steps = steps._replace(step_type=np.full_like(steps.step_type, MID))
    for t in range(5):
        inference.policy_version.assign(t // 2)
        tiny.play(function, tf.nest.map_structure(lambda x, t=t: x[t : t + 1], steps))
    first, second = (inference.unrolls.dequeue_many(2) for _ in range(2))
    assert policy_lag(first, training_step=0, overlap=agent.overlap) == 0.0  # versions 0, 0
    assert policy_lag(second, training_step=3, overlap=agent.overlap) == 2.0  # versions 1, 1

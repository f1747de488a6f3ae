"""Statistics of episodes: what is counted, and which episodes are told of."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from seed_rl.episodes import EpisodeStatistics
from seed_rl.trajectories import TimeStep
from seed_rl.types import StepType

FIRST, MID, LAST = StepType.FIRST, StepType.MID, StepType.LAST


def feed(
    statistics: EpisodeStatistics,
    env_id: int,
    steps: list[tuple[int, float]],
    new_run: bool = False,
) -> None:
    """Sends (step type, reward) pairs of one environment; `new_run` is about the first."""
    for i, (step_type, reward) in enumerate(steps):
        step = TimeStep(tf.constant([int(step_type)]), tf.constant([reward]), tf.ones([1]), ())
        statistics.update(tf.constant([env_id]), tf.constant([new_run and i == 0]), step)


def ended(statistics: EpisodeStatistics) -> list[tuple[float, ...]]:
    episodes = tf.nest.flatten(statistics.ended.dequeue_many(statistics.ended.size()))
    return [tuple(map(float, each)) for each in zip(*episodes, strict=True)]


def test_return_and_length_are_of_the_steps_after_first() -> None:
    statistics = EpisodeStatistics(3)
    feed(statistics, 2, [(FIRST, 0.0), (MID, 1.5), (MID, -1.0), (LAST, 2.0)], new_run=True)
    assert ended(statistics) == [(2, 2.5, 3)]


def test_each_episode_counts_from_its_own_first_step() -> None:
    statistics = EpisodeStatistics(1)
    feed(statistics, 0, [(FIRST, 0.0), (LAST, 1.0), (FIRST, 0.0), (MID, 2.0), (LAST, 4.0)])
    assert ended(statistics) == [(0, 1, 1), (0, 6, 2)]


def test_an_episode_whose_beginning_was_not_seen_is_not_told_of() -> None:
    statistics = EpisodeStatistics(1)
    feed(statistics, 0, [(MID, 1.0), (LAST, 1.0), (FIRST, 0.0), (LAST, 3.0)])
    assert ended(statistics) == [(0, 3, 1)]


def test_an_episode_that_a_new_run_broke_off_is_not_told_of() -> None:
    statistics = EpisodeStatistics(1)
    feed(statistics, 0, [(FIRST, 0.0), (MID, 1.0)])
    feed(statistics, 0, [(MID, 1.0), (LAST, 1.0), (FIRST, 0.0), (LAST, 5.0)], new_run=True)
    assert ended(statistics) == [(0, 5, 1)]


def test_scores_are_summed_apart_from_rewards() -> None:
    statistics = EpisodeStatistics(1, has_score=True)
    for step_type, reward, score in [(FIRST, 0.0, 0.0), (MID, 0.1, 0.0), (LAST, 1.1, 1.0)]:
        step = TimeStep(tf.constant([int(step_type)]), tf.constant([reward]), tf.ones([1]), ())
        statistics.update(tf.constant([0]), tf.constant([False]), step, tf.constant([score]))
    assert ended(statistics) == [(0, pytest.approx(1.2), 2, 1.0)]


def test_environments_of_one_batch_do_not_mix() -> None:
    statistics = EpisodeStatistics(4)
    no = tf.fill([3], False)
    for types, rewards in [
        ([FIRST, FIRST, FIRST], [0.0, 0.0, 0.0]),
        ([LAST, MID, LAST], [1.0, 2.0, 3.0]),
        ([FIRST, LAST, FIRST], [0.0, 4.0, 0.0]),
    ]:
        step = TimeStep(np.int32(types), np.float32(rewards), np.ones(3, np.float32), ())
        statistics.update(tf.constant([3, 0, 1]), no, step)
    assert ended(statistics) == [(3, 1, 1), (1, 3, 1), (0, 6, 2)]

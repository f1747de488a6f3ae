"""Summaries, read back as TensorBoard reads them."""

from __future__ import annotations

import pathlib

import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray

from seed_rl.episodes import Episode
from seed_rl.summaries import Summaries


def read(directory: pathlib.Path) -> dict[str, list[tuple[int, float]]]:
    """(step, value) pairs by name."""
    events = EventAccumulator(str(directory))
    events.Reload()
    return {
        tag: [(each.step, float(make_ndarray(each.tensor_proto))) for each in events.Tensors(tag)]
        for tag in events.Tags()["tensors"]
    }


def episodes(*rows: tuple[int, float, int]) -> Episode:
    """Episodes of (environment id, return, length)."""
    env_ids, returns, lengths = zip(*rows, strict=True)
    return Episode(tf.constant(env_ids), tf.constant(returns), tf.constant(lengths))


def test_scalars_are_written_against_frames(tmp_path: pathlib.Path) -> None:
    summaries = Summaries(str(tmp_path), num_training_envs=2)
    summaries.write({"loss/total": tf.constant(1.5), "training/steps": 3}, frames=400)
    summaries.write({"loss/total": tf.constant(0.5)}, frames=800)
    summaries.flush()
    assert read(tmp_path) == {"loss/total": [(400, 1.5), (800, 0.5)], "training/steps": [(400, 3)]}


def test_evaluation_episodes_are_told_apart(tmp_path: pathlib.Path) -> None:
    summaries = Summaries(str(tmp_path), num_training_envs=2)
    assert summaries.mean_return() is None
    summaries.write_episodes(episodes((0, 1.0, 10), (2, 8.0, 30), (1, 3.0, 20)), frames=7)
    summaries.flush()
    assert (summaries.mean_return(), summaries.mean_return("evaluation")) == (2.0, 8.0)
    written = read(tmp_path)
    assert written["training/return"] == [(7, 1.0), (7, 3.0)]
    assert written["training/length"] == [(7, 10), (7, 20)]
    assert written["training/mean_return"] == [(7, 1.0), (7, 2.0)]
    assert written["evaluation/return"] == [(7, 8.0)]


def test_every_nth_episode_of_a_kind_is_written_and_all_count(tmp_path: pathlib.Path) -> None:
    summaries = Summaries(str(tmp_path), num_training_envs=1, episode_frequency=2)
    for frames, episode_return in enumerate([1.0, 3.0, 5.0, 7.0]):
        summaries.write_episodes(episodes((0, episode_return, 1), (1, 0.0, 1)), frames)
    summaries.flush()
    written = read(tmp_path)
    assert written["training/return"] == [(1, 3.0), (3, 7.0)]
    assert written["training/mean_return"] == [(1, 2.0), (3, 4.0)]
    assert len(written["evaluation/return"]) == 2


def test_the_mean_is_over_the_last_hundred(tmp_path: pathlib.Path) -> None:
    summaries = Summaries(str(tmp_path), num_training_envs=1, episode_frequency=1000)
    summaries.write_episodes(episodes(*[(0, 1000.0, 1)] * 50, *[(0, 2.0, 1)] * 100), frames=1)
    assert summaries.mean_return() == pytest.approx(2.0)

"""Summaries, read back as TensorBoard reads them."""

from __future__ import annotations

import pathlib

import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray

from seed_rl.summaries import Summaries


def read(directory: pathlib.Path) -> dict[str, list[tuple[int, float]]]:
    """(step, value) pairs by name."""
    events = EventAccumulator(str(directory))
    events.Reload()
    return {
        tag: [(each.step, float(make_ndarray(each.tensor_proto))) for each in events.Tensors(tag)]
        for tag in events.Tags()["tensors"]
    }


def test_scalars_are_written_against_frames(tmp_path: pathlib.Path) -> None:
    summaries = Summaries(str(tmp_path))
    summaries.write({"loss/total": tf.constant(1.5), "training/steps": 3}, frames=400)
    summaries.write({"loss/total": tf.constant(0.5)}, frames=800)
    summaries.flush()
    assert read(tmp_path) == {"loss/total": [(400, 1.5), (800, 0.5)], "training/steps": [(400, 3)]}

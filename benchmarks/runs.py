"""What a run left behind, read back: its episodes, in the order in which they ended.

Every start of a run writes a file of summaries of its own. A start that was killed did work that no
checkpoint holds, and its successor did that part again: of the earlier file only what lies before
the frames at which the successor began is part of the run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import seed_rl  # noqa: F401  (chooses legacy Keras before TensorFlow is imported)
from seed_rl import starts
from seed_rl.errors import UserError
from seed_rl.starts import Start

import tensorflow as tf  # isort: skip
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # isort: skip


class Episode(NamedTuple):
    """An episode that has ended.

    Attributes:
      frames: engine frames of the whole run when the learner heard of it.
      seconds: wall time since the run's first start. Pauses between one start and the next are left
        out; time for work that was done again is not.
      episode_return: undiscounted, unclipped.
      length: in steps.
    """

    frames: int
    seconds: float
    episode_return: float
    length: int


class Run(NamedTuple):
    """A run with all its starts.

    Attributes:
      name: of its logdir.
      starts: as run_local.sh recorded them.
      episodes: those of one kind that were written; by default that is all.
      frames, seconds: at its end, as with episodes.
    """

    name: str
    starts: list[Start]
    episodes: list[Episode]
    frames: int
    seconds: float


class _Part(NamedTuple):
    """What one start wrote; seconds count from its own beginning."""

    first_frames: int
    last_frames: int
    seconds: float
    episodes: list[Episode]


def read(logdir: Path, kind: str = "training") -> Run:
    """Reads <logdir>/summaries; the run may be going on.

    Args:
      logdir: of the run.
      kind: of episodes, "training" or "evaluation".

    Raises:
      UserError: there are no such episodes.
    """
    episodes: list[Episode] = []
    frames, seconds = 0, 0.0
    # Names begin with the time at which the file was made.
    for file in sorted((logdir / "summaries").glob("events.out.tfevents.*")):
        part = _read_part(file, kind)
        if part is None:
            continue
        episodes = [episode for episode in episodes if episode.frames <= part.first_frames]
        episodes += [e._replace(seconds=seconds + e.seconds) for e in part.episodes]
        frames = part.last_frames
        seconds += part.seconds
    if not episodes:
        raise UserError(
            f"LOGDIR: expected folders of runs whose summaries have episodes of {kind}, got "
            f"'{logdir}'."
        )
    return Run(logdir.resolve().name, starts.read(logdir), episodes, frames, seconds)


def _read_part(file: Path, kind: str) -> _Part | None:
    """None for a file without any scalar."""
    events = EventAccumulator(str(file), size_guidance={"tensors": 0})
    events.Reload()
    by_tag = {tag: events.Tensors(tag) for tag in events.Tags()["tensors"]}
    if not by_tag:
        return None
    began = events.FirstEventTimestamp()
    # A file may end in the middle, so that the last return has no length.
    pairs = zip(by_tag.get(f"{kind}/return", ()), by_tag.get(f"{kind}/length", ()), strict=False)
    return _Part(
        first_frames=min(scalars[0].step for scalars in by_tag.values()),
        last_frames=max(scalars[-1].step for scalars in by_tag.values()),
        seconds=max(scalars[-1].wall_time for scalars in by_tag.values()) - began,
        episodes=[
            Episode(outcome.step, outcome.wall_time - began, _value(outcome), int(_value(length)))
            for outcome, length in pairs
        ],
    )


def _value(event: Any) -> float:
    return float(tf.make_ndarray(event.tensor_proto))

"""How much memory a run's tables take, known before they take it."""

from __future__ import annotations

import dataclasses
import math
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from seed_rl.errors import UserError
from seed_rl.learner_settings import LearnerSettings
from seed_rl.replay import ReplaySettings


@dataclasses.dataclass(frozen=True)
class Table:
    """Something that takes memory.

    Attributes:
      name: for the user.
      rows: how many.
      row_bytes: size of one.
      flags: the flags that decide.
    """

    name: str
    rows: int
    row_bytes: int
    flags: str

    @property
    def nbytes(self) -> int:
        return self.rows * self.row_bytes

    def __str__(self) -> str:
        return f"{self.name} {_size(self.nbytes)} ({self.rows:,} x {_size(self.row_bytes)})"


def tables(
    unroll_bytes: int, settings: LearnerSettings, replay: ReplaySettings | None
) -> list[Table]:
    """The tables of a learner whose unrolls have so many bytes."""
    envs, capacity = settings.num_training_envs, settings.unroll_queue_capacity
    found = [
        Table("unrolls in the making", envs, unroll_bytes, "--num_envs and --unroll_length"),
        Table("batch", settings.batch_size, unroll_bytes, "--batch_size and --unroll_length"),
        Table("queue", capacity, unroll_bytes, "--unroll_queue_max_size and --unroll_length"),
    ]
    if replay:
        size = replay.replay_buffer_size
        found.append(
            Table("replay", size, unroll_bytes, "--replay_buffer_size and --unroll_length")
        )
    return found


def spec_bytes(spec: Any) -> int:
    """Bytes of one element of a structure of TensorSpecs."""
    return sum(
        int(np.prod(leaf.shape.as_list(), dtype=np.int64)) * leaf.dtype.size
        for leaf in tf.nest.flatten(spec)
    )


def describe(tables: Sequence[Table]) -> str:
    """One line for the user."""
    return ", ".join(map(str, tables)) + f"; {_size(sum(t.nbytes for t in tables))} in all"


def check_fits(tables: Sequence[Table], available: int) -> None:
    """Raises a UserError that names the flags if the tables need more than `available` bytes."""
    needed = sum(table.nbytes for table in tables)
    if needed > available:
        largest = max(tables, key=lambda table: table.nbytes)
        raise UserError(
            f"{largest.flags}: expected tables of at most {_size(available)}, the memory that is "
            f"free, got {describe(tables)}."
        )


def available_bytes() -> int:
    """Memory that this process may still take: the machine's, or what its control group leaves."""
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            available = int(line.split()[1]) * 1024
    limit = pathlib.Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and (text := limit.read_text().strip()) != "max":
        used = int(pathlib.Path("/sys/fs/cgroup/memory.current").read_text())
        available = min(available, int(text) - used + _reclaimable_bytes())
    return available


def _size(count: float) -> str:
    """Bytes for people: 512 B, 1.5 KiB, 12.0 MiB, 83.0 GiB."""
    units = ("B", "KiB", "MiB", "GiB", "TiB")
    power = min(len(units) - 1, int(math.log2(max(1, count)) / 10))
    return f"{count / 1024**power:.{1 if power else 0}f} {units[power]}"


def _reclaimable_bytes() -> int:
    """Of what counts as used by the control group, the cached files that it would give up."""
    for line in pathlib.Path("/sys/fs/cgroup/memory.stat").read_text().splitlines():
        if line.startswith("inactive_file "):
            return int(line.split()[1])
    return 0

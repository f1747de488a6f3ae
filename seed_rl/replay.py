"""Prioritized replay of sequences: Schaul et al. (arXiv 1511.05952), in main memory, in NumPy."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from seed_rl.errors import UserError
from seed_rl.settings import setting
from seed_rl.types import ArraySpec

_ROWS_READ = 256  # at a time, from a saved array


@dataclasses.dataclass(frozen=True)
class ReplaySettings:
    replay_buffer_size: int = setting(2_000, "Sequences that the replay holds.", minimum=1)
    replay_buffer_min_size: int = setting(
        200, "Sequences in the replay before training starts.", minimum=1
    )
    replay_ratio: float = setting(
        1.5, "How many times a transition is trained on average.", minimum=1e-3
    )
    priority_exponent: float = setting(
        0.9, "Sequences are sampled in proportion to priority to this power.", minimum=0.0
    )
    importance_sampling_exponent: float = setting(
        0.6, "How far importance weights undo that (0: not, 1: fully).", minimum=0.0, maximum=1.0
    )
    checkpoint_replay: bool = setting(False, "Checkpoints hold the replay, too.")

    def __post_init__(self) -> None:
        if self.replay_buffer_min_size > self.replay_buffer_size:
            raise UserError(
                f"--replay_buffer_min_size: expected at most the {self.replay_buffer_size} of "
                f"--replay_buffer_size, got {self.replay_buffer_min_size}."
            )


class Sample(NamedTuple):
    """Sequences drawn from a replay.

    Attributes:
      keys: int64 [N], for `update_priorities`.
      weights: float32 [N], importance weights, the largest being 1.
      arrays: the sequences, [N, ...] each.
    """

    keys: np.ndarray
    weights: np.ndarray
    arrays: list[np.ndarray]


class PrioritizedReplay:
    """A ring of `capacity` items; the oldest makes room for the newest.

    An item is a flat list of arrays. Sampling is with replacement, item i having the probability
    p_i^priority_exponent / sum_j p_j^priority_exponent. Cumulated sums make a draw O(capacity) in
    one vectorized pass: 0.2 ms for the paper's 100,000 sequences, next to which copying them out is
    long.

    Args:
      specs: of one item's arrays.
      settings: sizes and exponents.
      seed: of the draws.
    """

    def __init__(
        self, specs: Sequence[ArraySpec], settings: ReplaySettings, seed: int | None = None
    ):
        self.capacity = settings.replay_buffer_size
        self._settings = settings
        # The system gives the pages when they are first written: a replay grows into its memory.
        self._arrays = [np.zeros((self.capacity, *spec.shape), spec.dtype) for spec in specs]
        self._masses = np.zeros(self.capacity)
        self._inserted = 0
        self._random = np.random.default_rng(seed)

    def __len__(self) -> int:
        return min(self._inserted, self.capacity)

    def insert(self, arrays: Sequence[np.ndarray], priorities: np.ndarray) -> None:
        """Adds N items.

        Args:
          arrays: [N, ...] each, N at most the capacity.
          priorities: float [N], not negative.
        """
        keys = np.arange(self._inserted, self._inserted + len(priorities))
        slots = keys % self.capacity
        for stored, new in zip(self._arrays, arrays, strict=True):
            stored[slots] = new
        self._masses[slots] = priorities**self._settings.priority_exponent
        self._inserted += len(priorities)

    def sample(self, count: int) -> Sample:
        """Draws `count` items; weights (1 / (n P(i)))^exponent over their maximum (section 3.4)."""
        cumulated = np.cumsum(self._masses[: len(self)])
        total = cumulated[-1]
        if total <= 0.0:  # all priorities are 0: every item is as good as another
            cumulated = np.cumsum(np.ones(len(self)))
            total = cumulated[-1]
        draws = self._random.random(count) * total
        slots = np.minimum(np.searchsorted(cumulated, draws, side="right"), len(self) - 1)
        masses = np.diff(cumulated, prepend=0.0)[slots]
        weights = (masses / total * len(self)) ** -self._settings.importance_sampling_exponent
        return Sample(
            keys=self._keys_in(slots),
            weights=(weights / weights.max()).astype(np.float32),
            arrays=[stored[slots] for stored in self._arrays],
        )

    def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
        """Sets priorities float [N] by key; passes over items that have left."""
        present = keys >= self._inserted - self.capacity
        slots = keys[present] % self.capacity
        self._masses[slots] = priorities[present] ** self._settings.priority_exponent

    def save(self, directory: str, open_file: Callable[[str, str], Any] = open) -> None:
        """Writes the items into an existing empty directory.

        Args:
          directory: where to.
          open_file: opens a file there, given path and mode; need not seek.
        """
        for i, stored in enumerate(self._arrays):
            with open_file(f"{directory}/array_{i}.npy", "wb") as file:
                np.save(file, stored[: len(self)])
        index = io.BytesIO()  # zip files are written back and forth, buckets only forth
        np.savez(
            index,
            masses=self._masses[: len(self)],
            inserted=self._inserted,
            num_arrays=len(self._arrays),
        )
        with open_file(f"{directory}/index.npz", "wb") as file:
            file.write(index.getvalue())

    def load(self, directory: str, open_file: Callable[[str, str], Any] = open) -> None:
        """Takes back what `save` wrote.

        Args:
          directory: where from.
          open_file: as in `save`.

        Raises:
          UserError: the saved items are other arrays, or the saved replay has another capacity.
        """
        with open_file(f"{directory}/index.npz", "rb") as file:
            index = np.load(io.BytesIO(file.read()))
        masses, inserted = index["masses"], int(index["inserted"])
        if len(masses) != min(inserted, self.capacity):
            raise UserError(
                f"--replay_buffer_size: the replay in {directory} holds {len(masses)} sequences of "
                f"{inserted} inserted, which does not fit a size of {self.capacity}."
            )
        num_saved = int(index.get("num_arrays", 0))  # 0: of a version that did not tell
        if num_saved != len(self._arrays):
            raise UserError(
                f"--checkpoint_replay: expected sequences of {len(self._arrays)} arrays in "
                f"{directory}, got {num_saved}; without that directory the replay starts empty."
            )
        for i, stored in enumerate(self._arrays):
            with open_file(f"{directory}/array_{i}.npy", "rb") as file:
                self._load_array(directory, file, stored)
        self._masses[: len(masses)] = masses
        self._inserted = inserted

    def _load_array(self, directory: str, file: BinaryIO, stored: np.ndarray) -> None:
        """Reads an array a few rows at a time: there may be no memory for a second one."""
        np.lib.format.read_magic(file)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        if shape[1:] != stored.shape[1:] or dtype != stored.dtype:
            raise UserError(
                f"--checkpoint_replay: the sequences in {directory} have {dtype} {shape[1:]}, "
                f"expected {stored.dtype} {stored.shape[1:]}."
            )
        for first in range(0, shape[0], _ROWS_READ):
            rows = stored[first : min(first + _ROWS_READ, shape[0])]
            rows[:] = np.frombuffer(file.read(rows.nbytes), dtype).reshape(rows.shape)

    def _keys_in(self, slots: np.ndarray) -> np.ndarray:
        """The keys of the items now in these slots."""
        age = (self._inserted - 1 - slots) % self.capacity
        return self._inserted - 1 - age

"""Where training batches come from: straight from the queue of unrolls, or through a replay."""

from __future__ import annotations

import time
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from seed_rl.algorithm import Algorithm
from seed_rl.queues import StructuredQueue
from seed_rl.replay import PrioritizedReplay, ReplaySettings
from seed_rl.trajectories import Unroll

_POLL_SECS = 0.002
_NO_KEYS = np.zeros(0, np.int64)


class Batch(NamedTuple):
    """Unrolls to train on.

    Attributes:
      unrolls: batch-major [B, T, ...].
      weights: float32 [B], of each unroll's loss.
      keys: int64 [B] of the replay; empty if they come from the queue.
    """

    unrolls: Unroll
    weights: Any
    keys: np.ndarray


class BatchSource(Protocol):
    def poll(self) -> Batch | None:
        """A batch, or None when there is none within some milliseconds."""

    def update_priorities(self, batch: Batch, priorities: Any) -> None:
        """Takes the priorities float32 [B] that training on a batch gave."""


class QueueSource:
    """Each unroll once, in the order of completion."""

    def __init__(self, queue: StructuredQueue, batch_size: int):
        self._queue = queue
        self._batch_size = batch_size
        self._weights = tf.ones([batch_size])

    def poll(self) -> Batch | None:
        if self._queue.size() < self._batch_size:
            time.sleep(_POLL_SECS)
            return None
        return Batch(self._queue.dequeue_many(self._batch_size), self._weights, _NO_KEYS)

    def update_priorities(self, batch: Batch, priorities: Any) -> None:
        """Unrolls from the queue have no priorities."""


class ReplaySource:
    """Sequences sampled from a replay, which takes in unrolls at the pace that --replay_ratio sets.

    Args:
      queue: of completed unrolls.
      replay: holds an unroll's tensors in the order in which tf.nest flattens them.
      algorithm: gives the initial priorities.
      batch_size: B.
      settings: the ratio of trained to inserted sequences, and the size before the first batch.
    """

    def __init__(
        self,
        queue: StructuredQueue,
        replay: PrioritizedReplay,
        algorithm: Algorithm,
        batch_size: int,
        settings: ReplaySettings,
    ):
        self._queue = queue
        self._replay = replay
        self._initial_priorities = tf.function(
            algorithm.initial_priorities, reduce_retracing=True, autograph=False
        )
        self._batch_size = batch_size
        self._inserts_per_batch = batch_size / settings.replay_ratio
        self._owed = float(max(0, settings.replay_buffer_min_size - len(replay)))

    def poll(self) -> Batch | None:
        while self._owed >= 1.0:
            count = min(int(self._owed), self._queue.size(), self._replay.capacity)
            if not count:
                time.sleep(_POLL_SECS)
                return None
            self._insert(self._queue.dequeue_many(count))
            self._owed -= count
        self._owed += self._inserts_per_batch
        sample = self._replay.sample(self._batch_size)
        return Batch(self._queue.pack(sample.arrays), sample.weights, sample.keys)

    def update_priorities(self, batch: Batch, priorities: Any) -> None:
        self._replay.update_priorities(batch.keys, priorities.numpy())

    def _insert(self, unrolls: Unroll) -> None:
        priorities = self._initial_priorities(unrolls).numpy()
        self._replay.insert([leaf.numpy() for leaf in tf.nest.flatten(unrolls)], priorities)

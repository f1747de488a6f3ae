"""A queue of nested structures: how unrolls and episodes leave the inference function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


class StructuredQueue:
    """First in, first out. Producers in graphs block while it is full; consumers look at `size`
    first.

    Args:
      spec: TensorSpecs of one element.
      capacity: elements it holds.
    """

    def __init__(self, spec: Any, capacity: int):
        self._spec = spec
        leaves = tf.nest.flatten(spec)
        self._queue = tf.queue.FIFOQueue(
            capacity, [leaf.dtype for leaf in leaves], [leaf.shape for leaf in leaves]
        )

    def enqueue_many(self, elements: Any) -> None:
        """Adds elements [N, ...]; waits for room."""
        self._queue.enqueue_many(tf.nest.flatten(elements))

    def dequeue_many(self, count: int) -> Any:
        """Takes `count` elements out: [count, ...]; waits for them."""
        leaves = self._queue.dequeue_many(count)
        return self.pack(leaves if isinstance(leaves, list) else [leaves])

    def pack(self, leaves: Sequence[Any]) -> Any:
        """Gives leaves (as tf.nest.flatten orders them) the structure of an element."""
        return tf.nest.pack_sequence_as(self._spec, leaves)

    def size(self) -> int:
        return int(self._queue.size())

    def close(self) -> None:
        """Lets waiting producers fail with tf.errors.CancelledError."""
        self._queue.close(cancel_pending_enqueues=True)

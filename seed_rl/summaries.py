"""TensorBoard summaries."""

from __future__ import annotations

from collections.abc import Mapping

import tensorflow as tf


class Summaries:
    """Writes scalars against environment frames.

    Args:
      directory: where to.
    """

    def __init__(self, directory: str):
        self._writer = tf.summary.create_file_writer(directory)

    def write(self, metrics: Mapping[str, object], frames: int) -> None:
        """Writes scalars by name."""
        with self._writer.as_default(step=frames):
            for name, value in metrics.items():
                tf.summary.scalar(name, value)

    def flush(self) -> None:
        self._writer.flush()

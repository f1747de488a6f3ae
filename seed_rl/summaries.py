"""TensorBoard summaries and the returns that the live line shows."""

from __future__ import annotations

import collections
import statistics
from collections.abc import Mapping

import tensorflow as tf

from seed_rl.episodes import Episode

_RECENT_EPISODES = 100


class Summaries:
    """Writes scalars against environment frames.

    Args:
      directory: where to.
      num_training_envs: environments with ids from this on are evaluation ones.
      episode_frequency: of each kind's episodes, every so many are written.
    """

    def __init__(self, directory: str, num_training_envs: int, episode_frequency: int = 1):
        self._writer = tf.summary.create_file_writer(directory)
        self._num_training_envs = num_training_envs
        self._episode_frequency = episode_frequency
        self._returns: dict[str, collections.deque[float]] = {
            kind: collections.deque(maxlen=_RECENT_EPISODES) for kind in ("training", "evaluation")
        }
        self._counts = collections.Counter[str]()

    def mean_return(self, kind: str = "training") -> float | None:
        """Mean undiscounted return of the last 100 episodes of a kind."""
        return statistics.fmean(self._returns[kind]) if self._returns[kind] else None

    def write(self, metrics: Mapping[str, object], frames: int) -> None:
        """Writes scalars by name."""
        with self._writer.as_default(step=frames):
            for name, value in metrics.items():
                tf.summary.scalar(name, value)

    def write_episodes(self, episodes: Episode, frames: int) -> None:
        """Takes ended episodes [N] in."""
        for env_id, episode_return, length in zip(
            *(field.numpy() for field in episodes), strict=True
        ):
            kind = "training" if env_id < self._num_training_envs else "evaluation"
            self._returns[kind].append(float(episode_return))
            self._counts[kind] += 1
            if self._counts[kind] % self._episode_frequency == 0:
                self.write(
                    {
                        f"{kind}/return": episode_return,
                        f"{kind}/length": length,
                        f"{kind}/mean_return": self.mean_return(kind),
                    },
                    frames,
                )

    def flush(self) -> None:
        self._writer.flush()

"""Statistics of the environments' episodes, kept while they run."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from seed_rl.queues import StructuredQueue
from seed_rl.trajectories import TimeStep
from seed_rl.unrolls import EnvironmentTable

# Episodes that end between two looks of the learner; more of them than this wait in inference.
_CAPACITY = 100_000


class Episode(NamedTuple):
    """An episode that has ended.

    Attributes:
      env_id: int32.
      undiscounted_return: float32, the sum of the rewards as the environment gave them.
      length: int32, steps (not engine frames).
    """

    env_id: tf.Tensor
    undiscounted_return: tf.Tensor
    length: tf.Tensor


class _Running(NamedTuple):
    """An episode that goes on; `seen` says whether from its first step on."""

    seen: tf.Tensor
    undiscounted_return: tf.Tensor
    length: tf.Tensor


_EPISODE_SPEC = Episode(*(tf.TensorSpec([], dtype) for dtype in (tf.int32, tf.float32, tf.int32)))
_RUNNING_SPEC = _Running(*(tf.TensorSpec([], dtype) for dtype in (tf.bool, tf.float32, tf.int32)))


class EpisodeStatistics(tf.Module):
    """Return and length of each environment's running episode, and a queue of the ended ones.

    An episode whose beginning was not seen (its environment came in the middle of it) is not
    reported, nor is one of an environment id that does not exist.

    Args:
      num_envs: environments; ids up to and including this are kept, those below are reported.
    """

    def __init__(self, num_envs: int):
        super().__init__()
        self._num_envs = num_envs
        self._running = EnvironmentTable(_RUNNING_SPEC, num_envs + 1)
        self.ended = StructuredQueue(_EPISODE_SPEC, _CAPACITY)

    def update(self, env_ids: tf.Tensor, is_new_run: tf.Tensor, time_step: TimeStep) -> None:
        """Takes one time step [N, ...] of the environments int32 [N]."""
        seen, returns, lengths = self._running.read(env_ids)
        is_first = time_step.is_first()
        seen = is_first | (seen & ~is_new_run)
        returns = tf.where(is_first, 0.0, returns + time_step.reward)
        lengths = tf.where(is_first, 0, lengths + 1)
        self._running.write(env_ids, _Running(seen, returns, lengths))
        ended = time_step.is_last() & seen & (env_ids < self._num_envs)
        self.ended.enqueue_many(
            tf.nest.map_structure(
                lambda x: tf.boolean_mask(x, ended), Episode(env_ids, returns, lengths)
            )
        )

"""Statistics of the environments' episodes, kept while they run."""

from __future__ import annotations

from typing import Any, NamedTuple

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
      score: float32, the sum of the scores; () in domains without.
    """

    env_id: tf.Tensor
    undiscounted_return: tf.Tensor
    length: tf.Tensor
    score: Any


class _Running(NamedTuple):
    """An episode that goes on; `seen` says whether from its first step on."""

    seen: tf.Tensor
    undiscounted_return: tf.Tensor
    length: tf.Tensor
    score: Any


class EpisodeStatistics(tf.Module):
    """Return, length and score of each environment's running episode; a queue of the ended ones.

    An episode whose beginning was not seen (its environment came in the middle of it) is not
    reported, nor is one of an environment id that does not exist.

    Args:
      num_envs: environments; ids up to and including this are kept, those below are reported.
      has_score: whether there are scores.
    """

    def __init__(self, num_envs: int, has_score: bool = False):
        super().__init__()
        self._num_envs = num_envs
        flag, integer, real = (tf.TensorSpec([], x) for x in (tf.bool, tf.int32, tf.float32))
        score = real if has_score else ()
        self._running = EnvironmentTable(_Running(flag, real, integer, score), num_envs + 1)
        self.ended = StructuredQueue(Episode(integer, real, integer, score), _CAPACITY)

    def update(
        self, env_ids: tf.Tensor, is_new_run: tf.Tensor, time_step: TimeStep, score: Any = ()
    ) -> None:
        """Takes one time step [N, ...] of the environments int32 [N], and their scores if any."""
        seen, returns, lengths, scores = self._running.read(env_ids)
        is_first = time_step.is_first()
        seen = is_first | (seen & ~is_new_run)
        returns, scores = tf.nest.map_structure(
            lambda total, new: tf.where(is_first, 0.0, total + new),
            (returns, scores),
            (time_step.reward, score),
        )
        lengths = tf.where(is_first, 0, lengths + 1)
        self._running.write(env_ids, _Running(seen, returns, lengths, scores))
        ended = time_step.is_last() & seen & (env_ids < self._num_envs)
        self.ended.enqueue_many(
            tf.nest.map_structure(
                lambda x: tf.boolean_mask(x, ended), Episode(env_ids, returns, lengths, scores)
            )
        )

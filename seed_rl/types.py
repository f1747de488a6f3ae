"""What environments, actors and the learner say to each other, in NumPy terms (no TensorFlow)."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


class StepType(enum.IntEnum):
    """Where a time step stands in its episode; the values are dm_env's and TF-Agents'."""

    FIRST = 0
    MID = 1
    LAST = 2


class TimeStep(NamedTuple):
    """What an environment shows after a reset or an action: as TF-Agents' TimeStep, and a score.

    The leading dimension of every field is the environment, N.

    Attributes:
      step_type: int32 [N], a StepType.
      reward: float32 [N], for the action before this observation; 0 at FIRST.
      discount: float32 [N], 0 where the return ends with this step (termination, a lost life) and 1
        elsewhere, so that a truncated episode (LAST with discount 1) is bootstrapped.
      observation: array or nested structure of arrays [N, ...]; at LAST the episode's true final
        one.
      score: float32 [N], what the reward would be without shaping, which the statistics tell apart;
        () in domains whose rewards are not shaped.
    """

    step_type: np.ndarray
    reward: np.ndarray
    discount: np.ndarray
    observation: Any
    score: Any = ()


@dataclasses.dataclass(frozen=True)
class ArraySpec:
    """Shape (without batch dimensions) and dtype of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @classmethod
    def of(cls, shape: tuple[int, ...], dtype: Any) -> ArraySpec:
        return cls(tuple(shape), np.dtype(dtype))


@dataclasses.dataclass(frozen=True)
class EnvironmentSpec:
    """What a learner must know of a domain's environments.

    Attributes:
      observation: an ArraySpec or a mapping of names to them: one environment's observation.
      num_actions: size of the discrete action set.
      frames_per_step: engine frames that one step takes (the action repeat).
      has_score: whether time steps have a score beside the reward.
    """

    observation: ArraySpec | Mapping[str, ArraySpec]
    num_actions: int
    frames_per_step: int = 1
    has_score: bool = False

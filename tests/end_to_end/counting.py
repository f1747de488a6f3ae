"""A domain whose observations say exactly where and when they were made: int32 [5], see Stamp.

Steps of two runs that came to stand in one unroll show at once. As a program this is an actor:
python -m tests.end_to_end.counting SERVER_ADDRESS TASK ENVIRONMENTS
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from seed_rl import actor
from seed_rl.domain import Domain
from seed_rl.environments import VectorEnvironment, vectorize
from seed_rl.settings import setting
from seed_rl.types import ArraySpec, EnvironmentSpec

NUM_ACTIONS = 7


class Stamp(NamedTuple):
    """What is in an observation.

    Attributes:
      process: id of the actor's process.
      seed: of the environment, which tells it from the others of its actor.
      episode: count of this environment's resets.
      step: of the episode; 0 at FIRST.
      action: the last one that the environment was given; 0 at FIRST.
    """

    process: Any
    seed: Any
    episode: Any
    step: Any
    action: Any


@dataclasses.dataclass(frozen=True)
class CountingSettings:
    max_episode_steps: int = setting(9, "Lengths of episodes are random, up to this.", minimum=1)


class Counting(gymnasium.Env):
    """Actions change nothing but the next observation's `action`."""

    observation_space = gymnasium.spaces.Box(0, np.iinfo(np.int32).max, (5,), np.int32)
    action_space = gymnasium.spaces.Discrete(NUM_ACTIONS)

    def __init__(self, settings: CountingSettings):
        self._max_episode_steps = settings.max_episode_steps
        self._episode = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._episode += 1
        self._step = 0
        self._length = self.np_random.integers(1, self._max_episode_steps, endpoint=True)
        return self._observation(action=0), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._step += 1
        return self._observation(action), 0.0, self._step == self._length, False, {}

    def _observation(self, action: int) -> np.ndarray:
        stamp = Stamp(os.getpid(), self.np_random_seed, self._episode, self._step, action)
        return np.array(stamp, np.int32)


def spec(settings: CountingSettings) -> EnvironmentSpec:
    return EnvironmentSpec(ArraySpec.of((len(Stamp._fields),), np.int32), NUM_ACTIONS)


def make_environments(settings: CountingSettings, seeds: Sequence[int]) -> VectorEnvironment:
    return vectorize(lambda: Counting(settings), seeds)


DOMAIN = Domain(CountingSettings, spec, make_environments)

if __name__ == "__main__":
    address, task, environments = sys.argv[1:]
    settings = actor.ActorSettings(task=int(task), env_batch_size=int(environments))
    actor.run(address, settings, DOMAIN)

"""From the old gym API, which the football engine's Python module speaks, to Gymnasium's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np


class OldGymAdapter(gymnasium.Env):
    """An environment of gym before 0.26 with discrete actions as a gymnasium.Env.

    There reset returns only an observation, step returns (observation, reward, done, info), and
    nothing says whether an end is a time limit's.

    Args:
      env: with observations in a Box and actions in a Discrete of gym.
      seed_next_episode: takes the seed, an int in [0, 2^31 - 1), of the episode that the next reset
        starts. Episodes without a seed of their own get one from the environment's generator.
      is_time_up: whether the episode that has just ended was cut off by its time limit.
    """

    def __init__(
        self,
        env: Any,
        seed_next_episode: Callable[[int], None],
        is_time_up: Callable[[], bool],
    ):
        self._env = env
        self._seed_next_episode = seed_next_episode
        self._is_time_up = is_time_up
        space = env.observation_space
        self.observation_space = gymnasium.spaces.Box(space.low, space.high, dtype=space.dtype.type)
        self.action_space = gymnasium.spaces.Discrete(int(env.action_space.n))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._seed_next_episode(int(self.np_random.integers(2**31 - 1)))
        return self._env.reset(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        observation, reward, done, info = self._env.step(int(action))
        truncated = done and self._is_time_up()
        return observation, float(reward), done and not truncated, truncated, info

    def close(self) -> None:
        self._env.close()

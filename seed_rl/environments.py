"""From Gymnasium's vector environments to time steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import gymnasium
import numpy as np

from seed_rl.types import StepType, TimeStep


class VectorEnvironment(Protocol):
    """N environments that step together. NEXT_STEP autoreset: the step after a LAST one is FIRST."""

    def reset(self) -> TimeStep:
        """Starts an episode in every environment and returns FIRST time steps."""

    def step(self, actions: np.ndarray) -> TimeStep:
        """Applies int32 actions [N]; where the last time step was LAST, resets instead."""

    def close(self) -> None: ...


class GymnasiumVector:
    """A gymnasium.vector.VectorEnv as a VectorEnvironment.

    Args:
      env: autoresets in NEXT_STEP mode.
      seeds: one per environment; used by the first reset.
    """

    def __init__(self, env: gymnasium.vector.VectorEnv, seeds: Sequence[int]):
        mode = env.metadata.get("autoreset_mode")
        if mode != gymnasium.vector.AutoresetMode.NEXT_STEP:
            raise ValueError(f"env: expected a vector environment in NEXT_STEP mode, got {mode}.")
        if len(seeds) != env.num_envs:
            raise ValueError(f"seeds: expected {env.num_envs}, one per environment, got {len(seeds)}.")
        self._env = env
        self._seeds: list[int] | None = [int(seed) for seed in seeds]
        self._was_last = np.zeros(env.num_envs, bool)

    def reset(self) -> TimeStep:
        observation, _ = self._env.reset(seed=self._seeds)
        self._seeds = None  # later episodes go on from the generators that these seeds started
        zeros = np.zeros(self._env.num_envs, np.float32)
        self._was_last = np.zeros(self._env.num_envs, bool)
        first = np.full(self._env.num_envs, StepType.FIRST, np.int32)
        return TimeStep(first, zeros, np.ones_like(zeros), observation)

    def step(self, actions: np.ndarray) -> TimeStep:
        observation, reward, terminated, truncated, info = self._env.step(actions)
        last, discount = self._endings(terminated, truncated, info)
        step_type = np.where(self._was_last, StepType.FIRST, np.where(last, StepType.LAST, StepType.MID))
        self._was_last = last
        return TimeStep(
            step_type.astype(np.int32), reward.astype(np.float32), discount.astype(np.float32), observation
        )

    def close(self) -> None:
        self._env.close()

    def _endings(
        self, terminated: np.ndarray, truncated: np.ndarray, info: dict[str, Any]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which episodes end here (bool [N]), and the discounts [N]."""
        del info
        return terminated | truncated, 1.0 - terminated


def vectorize(
    make_env: Callable[[], gymnasium.Env], seeds: Sequence[int]
) -> GymnasiumVector:
    """len(seeds) copies of a Gymnasium environment, stepped one after the other in this process."""
    env = gymnasium.vector.SyncVectorEnv(
        [make_env] * len(seeds), autoreset_mode=gymnasium.vector.AutoresetMode.NEXT_STEP
    )
    return GymnasiumVector(env, seeds)

"""From Gymnasium's vector environments to time steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import gymnasium
import numpy as np

from seed_rl.types import StepType, TimeStep

# Where an environment's info has it, the return ends though the episode goes on: a lost life.
RETURN_ENDED = "return_ended"
# And what its reward would be without shaping.
SCORE = "score"


class VectorEnvironment(Protocol):
    """N environments that step together (NEXT_STEP autoreset: the step after a LAST is FIRST)."""

    def reset(self) -> TimeStep:
        """Starts an episode in every environment and returns FIRST time steps."""

    def step(self, actions: np.ndarray) -> TimeStep:
        """Applies int32 actions [N]; where the last time step was LAST, resets instead."""

    def close(self) -> None: ...


class GymnasiumVector:
    """A gymnasium.vector.VectorEnv as a VectorEnvironment.

    A step's discount is 0 where `terminated` or info[RETURN_ENDED] (bool [N], optional) is True,
    and its score is info[SCORE] (float [N]).

    Args:
      env: autoresets in NEXT_STEP mode.
      seeds: one per environment, in the form that `env.reset` takes; used by the first reset.
      has_score: whether time steps have a score.
    """

    def __init__(
        self,
        env: gymnasium.vector.VectorEnv,
        seeds: Sequence[int] | np.ndarray,
        has_score: bool = False,
    ):
        mode = env.metadata.get("autoreset_mode")
        if mode != gymnasium.vector.AutoresetMode.NEXT_STEP:
            raise ValueError(f"env: expected a vector environment in NEXT_STEP mode, got {mode}.")
        if len(seeds) != env.num_envs:
            raise ValueError(
                f"seeds: expected {env.num_envs}, one per environment, got {len(seeds)}."
            )
        self._env = env
        self._seeds: Any = seeds
        self._has_score = has_score
        self._was_last = np.zeros(env.num_envs, bool)

    def reset(self) -> TimeStep:
        observation, _ = self._env.reset(seed=self._seeds)
        self._seeds = None  # later episodes go on from the generators that these seeds started
        self._was_last = np.zeros_like(self._was_last)
        step_type = np.full(self._env.num_envs, StepType.FIRST, np.int32)
        reward = np.zeros(self._env.num_envs, np.float32)
        return TimeStep(step_type, reward, np.ones_like(reward), observation, self._score({}))

    def step(self, actions: np.ndarray) -> TimeStep:
        # Not every engine checks: ALE, for one, never returns from an action it does not know.
        if not self._env.action_space.contains(actions):
            raise ValueError(f"actions: expected one of {self._env.action_space}, got {actions!r}.")
        observation, reward, terminated, truncated, info = self._env.step(actions)
        is_last = terminated | truncated
        step_type = np.where(is_last, StepType.LAST, StepType.MID).astype(np.int32)
        step_type[self._was_last] = StepType.FIRST
        discount = 1 - (terminated | info.get(RETURN_ENDED, False)).astype(np.float32)
        discount[self._was_last] = 1
        reward = reward.astype(np.float32)
        reward[self._was_last] = 0
        self._was_last = is_last
        return TimeStep(step_type, reward, discount, observation, self._score(info))

    def _score(self, info: Mapping[str, Any]) -> Any:
        """float32 [N], 0 where the info is a reset's; () without scores."""
        zeros = np.zeros(self._env.num_envs, np.float32)
        return zeros + info.get(SCORE, zeros).astype(np.float32) if self._has_score else ()

    def close(self) -> None:
        self._env.close()


def vectorize(
    make_env: Callable[[], gymnasium.Env], seeds: Sequence[int], has_score: bool = False
) -> GymnasiumVector:
    """len(seeds) copies of a Gymnasium environment, stepped one after the other in this process."""
    env = gymnasium.vector.SyncVectorEnv(
        [make_env] * len(seeds), autoreset_mode=gymnasium.vector.AutoresetMode.NEXT_STEP
    )
    return GymnasiumVector(env, list(seeds), has_score)

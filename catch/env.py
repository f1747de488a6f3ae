"""Catch: a ball falls, a paddle at the bottom should be under it. An example of a domain.

The size is that of bsuite (Osband et al., 2020, arXiv 1908.03568). The best return is 1. Random
play has a mean of exactly 2 / columns - 1, here -0.6: it ignores the ball, whose column is uniform.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from seed_rl.domain import Domain
from seed_rl.environments import VectorEnvironment, vectorize
from seed_rl.settings import setting
from seed_rl.types import ArraySpec, EnvironmentSpec


@dataclasses.dataclass(frozen=True)
class CatchSettings:
    """Size of the board."""

    rows: int = setting(10, "Rows of the board; an episode takes one step less.", minimum=2)
    columns: int = setting(5, "Columns of the board.", minimum=1)


class Catch(gymnasium.Env):
    """Actions: 0 moves the paddle left, 1 leaves it, 2 moves it right. Reward at the end: 1 or -1.

    Observations are uint8 [rows, columns]: 255 where the ball and the paddle are, else 0.
    """

    def __init__(self, settings: CatchSettings):
        self._rows, self._columns = settings.rows, settings.columns
        shape = (settings.rows, settings.columns)
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8)
        self.action_space = gymnasium.spaces.Discrete(3)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._ball_row, self._ball_column = 0, int(self.np_random.integers(self._columns))
        self._paddle = self._columns // 2
        return self._board(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._ball_row += 1
        self._paddle = min(max(self._paddle + int(action) - 1, 0), self._columns - 1)
        terminated = self._ball_row == self._rows - 1
        caught = self._paddle == self._ball_column
        reward = (1.0 if caught else -1.0) if terminated else 0.0
        return self._board(), reward, terminated, False, {}

    def _board(self) -> np.ndarray:
        board = np.zeros((self._rows, self._columns), np.uint8)
        board[self._ball_row, self._ball_column] = 255
        board[-1, self._paddle] = 255
        return board


def spec(settings: CatchSettings) -> EnvironmentSpec:
    return EnvironmentSpec(ArraySpec.of((settings.rows, settings.columns), np.uint8), num_actions=3)


def make_environments(settings: CatchSettings, seeds: Sequence[int]) -> VectorEnvironment:
    return vectorize(lambda: Catch(settings), seeds)


DOMAIN = Domain(CatchSettings, spec, make_environments)

"""Environments of several tasks in one actor, on Catch boards whose sizes tell the tasks apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from catch.env import DOMAIN as CATCH
from catch.env import CatchSettings
from seed_rl.domain import Domain
from seed_rl.environments import VectorEnvironment
from seed_rl.multitask import make_environments, task_number
from seed_rl.types import StepType, TimeStep

FIRST, MID, LAST = StepType.FIRST, StepType.MID, StepType.LAST
TASKS = {"short": CatchSettings(rows=2), "long": CatchSettings(rows=4)}


class Padded:
    """Catch boards on 4 rows, as one part of an observation of two."""

    def __init__(self, settings: CatchSettings, seeds: Sequence[int]):
        self._env = CATCH.make_environments(settings, seeds)
        self.closed = False

    def reset(self) -> TimeStep:
        return self._pad(self._env.reset())

    def step(self, actions: np.ndarray) -> TimeStep:
        return self._pad(self._env.step(actions))

    def close(self) -> None:
        self.closed = True
        self._env.close()

    def _pad(self, step: TimeStep) -> TimeStep:
        rows = step.observation.shape[1]
        board = np.pad(step.observation, ((0, 0), (0, 4 - rows), (0, 0)))
        return step._replace(observation={"board": board, "rows": np.full(len(board), rows)})


@dataclasses.dataclass
class Made:
    """A part that the domain was asked for."""

    settings: Any
    seeds: list[int]
    env: Padded


@pytest.fixture
def made() -> list[Made]:
    return []


@pytest.fixture
def domain(made: list[Made]) -> Domain:
    def make(settings: CatchSettings, seeds: Sequence[int]) -> VectorEnvironment:
        made.append(Made(settings, list(seeds), Padded(settings, seeds)))
        return made[-1].env

    def evaluation(settings: CatchSettings) -> CatchSettings:
        return dataclasses.replace(settings, columns=3)

    return dataclasses.replace(
        CATCH, make_environments=make, tasks=lambda _: TASKS, evaluation=evaluation
    )


@pytest.mark.parametrize(
    ("num_training_envs", "tasks"),
    [(8, [0, 1, 2, 0, 1, 2, 0, 1]), (4, [0, 1, 2, 0, 0, 1, 2, 0])],
)
def test_environment_i_plays_task_i_mod_n(num_training_envs: int, tasks: list[int]) -> None:
    assert [task_number(env_id, num_training_envs, 3) for env_id in range(8)] == tasks


def test_rows_are_in_the_order_of_the_environments(domain: Domain, made: list[Made]) -> None:
    seeds = {env_id: 100 + env_id for env_id in range(3, 8)}
    env = make_environments(domain, CatchSettings(), seeds, num_training_envs=8)
    assert [(part.settings, part.seeds) for part in made] == [
        (TASKS["long"], [103, 105, 107]),
        (TASKS["short"], [104, 106]),
    ]
    first = env.reset()
    assert first.observation["rows"].tolist() == [4, 2, 4, 2, 4]
    for row, env_id in enumerate(seeds):
        task = TASKS["long" if env_id % 2 else "short"]
        alone = Padded(task, [seeds[env_id]]).reset()
        np.testing.assert_array_equal(
            first.observation["board"][row], alone.observation["board"][0]
        )


def test_each_environment_gets_its_own_action(domain: Domain) -> None:
    env = make_environments(domain, CatchSettings(), {0: 0, 1: 1, 2: 2, 3: 3}, 4)
    env.reset()
    actions = np.array([0, 2, 2, 0], np.int32)
    step = env.step(actions)
    assert step.step_type.tolist() == [LAST, MID, LAST, MID]
    bottom = [step.observation["board"][row, rows - 1] for row, rows in enumerate([2, 4, 2, 4])]
    start = 5 // 2
    for line, action in zip(bottom, actions, strict=True):
        assert line[start + action - 1] == 255
    assert env.step(np.ones(4, np.int32)).step_type.tolist() == [FIRST, MID, FIRST, MID]


def test_evaluation_environments_have_settings_of_their_own(
    domain: Domain, made: list[Made]
) -> None:
    make_environments(domain, CatchSettings(), {0: 0, 1: 1, 2: 2}, num_training_envs=1)
    assert [(part.settings.rows, part.settings.columns) for part in made] == [
        (2, 5),  # environment 0 trains the first task
        (2, 3),  # environment 1 is the first that evaluates
        (4, 3),
    ]


def test_environments_of_one_task_step_together(domain: Domain, made: list[Made]) -> None:
    env = make_environments(domain, CatchSettings(), {0: 0, 2: 2}, num_training_envs=4)
    assert env is made[0].env
    assert made[0].seeds == [0, 2]


def test_close_reaches_every_part(domain: Domain, made: list[Made]) -> None:
    env = make_environments(domain, CatchSettings(), {0: 0, 1: 1}, num_training_envs=2)
    env.close()
    assert [part.env.closed for part in made] == [True, True]

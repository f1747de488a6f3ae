"""Several tasks in one run: who plays what, and environments of several tasks in one actor."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seed_rl.domain import Domain
from seed_rl.environments import VectorEnvironment
from seed_rl.types import TimeStep


def task_number(env_id: int, num_training_envs: int, num_tasks: int) -> int:
    """Which of the tasks an environment plays: i mod n, counted anew in evaluation environments.

    Args:
      env_id: of all environments; those from num_training_envs on are for evaluation.
      num_training_envs: environments that are trained on.
      num_tasks: n.
    """
    return (env_id if env_id < num_training_envs else env_id - num_training_envs) % num_tasks


def make_environments(
    domain: Domain, settings: Any, seeds: Mapping[int, int], num_training_envs: int
) -> VectorEnvironment:
    """The environments of one actor, in the order of `seeds`, each with its task.

    Args:
      domain: whose environments.
      settings: of all tasks together, an instance of domain.settings.
      seeds: by environment id.
      num_training_envs: environments with ids from this on are for evaluation.
    """
    tasks = list(domain.tasks(settings).values())
    rows = collections.defaultdict[tuple[bool, int], list[int]](list)
    for row, env_id in enumerate(seeds):
        is_training = env_id < num_training_envs
        rows[is_training, task_number(env_id, num_training_envs, len(tasks))].append(row)

    ordered = list(seeds.values())
    parts = []
    for (is_training, task), members in rows.items():
        own = tasks[task] if is_training else domain.evaluation(tasks[task])
        parts.append(domain.make_environments(own, [ordered[row] for row in members]))
    return parts[0] if len(parts) == 1 else _Interleaved(parts, list(rows.values()))


class _Interleaved:
    """Vector environments side by side as one.

    Args:
      parts: step one after the other.
      rows: for each part, where its environments stand among all.
    """

    def __init__(self, parts: Sequence[VectorEnvironment], rows: Sequence[Sequence[int]]):
        self._parts = parts
        self._rows = rows
        self._order = np.argsort(np.concatenate(rows))  # from side by side to in order

    def reset(self) -> TimeStep:
        return self._join([part.reset() for part in self._parts])

    def step(self, actions: np.ndarray) -> TimeStep:
        pairs = zip(self._parts, self._rows, strict=True)
        return self._join([part.step(actions[rows]) for part, rows in pairs])

    def close(self) -> None:
        for part in self._parts:
            part.close()

    def _join(self, steps: Sequence[TimeStep]) -> TimeStep:
        return TimeStep(*(self._interleave(fields) for fields in zip(*steps, strict=True)))

    def _interleave(self, parts: Sequence[Any]) -> Any:
        """One structure of arrays [N, ...] from each part's; () where they have none."""
        if isinstance(parts[0], Mapping):
            return {name: self._interleave([part[name] for part in parts]) for name in parts[0]}
        return np.concatenate(parts)[self._order] if isinstance(parts[0], np.ndarray) else ()

"""What a domain (Atari, DeepMind Lab, Football, your own) brings to the runtime."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from seed_rl.environments import VectorEnvironment
from seed_rl.human_scores import HumanScore
from seed_rl.types import EnvironmentSpec


def _one_task(settings: Any) -> Mapping[str, Any]:
    return {"": settings}


def _as_in_training(settings: Any) -> Any:
    return settings


@dataclasses.dataclass(frozen=True)
class Domain:
    """A family of environments.

    Attributes:
      settings: dataclass of the domain's own settings (see seed_rl/settings.py). The learner sends
        its instance to the actors as JSON.
      spec: from an instance of `settings` to what the learner must know of the environments, which
        must be the same for all tasks.
      make_environments: from an instance of `settings` that is one task's and one seed per
        environment to environments.
      tasks: from an instance of `settings` to the tasks that it names, each with settings of its
        own: the games of a multi-task run. Environment i plays task i mod their number.
      evaluation: from one task's settings to those of its evaluation environments.
      human_scores: by task, where they are known.
    """

    settings: type
    spec: Callable[[Any], EnvironmentSpec]
    make_environments: Callable[[Any, Sequence[int]], VectorEnvironment]
    tasks: Callable[[Any], Mapping[str, Any]] = _one_task
    evaluation: Callable[[Any], Any] = _as_in_training
    human_scores: Mapping[str, HumanScore] = dataclasses.field(default_factory=dict)

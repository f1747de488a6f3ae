"""What a domain (Atari, DeepMind Lab, Football, your own) brings to the runtime."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from seed_rl.environments import VectorEnvironment
from seed_rl.types import EnvironmentSpec


@dataclasses.dataclass(frozen=True)
class Domain:
    """A family of environments.

    Attributes:
      settings: dataclass of the domain's own settings (see seed_rl/settings.py). The learner sends
        its instance to the actors as JSON.
      spec: from an instance of `settings` to what the learner must know of the environments.
      make_environments: from an instance of `settings` and one seed per environment to
        environments.
    """

    settings: type
    spec: Callable[[Any], EnvironmentSpec]
    make_environments: Callable[[Any, Sequence[int]], VectorEnvironment]

"""R2D2 on any domain: what a <domain>/r2d2_main.py is made of (no TensorFlow until it learns)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agents.r2d2.settings import LEARNER_DEFAULTS, R2D2Settings
from seed_rl.domain import Domain
from seed_rl.learner_settings import LearnerSettings
from seed_rl.main import Experiment, Settings
from seed_rl.replay import ReplaySettings
from seed_rl.types import EnvironmentSpec

if TYPE_CHECKING:
    from seed_rl.algorithm import Algorithm
    from seed_rl.network import Network


def r2d2_experiment(
    domain: Domain,
    create_network: Callable[[Settings, EnvironmentSpec], Network],
    network_settings: tuple[type, ...] = (),
    defaults: Mapping[str, Any] | None = None,
) -> Experiment:
    """An Experiment with R2D2.

    Args:
      domain: the environments.
      create_network: makes a network that returns Q values; called on the learner only.
      network_settings: dataclasses of the networks' settings.
      defaults: the domain's defaults, by flag.
    """

    def create_algorithm(settings: Settings, spec: EnvironmentSpec) -> Algorithm:
        from agents.r2d2.agent import R2D2

        learner = settings[LearnerSettings]
        return R2D2(
            create_network=lambda: create_network(settings, spec),
            num_training_envs=learner.num_training_envs,
            num_eval_envs=learner.num_eval_envs,
            settings=settings[R2D2Settings],
        )

    return Experiment(
        domain=domain,
        settings=(R2D2Settings, ReplaySettings, *network_settings),
        create_algorithm=create_algorithm,
        defaults={**LEARNER_DEFAULTS, **(defaults or {})},
    )

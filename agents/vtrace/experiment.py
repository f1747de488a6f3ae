"""V-trace on any domain: what a <domain>/vtrace_main.py is made of (no TensorFlow until it
learns)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agents.vtrace.settings import LEARNER_DEFAULTS, VTraceSettings
from seed_rl.domain import Domain
from seed_rl.main import Experiment, Settings
from seed_rl.types import EnvironmentSpec

if TYPE_CHECKING:
    from seed_rl.algorithm import Algorithm
    from seed_rl.network import Network


def vtrace_experiment(
    domain: Domain,
    create_network: Callable[[Settings, EnvironmentSpec], Network],
    network_settings: tuple[type, ...] = (),
    defaults: Mapping[str, Any] | None = None,
) -> Experiment:
    """An Experiment with V-trace.

    Args:
      domain: the environments.
      create_network: makes a network that returns an ActorCriticOutput; called on the learner only.
      network_settings: dataclasses of the networks' settings.
      defaults: the domain's defaults, by flag.
    """

    def create_algorithm(settings: Settings, spec: EnvironmentSpec) -> Algorithm:
        from agents.vtrace.agent import VTrace

        return VTrace(
            create_network=lambda: create_network(settings, spec),
            num_actions=spec.num_actions,
            settings=settings[VTraceSettings],
        )

    return Experiment(
        domain=domain,
        settings=(VTraceSettings, *network_settings),
        create_algorithm=create_algorithm,
        defaults={**LEARNER_DEFAULTS, **(defaults or {})},
    )

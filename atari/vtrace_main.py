"""V-trace on Atari: `./run_local.sh atari vtrace 4`; all flags: `python -m atari.vtrace_main --help`."""

from __future__ import annotations

from agents.vtrace.settings import LEARNER_DEFAULTS, VTraceSettings
from atari.env import DOMAIN
from atari.network_settings import NetworkSettings
from seed_rl import main
from seed_rl.learner_settings import DeviceSettings
from seed_rl.types import EnvironmentSpec


def create_algorithm(settings: main.Settings, spec: EnvironmentSpec):
    from agents.vtrace.agent import VTrace
    from atari.networks import actor_critic

    return VTrace(
        create_network=lambda: actor_critic(
            spec, settings[NetworkSettings], settings[DeviceSettings].precision
        ),
        num_actions=spec.num_actions,
        settings=settings[VTraceSettings],
    )


EXPERIMENT = main.Experiment(
    domain=DOMAIN,
    settings=(VTraceSettings, NetworkSettings),
    create_algorithm=create_algorithm,
    defaults={**LEARNER_DEFAULTS, "torso": "shallow", "max_abs_reward": 1.0},
)

if __name__ == "__main__":
    main.run(EXPERIMENT)

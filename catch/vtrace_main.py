"""V-trace on Catch: `./run_local.sh catch vtrace 2`."""

from __future__ import annotations

from agents.vtrace.settings import LEARNER_DEFAULTS, VTraceSettings
from catch.env import DOMAIN
from seed_rl import main
from seed_rl.types import EnvironmentSpec


def create_algorithm(settings: main.Settings, spec: EnvironmentSpec):
    from agents.vtrace.agent import VTrace
    from catch.networks import actor_critic

    return VTrace(
        create_network=lambda: actor_critic(spec),
        num_actions=spec.num_actions,
        settings=settings[VTraceSettings],
    )


EXPERIMENT = main.Experiment(
    domain=DOMAIN,
    settings=(VTraceSettings,),
    create_algorithm=create_algorithm,
    defaults={**LEARNER_DEFAULTS, "total_environment_frames": 200_000, "learning_rate": 2e-3},
)

if __name__ == "__main__":
    main.run(EXPERIMENT)

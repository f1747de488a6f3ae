"""V-trace on Catch: `./run_local.sh catch vtrace 2` (`--help` lists the flags)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.vtrace.experiment import vtrace_experiment
from catch.env import DOMAIN
from seed_rl import main
from seed_rl.types import EnvironmentSpec

if TYPE_CHECKING:
    from seed_rl.network import Network


def create_network(settings: main.Settings, spec: EnvironmentSpec) -> Network:
    from catch.networks import actor_critic

    return actor_critic(spec)


EXPERIMENT = vtrace_experiment(
    domain=DOMAIN,
    create_network=create_network,
    defaults={
        "total_environment_frames": 200_000,
        "log_episode_frequency": 100,
        "unroll_length": 10,
        "batch_size": 16,
        "learning_rate": 3e-3,
        "adam_epsilon": 1e-5,
        "entropy_cost": 0.003,
    },
)

if __name__ == "__main__":
    main.run(EXPERIMENT)

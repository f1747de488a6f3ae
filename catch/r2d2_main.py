"""R2D2 on Catch: `./run_local.sh catch r2d2 2` (`--help` lists the flags)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.r2d2.experiment import r2d2_experiment
from catch.env import DOMAIN
from seed_rl import main
from seed_rl.types import EnvironmentSpec

if TYPE_CHECKING:
    from seed_rl.network import Network


def create_network(settings: main.Settings, spec: EnvironmentSpec) -> Network:
    from catch.networks import dueling

    return dueling(spec)


EXPERIMENT = r2d2_experiment(
    domain=DOMAIN,
    create_network=create_network,
    defaults={
        "total_environment_frames": 200_000,
        "log_episode_frequency": 100,
        "unroll_length": 10,
        "burn_in": 0,
        "n_steps": 3,
        "learning_rate": 1e-3,
        "adam_epsilon": 1e-5,
        "replay_ratio": 4.0,
        "update_target_every_n_step": 100,
    },
)

if __name__ == "__main__":
    main.run(EXPERIMENT)

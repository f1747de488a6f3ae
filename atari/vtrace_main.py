"""V-trace on Atari: `./run_local.sh atari vtrace 4` (`--help` lists the flags)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.vtrace.experiment import vtrace_experiment
from atari.env import DOMAIN
from atari.network_settings import NetworkSettings
from seed_rl import main
from seed_rl.learner_settings import DeviceSettings
from seed_rl.types import EnvironmentSpec

if TYPE_CHECKING:
    from seed_rl.network import Network


def create_network(settings: main.Settings, spec: EnvironmentSpec) -> Network:
    from atari.networks import actor_critic
    from seed_rl.precision import compute_dtype

    dtype = compute_dtype(settings[DeviceSettings].precision)
    return actor_critic(spec, settings[NetworkSettings], dtype)


EXPERIMENT = vtrace_experiment(
    domain=DOMAIN,
    create_network=create_network,
    network_settings=(NetworkSettings,),
    # For one machine: small batches, so that there are many updates to the frame.
    defaults={
        "batch_size": 8,
        "lambda_": 0.95,
        "max_abs_reward": 1.0,
        "entropy_cost": 0.01,
    },
)

if __name__ == "__main__":
    main.run(EXPERIMENT)

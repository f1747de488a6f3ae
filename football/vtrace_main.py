"""V-trace on football: `./run_local.sh football vtrace 2 2` (`--help` lists the flags)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.vtrace.experiment import vtrace_experiment
from football.env import DOMAIN
from seed_rl import main
from seed_rl.learner_settings import DeviceSettings
from seed_rl.types import EnvironmentSpec

if TYPE_CHECKING:
    from seed_rl.network import Network


def create_network(settings: main.Settings, spec: EnvironmentSpec) -> Network:
    from football.networks import actor_critic
    from seed_rl.precision import compute_dtype

    return actor_critic(spec, compute_dtype(settings[DeviceSettings].precision))


EXPERIMENT = vtrace_experiment(
    domain=DOMAIN,
    create_network=create_network,
    # For one machine: small batches, so that there are many updates to the frame.
    defaults={
        "batch_size": 8,
        "unroll_length": 32,
        "lambda_": 0.95,
        "discounting": 0.993,
        "entropy_cost": 0.005,
    },
)

if __name__ == "__main__":
    main.run(EXPERIMENT)

"""V-trace on DeepMind Lab: `./run_local.sh dmlab vtrace 4` (`--help` lists the flags)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.vtrace.experiment import vtrace_experiment
from dmlab.env import DOMAIN
from dmlab.network_settings import NetworkSettings
from seed_rl import main
from seed_rl.learner_settings import DeviceSettings
from seed_rl.types import EnvironmentSpec

if TYPE_CHECKING:
    from seed_rl.network import Network


def create_network(settings: main.Settings, spec: EnvironmentSpec) -> Network:
    from dmlab.networks import actor_critic
    from seed_rl.precision import compute_dtype

    dtype = compute_dtype(settings[DeviceSettings].precision)
    return actor_critic(spec, settings[NetworkSettings], dtype)


EXPERIMENT = vtrace_experiment(
    domain=DOMAIN,
    create_network=create_network,
    network_settings=(NetworkSettings,),
    # The paper's (flags/vtrace_paper.flags has all of them), but for batches and unrolls that one
    # machine fills often enough, and this project's optimizer.
    defaults={
        "batch_size": 8,
        "unroll_length": 50,
        "lambda_": 0.95,
        "max_abs_reward": 1.0,
        "entropy_cost": 9.7e-4,
    },
)

if __name__ == "__main__":
    main.run(EXPERIMENT)

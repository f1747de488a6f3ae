"""R2D2 on DeepMind Lab: `./run_local.sh dmlab r2d2 4` (`--help` lists the flags)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.r2d2.experiment import r2d2_experiment
from dmlab.env import DOMAIN
from dmlab.network_settings import NetworkSettings
from seed_rl import main
from seed_rl.learner_settings import DeviceSettings
from seed_rl.types import EnvironmentSpec

if TYPE_CHECKING:
    from seed_rl.network import Network


def create_network(settings: main.Settings, spec: EnvironmentSpec) -> Network:
    from dmlab.networks import dueling
    from seed_rl.precision import compute_dtype

    dtype = compute_dtype(settings[DeviceSettings].precision)
    return dueling(spec, settings[NetworkSettings], dtype)


EXPERIMENT = r2d2_experiment(
    domain=DOMAIN,
    create_network=create_network,
    network_settings=(NetworkSettings,),
    # For one machine, as for Atari: see atari/r2d2_main.py.
    defaults={
        "batch_size": 8,
        "learning_rate": 2.5e-4,
        "adam_epsilon": 1e-5,
        "unroll_length": 40,
        "burn_in": 20,
        "replay_ratio": 4.0,
        "update_target_every_n_step": 100,
    },
)

if __name__ == "__main__":
    main.run(EXPERIMENT)

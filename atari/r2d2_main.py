"""R2D2 on Atari: `./run_local.sh atari r2d2 4` (`--help` lists the flags)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.r2d2.experiment import r2d2_experiment
from atari.env import DOMAIN
from atari.network_settings import NetworkSettings
from seed_rl import main
from seed_rl.learner_settings import DeviceSettings
from seed_rl.types import EnvironmentSpec

if TYPE_CHECKING:
    from seed_rl.network import Network


def create_network(settings: main.Settings, spec: EnvironmentSpec) -> Network:
    from atari.networks import dueling
    from seed_rl.precision import compute_dtype

    dtype = compute_dtype(settings[DeviceSettings].precision)
    return dueling(spec, settings[NetworkSettings], dtype)


EXPERIMENT = r2d2_experiment(
    domain=DOMAIN,
    create_network=create_network,
    network_settings=(NetworkSettings,),
    # For one machine, where the paper's network, its batches and its 2,500 updates between target
    # networks take hours (flags/r2d2_paper.flags has those), and frames are dearer than updates.
    defaults={
        "batch_size": 8,
        "learning_rate": 2.5e-4,
        # The root mean squares of most gradients are below 1e-4: the paper's 1e-3 stops them.
        "adam_epsilon": 1e-5,
        "unroll_length": 40,
        "burn_in": 20,
        "replay_ratio": 4.0,
        "update_target_every_n_step": 100,
        # After each of these updates, what the targets lack of the true values shrinks to
        # discounting^n_steps of it: to 0.95, with the paper's discount to 0.985.
        "discounting": 0.99,
    },
)

if __name__ == "__main__":
    main.run(EXPERIMENT)

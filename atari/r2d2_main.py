"""R2D2 on Atari: `./run_local.sh atari r2d2 4` (`--help` lists the flags)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atari.env import DOMAIN

from agents.r2d2.experiment import r2d2_experiment
from atari.network_settings import NetworkSettings
from seed_rl import main
from seed_rl.learner_settings import DeviceSettings
from seed_rl.types import EnvironmentSpec

if TYPE_CHECKING:
    from seed_rl.network import Network


def create_network(settings: main.Settings, spec: EnvironmentSpec) -> Network:
    from atari.networks import dueling

    return dueling(spec, settings[NetworkSettings], settings[DeviceSettings].precision)


EXPERIMENT = r2d2_experiment(
    domain=DOMAIN,
    create_network=create_network,
    network_settings=(NetworkSettings,),
    defaults={"torso": "nature", "lstm_size": 512},
)

if __name__ == "__main__":
    main.run(EXPERIMENT)

"""R2D2 on Atari: `./run_local.sh atari r2d2 4`; all flags: `python -m atari.r2d2_main --help`."""

from __future__ import annotations

from agents.r2d2.settings import LEARNER_DEFAULTS, R2D2Settings
from atari.env import DOMAIN
from atari.network_settings import NetworkSettings
from seed_rl import main
from seed_rl.learner_settings import DeviceSettings, LearnerSettings
from seed_rl.replay import ReplaySettings
from seed_rl.types import EnvironmentSpec


def create_algorithm(settings: main.Settings, spec: EnvironmentSpec):
    from agents.r2d2.agent import R2D2
    from atari.networks import dueling

    learner = settings[LearnerSettings]
    return R2D2(
        create_network=lambda: dueling(spec, settings[NetworkSettings], settings[DeviceSettings].precision),
        num_training_envs=learner.num_envs - learner.num_eval_envs,
        num_eval_envs=learner.num_eval_envs,
        settings=settings[R2D2Settings],
    )


EXPERIMENT = main.Experiment(
    domain=DOMAIN,
    settings=(R2D2Settings, ReplaySettings, NetworkSettings),
    create_algorithm=create_algorithm,
    defaults={**LEARNER_DEFAULTS, "torso": "nature", "lstm_size": 512},
)

if __name__ == "__main__":
    main.run(EXPERIMENT)

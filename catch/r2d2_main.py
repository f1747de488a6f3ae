"""R2D2 on Catch: `./run_local.sh catch r2d2 2`."""

from __future__ import annotations

from agents.r2d2.settings import LEARNER_DEFAULTS, R2D2Settings
from catch.env import DOMAIN
from seed_rl import main
from seed_rl.learner_settings import LearnerSettings
from seed_rl.replay import ReplaySettings
from seed_rl.types import EnvironmentSpec


def create_algorithm(settings: main.Settings, spec: EnvironmentSpec):
    from agents.r2d2.agent import R2D2
    from catch.networks import dueling

    learner = settings[LearnerSettings]
    return R2D2(
        create_network=lambda: dueling(spec),
        num_training_envs=learner.num_envs - learner.num_eval_envs,
        num_eval_envs=learner.num_eval_envs,
        settings=settings[R2D2Settings],
    )


EXPERIMENT = main.Experiment(
    domain=DOMAIN,
    settings=(R2D2Settings, ReplaySettings),
    create_algorithm=create_algorithm,
    defaults={
        **LEARNER_DEFAULTS,
        "total_environment_frames": 200_000,
        "unroll_length": 10,
        "burn_in": 0,
        "n_steps": 3,
        "learning_rate": 1e-3,
        "replay_ratio": 4.0,
        "update_target_every_n_step": 100,
    },
)

if __name__ == "__main__":
    main.run(EXPERIMENT)

"""R2D2's settings (no TensorFlow). The replay's own are in seed_rl/replay.py."""

from __future__ import annotations

import dataclasses

from seed_rl.settings import setting


@dataclasses.dataclass(frozen=True)
class R2D2Settings:
    unroll_length: int = setting(80, "Transitions of a sequence that are trained (T).", minimum=1)
    burn_in: int = setting(
        40, "Steps before them that only bring the recurrent state up to date.", minimum=0
    )
    n_steps: int = setting(5, "Steps of the n-step returns.", minimum=1)
    discounting: float = setting(0.997, "Discount per step (gamma).", minimum=0.0, maximum=1.0)
    value_function_rescaling_epsilon: float = setting(
        1e-3,
        "Epsilon of the value rescaling h(x) = sign(x)(sqrt(|x| + 1) - 1) + epsilon x.",
        minimum=1e-12,
    )
    update_target_every_n_step: int = setting(
        2500, "Training steps between copies of the network to the target network.", minimum=1
    )
    priority_eta: float = setting(
        0.9,
        "Weight of the largest against the mean TD error in a sequence's priority.",
        minimum=0.0,
        maximum=1.0,
    )
    max_abs_reward: float = setting(
        0.0, "Rewards are clipped to +- this when training (0: not clipped).", minimum=0.0
    )
    exploration_epsilon: float = setting(
        0.4,
        "Environment i of N explores with this to the power 1 + 7 i / (N - 1).",
        minimum=0.0,
        maximum=1.0,
    )
    eval_epsilon: float = setting(
        1e-3, "Epsilon of the evaluation environments (--num_eval_envs).", minimum=0.0, maximum=1.0
    )


# Where R2D2's defaults of the learner's flags differ from the learner's own.
LEARNER_DEFAULTS = {
    "batch_size": 64,
    "learning_rate": 1e-4,
    "adam_epsilon": 1e-3,
    "clip_norm": 80.0,
}

"""V-trace's settings (no TensorFlow)."""

from __future__ import annotations

import dataclasses

from seed_rl.settings import setting


@dataclasses.dataclass(frozen=True)
class VTraceSettings:
    unroll_length: int = setting(20, "Transitions in an unroll (T).", minimum=1)
    discounting: float = setting(0.99, "Discount per step (gamma).", minimum=0.0, maximum=1.0)
    lambda_: float = setting(1.0, "Lambda of the V-trace targets.", minimum=0.0, maximum=1.0)
    baseline_cost: float = setting(0.5, "Weight of the value loss.", minimum=0.0)
    entropy_cost: float = setting(0.00025, "Weight of the entropy bonus.", minimum=0.0)
    target_entropy: float | None = setting(
        None, "Entropy (nats) to hold by adapting the entropy cost; unset: the cost is constant."
    )
    entropy_cost_adjustment_speed: float = setting(
        10.0, "How fast the entropy cost follows --target_entropy.", minimum=1e-6
    )
    kl_cost: float = setting(
        0.0, "Weight of the KL divergence from the behaviour policy.", minimum=0.0
    )
    max_abs_reward: float = setting(
        0.0, "Rewards are clipped to +- this when training (0: not clipped).", minimum=0.0
    )


# Where V-trace's defaults of the learner's flags differ from the learner's own.
LEARNER_DEFAULTS = {
    "batch_size": 32,
    "learning_rate": 2.5e-4,
    "adam_epsilon": 1e-5,
    # About the usual norm (losses are means over the batch and time). Without a bound that engages,
    # returns on Breakout fall to their start more often and for longer: docs/results/README.md.
    "clip_norm": 0.25,
}

"""What training does to rewards."""

from __future__ import annotations

import tensorflow as tf


def clip_rewards(rewards: tf.Tensor, max_abs_reward: float) -> tf.Tensor:
    """Clips rewards float32 [...] to +- max_abs_reward; 0 leaves them as they are."""
    if not max_abs_reward:
        return rewards
    return tf.clip_by_value(rewards, -max_abs_reward, max_abs_reward)

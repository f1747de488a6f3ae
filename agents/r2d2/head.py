"""The dueling head: Wang et al., "Dueling Network Architectures" (arXiv 1511.06581), equation 9."""

from __future__ import annotations

import tensorflow as tf
import tf_keras


class DuelingHead(tf.Module):
    """Q(s, a) = V(s) + A(s, a) - mean_a A(s, a): from features float32 [..., F] to Q values [...,
    A].

    Args:
      num_actions: A.
      hidden: units of the hidden layer of each stream.
    """

    def __init__(self, num_actions: int, hidden: int):
        super().__init__()
        self._advantage = _stream(num_actions, hidden, "advantage")
        self._value = _stream(1, hidden, "value")

    def __call__(self, features: tf.Tensor) -> tf.Tensor:
        advantages = self._advantage(features)
        return (
            self._value(features) + advantages - tf.reduce_mean(advantages, axis=-1, keepdims=True)
        )


def _stream(outputs: int, hidden: int, name: str) -> tf_keras.Sequential:
    return tf_keras.Sequential(
        [tf_keras.layers.Dense(hidden, "relu"), tf_keras.layers.Dense(outputs)], name=name
    )

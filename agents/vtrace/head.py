"""The actor-critic head: policy logits and value from the same features."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from agents.vtrace.agent import ActorCriticOutput


class ActorCriticHead(tf.Module):
    """From features float32 [..., F] to an ActorCriticOutput.

    Initial weights are orthogonal; the policy's are small, so that it starts near uniform.
    """

    def __init__(self, num_actions: int):
        super().__init__()
        orthogonal = tf_keras.initializers.Orthogonal
        self._policy = tf_keras.layers.Dense(
            num_actions, kernel_initializer=orthogonal(0.01), name="policy_logits"
        )
        self._value = tf_keras.layers.Dense(1, kernel_initializer=orthogonal(1.0), name="value")

    def __call__(self, features: tf.Tensor) -> ActorCriticOutput:
        return ActorCriticOutput(self._policy(features), self._value(features)[..., 0])

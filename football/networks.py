"""The network for football: a residual torso over unpacked minimaps, without memory."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from agents.blocks import torsos
from agents.blocks.recurrent import RecurrentNetwork
from agents.vtrace.head import ActorCriticHead
from football.packing import BITS
from seed_rl.network import Network, build
from seed_rl.types import EnvironmentSpec


def actor_critic(spec: EnvironmentSpec, dtype: tf.DType) -> Network:
    """For V-trace: the residual torso of SEED RL (arXiv 1910.06591) on football, and no LSTM.

    As with all networks here, and other than in the paper, the head also sees the previous action
    and reward.

    Args:
      spec: of football environments.
      dtype: of convolutions and matrix products, float32 or bfloat16.
    """
    torso = tf_keras.Sequential(
        [
            tf_keras.layers.Lambda(unpack),
            torsos.deep(torsos.dtype_policy(dtype), channels=(16, 32, 32, 32), blocks=2),
        ]
    )
    return build(RecurrentNetwork(torso, ActorCriticHead(spec.num_actions), spec.num_actions), spec)


def unpack(packed: tf.Tensor) -> tf.Tensor:
    """What football.packing.pack has packed: uint16 [..., 1] to uint8 [..., 16] of 0 and 255."""
    bits = tf.constant([1 << bit for bit in range(BITS)], tf.uint16)
    return 255 * tf.cast(tf.bitwise.bitwise_and(packed, bits) != 0, tf.uint8)

"""A small network for Catch: it sees the whole board, so one dense layer and no memory will do."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from agents.blocks.recurrent import RecurrentNetwork
from agents.r2d2.head import DuelingHead
from agents.vtrace.head import ActorCriticHead
from seed_rl.network import Network, build
from seed_rl.types import EnvironmentSpec


def actor_critic(spec: EnvironmentSpec) -> Network:
    """For V-trace."""
    return _network(ActorCriticHead(spec.num_actions), spec)


def dueling(spec: EnvironmentSpec) -> Network:
    """For R2D2."""
    return _network(DuelingHead(spec.num_actions, hidden=32), spec)


def _network(head: tf.Module, spec: EnvironmentSpec) -> Network:
    torso = tf_keras.Sequential(
        [
            tf_keras.layers.Rescaling(1.0 / 255.0),
            tf_keras.layers.Flatten(),
            tf_keras.layers.Dense(64, "relu"),
        ]
    )
    return build(RecurrentNetwork(torso, head, spec.num_actions), spec)

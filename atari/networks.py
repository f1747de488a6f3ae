"""Networks for Atari frames: one of three torsos, an LSTM, and the head of an algorithm.

`dtype` is that of convolutions and matrix products, float32 or bfloat16.
"""

from __future__ import annotations

import tensorflow as tf

from agents.blocks import torsos
from agents.blocks.lstm import ResettingLSTM
from agents.blocks.recurrent import RecurrentNetwork
from agents.r2d2.head import DuelingHead
from agents.vtrace.head import ActorCriticHead
from atari.network_settings import NetworkSettings
from seed_rl.network import Network, build
from seed_rl.types import ArraySpec, EnvironmentSpec

_TORSOS = {"nature": torsos.nature, "shallow": torsos.shallow, "deep": torsos.deep}


def actor_critic(spec: EnvironmentSpec, settings: NetworkSettings, dtype: tf.DType) -> Network:
    """For V-trace: IMPALA's networks (arXiv 1802.01561, figure 3)."""
    return _recurrent(ActorCriticHead(spec.num_actions), spec, settings, dtype)


def dueling(spec: EnvironmentSpec, settings: NetworkSettings, dtype: tf.DType) -> Network:
    """For R2D2: Kapturowski et al. (ICLR 2019), table 2."""
    return _recurrent(DuelingHead(spec.num_actions, hidden=512), spec, settings, dtype)


def _recurrent(
    head: tf.Module, spec: EnvironmentSpec, settings: NetworkSettings, dtype: tf.DType
) -> Network:
    assert isinstance(spec.observation, ArraySpec)
    network = RecurrentNetwork(
        torso=_TORSOS[settings.torso](torsos.dtype_policy(dtype)),
        head=head,
        num_actions=spec.num_actions,
        core=ResettingLSTM(settings.lstm_size, dtype),
        stack_size=settings.stack_size,
        frame_shape=spec.observation.shape,
    )
    return build(network, spec)

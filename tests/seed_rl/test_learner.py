"""What a learner does before the first actor comes; training runs are in tests/end_to_end."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest
import tensorflow as tf
import tf_keras

from agents.blocks.lstm import ResettingLSTM
from agents.blocks.recurrent import RecurrentNetwork
from agents.blocks.torsos import Convolution
from agents.vtrace.head import ActorCriticHead
from seed_rl.algorithm import Algorithm
from seed_rl.learner import Learner, LearnerConfig
from seed_rl.learner_settings import DeviceSettings, LearnerSettings, OptimizerSettings
from seed_rl.network import Network, build
from tests import tiny


def make_learner(logdir: pathlib.Path, create_algorithm: Callable[[], Algorithm]) -> Learner:
    config = LearnerConfig(
        spec=tiny.SPEC,
        environment={},
        create_algorithm=create_algorithm,
        server_address=f"unix:{logdir}/learner.sock",
        env_batch_size=1,
        settings=LearnerSettings(logdir=str(logdir), num_envs=2, batch_size=1),
        optimizer=OptimizerSettings(),
        devices=DeviceSettings(),
    )
    return Learner(config)


def test_the_policy_is_there_from_the_start(tmp_path: pathlib.Path) -> None:
    make_learner(tmp_path, tiny.vtrace)
    policy = tf.saved_model.load(str(tmp_path / "policy"))
    assert policy.initial_state(2)[-1].shape == (2, 6)


def test_a_network_that_cannot_be_exported_ends_the_learner_at_once(
    tmp_path: pathlib.Path,
) -> None:
    class _Underscored(Convolution):
        """Only the export makes a scope of this name, which must not start like this."""

    def create_network() -> Network:
        torso = tf_keras.Sequential([_Underscored(8, 2), tf_keras.layers.Flatten()])
        head = ActorCriticHead(tiny.NUM_ACTIONS)
        core = ResettingLSTM(6, tf.float32)
        network = RecurrentNetwork(torso, head, tiny.NUM_ACTIONS, core, 2, tiny.FRAME)
        return build(network, tiny.SPEC)

    with pytest.raises(ValueError, match="scope name"):
        make_learner(tmp_path, lambda: tiny.vtrace(create_network))

"""The trained policy as a SavedModel that plain TensorFlow loads, without this project's code."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from seed_rl import folders
from seed_rl.algorithm import Algorithm
from seed_rl.network import Network, copy_weights
from seed_rl.trajectories import TimeStep, time_step_spec
from seed_rl.types import EnvironmentSpec


class ExportedPolicy(tf.Module):
    """What is exported: the policy without the training environments' exploration.

        policy = tf.saved_model.load(directory)
        state = policy.initial_state(batch_size)
        action, state = policy.act(step_type, reward, discount, observation, previous_action, state)

    Shapes as in trajectories.TimeStep, [B, ...]; the state is a list of tensors. Pass 0 as
    previous action at an episode's first step, where the state is reset by itself.
    """

    def __init__(self, algorithm: Algorithm, network: Network, spec: EnvironmentSpec):
        super().__init__()
        self._network = network
        structure = network.initial_state(1)
        flat_spec = [
            tf.TensorSpec([None, *x.shape[1:]], x.dtype) for x in tf.nest.flatten(structure)
        ]

        @tf.function(input_signature=[tf.TensorSpec([], tf.int32, "batch_size")], autograph=False)
        def initial_state(batch_size: tf.Tensor) -> list[tf.Tensor]:
            return tf.nest.flatten(network.initial_state(batch_size))

        @tf.function(
            input_signature=[
                *time_step_spec(spec, outer_dims=(None,)),
                tf.TensorSpec([None], tf.int32, "previous_action"),
                flat_spec,
            ],
            autograph=False,
        )
        def act(
            step_type: tf.Tensor,
            reward: tf.Tensor,
            discount: tf.Tensor,
            observation: Any,
            previous_action: tf.Tensor,
            state: list[tf.Tensor],
        ) -> tuple[tf.Tensor, list[tf.Tensor]]:
            time_step = TimeStep(step_type, reward, discount, observation)
            step = algorithm.act(
                network, time_step, previous_action, tf.nest.pack_sequence_as(structure, state)
            )
            return step.action, tf.nest.flatten(step.state)

        self.initial_state = initial_state
        self.act = act


def export_policy(algorithm: Algorithm, spec: EnvironmentSpec, directory: str) -> None:
    """Writes the policy to `directory`, of this machine or a bucket's (gs://).

    On this machine under a temporary name first, so that nobody sees half of it. Buckets cannot
    rename folders.
    """
    network = algorithm.create_network()
    copy_weights(algorithm.network, network)
    policy = ExportedPolicy(algorithm, network, spec)
    if "://" in directory:
        folders.remove(directory)
        tf.saved_model.save(policy, directory)
        return
    partial, old = f"{directory}.partial", f"{directory}.old"
    for leftover in partial, old:
        folders.remove(leftover)
    tf.saved_model.save(policy, partial)
    if tf.io.gfile.exists(directory):
        tf.io.gfile.rename(directory, old)
    tf.io.gfile.rename(partial, directory)
    folders.remove(old)

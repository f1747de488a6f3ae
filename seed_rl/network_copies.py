"""The inference devices' copies of the network that is trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from seed_rl.algorithm import Algorithm
from seed_rl.devices import Devices
from seed_rl.inference import Policy, network_policy
from seed_rl.network import Network, copy_weights
from seed_rl.packing import pack, unpack
from seed_rl.trajectories import PolicyStep, TimeStep


class NetworkCopies(tf.Module):
    """One copy of the algorithm's network per inference device.

    Inference has copies even where it shares a device with training: the optimizer's many small
    writes stay out of its way, and all devices are served alike. A batch that runs while new
    weights are published may see some of either.

    Args:
      algorithm: its network is copied.
      devices: where to.
      batch_size: the largest inference batch; to which batches are padded where sizes must be
        static.
    """

    def __init__(self, algorithm: Algorithm, devices: Devices, batch_size: int):
        super().__init__()
        self._algorithm = algorithm
        self._devices = devices
        self._batch_size = batch_size
        self._networks: list[Network] = []
        for device in devices.inference:
            with tf.device(device):
                self._networks.append(algorithm.create_network())
        self.publish()

    @tf.function(autograph=False)
    def publish(self) -> None:
        """Gives all copies the trained network's weights."""
        for network in self._networks:
            copy_weights(self._algorithm.network, network)

    def policies(self) -> Sequence[Policy]:
        """The behaviour policy on each inference device."""
        return [
            self._policy(device, network)
            for device, network in zip(self._devices.inference, self._networks, strict=True)
        ]

    def _policy(self, device: str, network: Network) -> Policy:
        policy = network_policy(self._algorithm, network)
        if self._devices.compiled:
            return pad_rows(compiled(policy, device), self._batch_size)
        return on_device(policy, device)


def on_device(policy: Policy, device: str) -> Policy:
    """The policy, run on a device."""

    def run(*inputs: Any) -> PolicyStep:
        with tf.device(device):
            return policy(*inputs)

    return run


def compiled(policy: Policy, device: str) -> Policy:
    """The policy compiled by XLA for a device, to which observations cross packed."""

    def run(time_step: TimeStep, *others: Any) -> PolicyStep:
        spec = tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape[1:], x.dtype), time_step)
        run_packed = tf.function(
            lambda packed, *others: policy(unpack(packed, spec), *others),
            jit_compile=True,
            autograph=False,
        )
        return on_device(run_packed, device)(pack(time_step, spec), *others)

    return run


def pad_rows(policy: Policy, batch_size: int) -> Policy:
    """A policy for any number of rows from one for batch_size; padded rows repeat row 0."""

    def padded(*inputs: Any) -> PolicyStep:
        count = tf.shape(inputs[-1])[0]
        rows = tf.pad(tf.range(count), [[0, batch_size - count]])
        rows = tf.ensure_shape(rows, [batch_size])
        output = policy(*tf.nest.map_structure(lambda x: tf.gather(x, rows), inputs))
        return tf.nest.map_structure(lambda x: x[:count], output)

    return padded

"""Which devices train and which run inference."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Sequence

import tensorflow as tf

from seed_rl.errors import UserError
from seed_rl.learner_settings import DeviceSettings


@dataclasses.dataclass(frozen=True)
class Devices:
    """The learner's devices.

    Attributes:
      strategy: its replicas train.
      inference: names of the devices that run inference; each gets a copy of the network.
      compiled: whether they run what XLA compiles, as TPUs do: inference batches then have one
        size, and images cross to the devices packed.
    """

    strategy: tf.distribute.Strategy
    inference: tuple[str, ...]
    compiled: bool = False


def choose_devices(settings: DeviceSettings) -> Devices:
    """The devices that the flags name; otherwise a TPU host's cores, the GPUs, or the CPU.

    Sets the process's intra-op threads, too, which it can only before TensorFlow computes anything.

    Raises:
      UserError: a flag asks for more devices than there are.
    """
    if settings.intra_op_threads:
        tf.config.threading.set_intra_op_parallelism_threads(settings.intra_op_threads)
    if settings.training_devices or settings.inference_devices:
        return _named_devices(settings)
    if tf.config.list_physical_devices("TPU") or tf.config.list_logical_devices("TPU_SYSTEM"):
        return _tpu_devices(settings.num_training_tpus)
    gpus = [device.name for device in tf.config.list_logical_devices("GPU")]
    if gpus:
        count = settings.num_training_gpus or max(1, len(gpus) - 1)
        training, inference = split_devices(gpus, count, "--num_training_gpus")
        return Devices(training_strategy(training), inference)
    return Devices(training_strategy(("/cpu:0",)), ("/cpu:0",))


def split_devices(
    devices: Sequence[str], num_training: int, flag: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The first num_training train, the others infer; without others the last does both."""
    if num_training > len(devices):
        raise UserError(
            f"{flag}: expected at most {len(devices)} (the devices here), got {num_training}."
        )
    return tuple(devices[:num_training]), tuple(devices[num_training:] or devices[-1:])


@functools.cache  # two strategies of one process would mix up their collectives' keys
def training_strategy(devices: tuple[str, ...]) -> tf.distribute.Strategy:
    """One replica per device."""
    if len(devices) == 1:
        return tf.distribute.OneDeviceStrategy(devices[0])
    return tf.distribute.MirroredStrategy(list(devices))


def _named_devices(settings: DeviceSettings) -> Devices:
    training = _split(settings.training_devices)
    if not training:
        raise UserError("--inference_devices: expected --training_devices beside it, got none.")
    inference = _split(settings.inference_devices) or training[-1:]
    _provide_logical_cpus([*training, *inference])
    known = {_short_name(device.name) for device in tf.config.list_logical_devices()}
    for flag, names in ("--training_devices", training), ("--inference_devices", inference):
        short_names = [_short_name(name) for name in names]
        if len(set(short_names)) < len(names) or not known.issuperset(short_names):
            raise UserError(
                f"{flag}: expected different devices out of {', '.join(sorted(known))}, "
                f"got {', '.join(names)}."
            )
    return Devices(training_strategy(training), inference)


def _split(names: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",") if name.strip())


def _provide_logical_cpus(names: Sequence[str]) -> None:
    """Splits the CPU into as many logical devices as named, to try multi-device training."""
    matches = [re.search(r"cpu:(\d+)$", name.lower()) for name in names]
    count = max((int(match[1]) for match in matches if match), default=0) + 1
    physical = tf.config.list_physical_devices("CPU")[0]
    if count > len(tf.config.get_logical_device_configuration(physical) or [None]):
        tf.config.set_logical_device_configuration(
            physical, [tf.config.LogicalDeviceConfiguration()] * count
        )


def _short_name(name: str) -> str:
    """'/device:GPU:0', '/job:localhost/.../device:GPU:0' and '/gpu:0' all become '/gpu:0'."""
    return "/" + ":".join(name.lower().split("/")[-1].split(":")[-2:])


def _tpu_devices(num_training: int) -> Devices:
    """The cores of one TPU host, divided between training and inference."""
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver("local")
    topology = tf.tpu.experimental.initialize_tpu_system(resolver)
    cores = tf.config.list_logical_devices("TPU")
    training, inference = split_devices(
        [core.name for core in cores], num_training, "--num_training_tpus"
    )
    coordinates = topology.device_coordinates.reshape(-1, 1, topology.mesh_rank)
    assignment = tf.tpu.experimental.DeviceAssignment(topology, coordinates[: len(training)])
    strategy = tf.distribute.TPUStrategy(resolver, experimental_device_assignment=assignment)
    return Devices(strategy, inference, compiled=True)

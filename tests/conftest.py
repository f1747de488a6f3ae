"""Gives the test process three CPU devices, so that multi-device code runs for real anywhere, and
every test the same random weights each time."""

import signal

import pytest

import seed_rl  # noqa: F401  (chooses legacy Keras before TensorFlow is imported)

import tensorflow as tf  # isort: skip
import tf_keras  # isort: skip

NUM_CPUS = 3

# A shell lets its background jobs ignore these, and what the tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# TensorFlow fixes its devices when it first uses one, which importing a test module may already do.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * NUM_CPUS,
)


@pytest.fixture(autouse=True)
def _seed() -> None:
    tf_keras.utils.set_random_seed(0)

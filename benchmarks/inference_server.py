"""A learner that infers and does not train: unrolls are made, queued, taken out and dropped."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import NamedTuple

import seed_rl  # noqa: F401  (chooses legacy Keras before TensorFlow is imported)
from seed_rl import main as main_lib
from seed_rl.devices import Devices, choose_devices
from seed_rl.grpc.server import Server
from seed_rl.inference import CentralInference
from seed_rl.learner import LearnerConfig
from seed_rl.network_copies import NetworkCopies
from seed_rl.trajectories import EnvironmentStep

import tensorflow as tf  # isort: skip
from absl import flags  # isort: skip

_POLL_SECONDS = 0.002


class Work(NamedTuple):
    """What inference functions have done.

    Attributes:
      batches, rows: how many.
      largest: rows of the largest batch.
      busy_seconds: time in which a function ran, added up over all functions.
    """

    batches: int
    rows: int
    largest: int
    busy_seconds: float


class Meter(tf.Module):
    """Watches inference functions from within their graphs."""

    def __init__(self) -> None:
        super().__init__()
        with tf.device("/cpu:0"):
            self._batches = tf.Variable(0, dtype=tf.int64, trainable=False)
            self._rows = tf.Variable(0, dtype=tf.int64, trainable=False)
            self._largest = tf.Variable(0, dtype=tf.int64, trainable=False)
            self._busy_seconds = tf.Variable(0.0, dtype=tf.float64, trainable=False)

    def metered(self, function: tf.function) -> tf.function:
        """The same function, being watched."""

        @tf.function(input_signature=function.input_signature, autograph=False)
        def inference(
            env_ids: tf.Tensor, run_ids: tf.Tensor, time_step: EnvironmentStep
        ) -> tf.Tensor:
            start = tf.timestamp()
            with tf.control_dependencies([start]):
                actions = function(env_ids, run_ids, time_step)
            with tf.control_dependencies([actions]):
                self._busy_seconds.assign_add(tf.timestamp() - start)
                rows = tf.size(env_ids, tf.int64)
                self._batches.assign_add(1)
                self._rows.assign_add(rows)
                self._largest.assign(tf.maximum(self._largest, rows))
            return actions

        return inference

    def take(self) -> Work:
        """The work since the last call."""
        batches, rows = self._batches.numpy(), self._rows.numpy()
        largest, busy_seconds = self._largest.numpy(), self._busy_seconds.numpy()
        self._batches.assign_sub(batches)
        self._rows.assign_sub(rows)
        self._largest.assign(0)
        self._busy_seconds.assign_sub(busy_seconds)
        return Work(int(batches), int(rows), int(largest), float(busy_seconds))


def serve(pipe: Connection, environment: str, agent: str, options: Sequence[str]) -> None:
    """Serves the inference of a learner with these flags until `pipe` is closed.

    The first message is its address; every later one, whatever it is, is answered with the Work
    since the one before.
    """
    experiment = importlib.import_module(f"{environment}.{agent}_main").EXPERIMENT
    main_lib.define_flags(experiment)
    flags.FLAGS(["inference_server", *options])
    config = main_lib.learner_config(experiment, main_lib.Settings())
    devices = choose_devices(config.devices)  # before the meter, which computes on them
    meter = Meter()
    server, inference = _make_server(config, devices, meter)
    with server:
        threading.Thread(target=_drop, args=(inference,), daemon=True).start()
        server.start()
        pipe.send(server.addresses[0])
        while True:
            pipe.recv()
            pipe.send(meter.take())


def _make_server(
    config: LearnerConfig, devices: Devices, meter: Meter
) -> tuple[Server, CentralInference]:
    settings = config.settings
    rows = settings.inference_rows(config.env_batch_size, len(devices.inference))
    with devices.strategy.scope():
        algorithm = config.create_algorithm()
    copies = NetworkCopies(algorithm, devices, rows)
    inference = CentralInference(
        algorithm,
        config.spec,
        settings.num_training_envs,
        settings.num_eval_envs,
        settings.unroll_queue_capacity,
    )
    server = Server([config.server_address])
    server.bind(
        [meter.metered(inference.make_function(policy)) for policy in copies.policies()],
        name="inference",
        max_batch_size=rows,
        timeout_ms=settings.inference_timeout_ms,
    )
    return server, inference


def _drop(inference: CentralInference) -> None:
    """Takes out the unrolls that come, as the training would, for as long as the process lives."""
    while True:
        if count := inference.unrolls.size():
            inference.unrolls.dequeue_many(count)
        else:
            time.sleep(_POLL_SECONDS)

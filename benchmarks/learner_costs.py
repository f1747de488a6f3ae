"""CPU seconds of one inference batch and of one update, while nothing else runs.

    python -m benchmarks.learner_costs ENVIRONMENT AGENT ROWS [--any_flag=value ...]

prints them as JSON for a learner with these flags. TensorFlow runs both in the same threads, so
that a running learner's CPU time does not tell one from the other.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import seed_rl  # noqa: F401  (chooses legacy Keras before TensorFlow is imported)
from seed_rl import main as main_lib
from seed_rl.algorithm import Algorithm
from seed_rl.devices import choose_devices
from seed_rl.inference import CentralInference, unroll_spec
from seed_rl.learner import LearnerConfig
from seed_rl.network_copies import NetworkCopies
from seed_rl.training import Updater
from seed_rl.trajectories import StepType, Unroll, environment_step_spec

import tensorflow as tf  # isort: skip
from absl import flags  # isort: skip

_SECONDS = 5.0  # of each measurement
_MIN_REPETITIONS = 5
_ANY_NUMBER = 1_000_000  # of updates until a learning rate has fallen to 0


@dataclasses.dataclass(frozen=True)
class Costs:
    """CPU seconds, of all threads together.

    Attributes:
      inference: of a batch, with the tables and unrolls that it brings up to date.
      update: of a training step, with publishing the new weights.
      frames_per_step: engine frames of one step of these environments.
    """

    inference: float
    update: float
    frames_per_step: int


def measure(config: LearnerConfig, rows: int) -> Costs:
    """Costs of a learner made from the config, for inference batches of so many rows."""
    devices = choose_devices(config.devices)
    with devices.strategy.scope():
        algorithm = config.create_algorithm()
        spec = unroll_spec(algorithm, config.spec)
        updater = Updater(
            algorithm,
            devices.strategy,
            config.optimizer,
            config.settings.batch_size,
            _ANY_NUMBER,
            spec if devices.compiled else None,
        )
    copies = NetworkCopies(algorithm, devices, rows)
    return Costs(
        _inference_cost(config, algorithm, copies, rows),
        _update_cost(updater, copies, spec, config.settings.batch_size),
        config.spec.frames_per_step,
    )


def _inference_cost(
    config: LearnerConfig, algorithm: Algorithm, copies: NetworkCopies, rows: int
) -> float:
    """Environments take turns, `rows` at a time, as they do in a run."""
    settings = config.settings
    inference = CentralInference(
        algorithm, config.spec, settings.num_training_envs, settings.num_eval_envs, rows
    )
    function = inference.make_function(copies.policies()[0])
    time_step = _zeros(environment_step_spec(config.spec), rows)
    time_step = time_step._replace(step_type=tf.fill([rows], int(StepType.MID)))
    run_ids = tf.ones([rows], tf.int64)
    first_ids = itertools.count(step=rows)

    def infer() -> None:
        env_ids = (next(first_ids) + tf.range(rows)) % settings.num_envs
        function(env_ids, run_ids, time_step)

    def make_room() -> None:
        inference.unrolls.dequeue_many(inference.unrolls.size())

    return _cpu_seconds(infer, make_room)


def _update_cost(updater: Updater, copies: NetworkCopies, spec: Unroll, batch_size: int) -> float:
    unrolls, weights = _zeros(spec, batch_size), tf.ones([batch_size])

    def update() -> None:
        updater.update(unrolls, weights).metrics["loss/total"].numpy()  # waits for it
        copies.publish()

    return _cpu_seconds(update)


def _zeros(spec: Any, count: int) -> Any:
    return tf.nest.map_structure(lambda leaf: tf.zeros([count, *leaf.shape], leaf.dtype), spec)


def _cpu_seconds(run: Callable[[], None], clean_up: Callable[[], None] = lambda: None) -> float:
    """Mean CPU seconds of `run`, after a first time that compiles it."""
    run()
    clean_up()
    used, count = 0.0, 0
    end = time.monotonic() + _SECONDS
    while count < _MIN_REPETITIONS or time.monotonic() < end:
        start = time.process_time()
        run()
        used += time.process_time() - start
        count += 1
        clean_up()
    return used / count


def main(argv: Sequence[str]) -> None:
    _, environment, agent, rows, *options = argv
    experiment = importlib.import_module(f"{environment}.{agent}_main").EXPERIMENT
    main_lib.define_flags(experiment)
    flags.FLAGS([argv[0], *options])
    config = main_lib.learner_config(experiment, main_lib.Settings())
    print(json.dumps(dataclasses.asdict(measure(config, int(rows)))))


if __name__ == "__main__":
    main(sys.argv)

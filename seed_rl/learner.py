"""The learner: the one training loop, for every algorithm and domain."""

from __future__ import annotations

import dataclasses
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras
from absl import logging

from seed_rl import memory
from seed_rl.algorithm import Algorithm
from seed_rl.checkpoints import Checkpoints
from seed_rl.devices import choose_devices
from seed_rl.episode_log import EpisodeLog
from seed_rl.errors import UserError
from seed_rl.export import export_policy
from seed_rl.grpc.security import PLAIN, Security
from seed_rl.grpc.server import Server
from seed_rl.human_scores import HumanScore
from seed_rl.inference import CentralInference, unroll_spec
from seed_rl.learner_settings import DeviceSettings, LearnerSettings, OptimizerSettings
from seed_rl.network_copies import NetworkCopies
from seed_rl.policy_lag import policy_lag
from seed_rl.progress import Progress
from seed_rl.replay import PrioritizedReplay, ReplaySettings
from seed_rl.sources import Batch, BatchSource, QueueSource, ReplaySource
from seed_rl.summaries import Summaries
from seed_rl.training import Updater
from seed_rl.tuning import TuningReport
from seed_rl.types import ArraySpec, EnvironmentSpec


@dataclasses.dataclass(frozen=True)
class LearnerConfig:
    """All that a learner is made from.

    Attributes:
      spec: of the environments.
      environment: the domain's settings, which actors get as JSON.
      create_algorithm: makes the algorithm; called inside the strategy's scope.
      server_address: where actors connect.
      env_batch_size: environments of one actor, which all come in one call.
      settings, optimizer, devices: the learner's flags.
      replay: the replay's flags; None trains straight from the queue of unrolls.
      tasks: names of the environments' tasks, one if it has no name.
      human_scores: by task, where they are known.
      security: of the connections with actors.
    """

    spec: EnvironmentSpec
    environment: Mapping[str, Any]
    create_algorithm: Callable[[], Algorithm]
    server_address: str
    env_batch_size: int
    settings: LearnerSettings
    optimizer: OptimizerSettings
    devices: DeviceSettings
    replay: ReplaySettings | None = None
    tasks: Sequence[str] = ("",)
    human_scores: Mapping[str, HumanScore] = dataclasses.field(default_factory=dict)
    security: Security = PLAIN


class Learner:
    """Serves inference, trains on the unrolls that come out of it, and writes down what happens."""

    def __init__(self, config: LearnerConfig, progress: Progress | None = None):
        settings = config.settings
        self._config = config
        self._logdir = settings.logdir.rstrip("/")
        self._progress = progress or Progress(settings.total_environment_frames)
        tf_keras.utils.set_random_seed(settings.seed)
        devices = choose_devices(config.devices)
        with devices.strategy.scope():
            self._algorithm = config.create_algorithm()
            self._unroll_spec = unroll_spec(self._algorithm, config.spec)
            self._updater = Updater(
                self._algorithm,
                devices.strategy,
                config.optimizer,
                settings.batch_size,
                self._updates_in_all(),
                self._unroll_spec if devices.compiled else None,
            )
        self._check_memory()
        self._inference = CentralInference(
            self._algorithm,
            config.spec,
            settings.num_training_envs,
            settings.num_eval_envs,
            settings.unroll_queue_capacity,
        )
        self._training_step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._replay = self._make_replay()
        self._checkpoints = Checkpoints(
            f"{self._logdir}/checkpoints",
            replay=self._replay if config.replay and config.replay.checkpoint_replay else None,
            algorithm=self._algorithm,
            optimizer=self._updater.optimizer,
            training_step=self._training_step,
            environment_steps=self._inference.steps,
        )
        self._restore()
        self._source = self._make_source()
        self._summaries = Summaries(f"{self._logdir}/summaries")
        self._tuning = TuningReport(settings.tuning_metric)
        self._episodes = EpisodeLog(
            settings.num_training_envs,
            config.tasks,
            config.human_scores,
            settings.log_episode_frequency,
        )
        rows = settings.inference_rows(config.env_batch_size, len(devices.inference))
        self._copies = NetworkCopies(self._algorithm, devices, rows)
        self._publish()
        # A network that cannot be exported, or a full disk, should show now, not in half an hour.
        self._export()
        self._server = self._make_server(rows)
        self._stopping = False

    @property
    def frames(self) -> int:
        """Engine frames that training environments have taken, over all runs with this logdir."""
        return int(self._inference.steps) * self._config.spec.frames_per_step

    def stop(self, *_: Any) -> None:
        """Lets `run` save a checkpoint and return; also serves as a signal handler."""
        self._stopping = True

    def run(self) -> None:
        """Trains until --total_environment_frames or `stop`."""
        try:
            self._server.start()
        except OSError as error:
            raise UserError(f"--server_address: {error.strerror or error}") from error
        self._progress.say(f"Learner: serving at {', '.join(self._server.addresses)}.")
        self._say_what_comes_first()
        # Where this start goes on: what summaries before it have beyond these frames was undone.
        self._summaries.write({"training/steps": int(self._training_step)}, self.frames)
        saved = time.monotonic()
        try:
            while not self._finished() and not self._stopping:
                batch = self._source.poll()
                if batch is not None:
                    self._train(batch)
                self._report()
                if time.monotonic() - saved > self._config.settings.save_checkpoint_secs:
                    self._save()
                    saved = time.monotonic()
            self._report()
            self._save()
        finally:
            self._server.shutdown(final=self._finished())
            self._inference.unrolls.close()
            self._report()
            self._tuning.flush()
            self._progress.close()

    def _say_what_comes_first(self) -> None:
        """Says why there may be no updates for a while."""
        total = self._config.settings.total_environment_frames
        if self._finished():
            self._progress.say(
                f"Learner: {self.frames:,} of --total_environment_frames={total:,} are done."
            )
            return
        if self._config.replay and self._replay is not None:
            least = self._config.replay.replay_buffer_min_size
            if len(self._replay) < least:
                self._progress.say(
                    f"Learner: updates begin with {least:,} sequences in the replay."
                )
        self._progress.say("Learner: the first update is compiled, which takes up to a minute.")

    def _finished(self) -> bool:
        return self.frames >= self._config.settings.total_environment_frames

    def _train(self, batch: Batch) -> None:
        output = self._updater.update(batch.unrolls, batch.weights)
        step = int(self._training_step.assign_add(1))
        self._source.update_priorities(batch, output.priorities)
        self._algorithm.after_update(step)
        self._publish()
        if step % self._config.settings.log_batch_frequency == 0:
            metrics = {
                "training/steps": step,
                "training/policy_lag": policy_lag(batch.unrolls, step - 1, self._algorithm.overlap),
                "inference/batch_size": self._inference.take_batch_size(),
            }
            self._summaries.write({**output.metrics, **metrics}, self.frames)

    def _publish(self) -> None:
        """Has the actors' next actions chosen with the weights as they are now."""
        self._copies.publish()
        self._inference.policy_version.assign(self._training_step)

    def _report(self) -> None:
        """Takes in the episodes that have ended and brings the live line up to date."""
        ended = self._inference.episodes.ended
        if count := ended.size():
            columns = [x.numpy().tolist() for x in tf.nest.flatten(ended.dequeue_many(count))]
            for episode in zip(*columns, strict=True):
                scalars = self._episodes.add(*episode)
                self._summaries.write(scalars, self.frames)
                self._tuning.add(scalars, self.frames)
        self._progress.update(self.frames, int(self._training_step), self._episodes.headline())

    def _save(self) -> None:
        path = self._checkpoints.save()
        self._export()
        self._summaries.flush()
        self._progress.say(f"Learner: saved {path} ({self._counts()}).")

    def _export(self) -> None:
        export_policy(self._algorithm, self._config.spec, f"{self._logdir}/policy")

    def _restore(self) -> None:
        path = self._checkpoints.restore(self._config.settings.init_checkpoint)
        if path:
            self._progress.say(f"Learner: resuming from {path} ({self._counts()}).")

    def _counts(self) -> str:
        return f"training step {int(self._training_step):,}, {self.frames:,} frames"

    def _make_replay(self) -> PrioritizedReplay | None:
        if self._config.replay is None:
            return None
        leaves = tf.nest.flatten(self._unroll_spec)
        specs = [ArraySpec.of(leaf.shape, leaf.dtype.as_numpy_dtype) for leaf in leaves]
        return PrioritizedReplay(specs, self._config.replay, self._config.settings.seed)

    def _make_source(self) -> BatchSource:
        batch_size = self._config.settings.batch_size
        if self._replay is None or self._config.replay is None:
            return QueueSource(self._inference.unrolls, batch_size)
        return ReplaySource(
            self._inference.unrolls, self._replay, self._algorithm, batch_size, self._config.replay
        )

    def _make_server(self, max_batch_size: int) -> Server:
        settings = self._config.settings
        server = Server(
            [self._config.server_address],
            settings={
                "environment": dict(self._config.environment),
                "num_training_envs": settings.num_training_envs,
                "num_eval_envs": settings.num_eval_envs,
                "seed": settings.seed,
            },
            security=self._config.security,
        )
        functions = []
        for i, policy in enumerate(self._copies.policies()):
            # Functions traced alike under one seed would draw the same random numbers.
            tf.random.set_seed(settings.seed + i)
            functions.append(self._inference.make_function(policy))
            functions[-1].get_concrete_function()
        server.bind(
            functions,
            name="inference",
            max_batch_size=max_batch_size,
            timeout_ms=settings.inference_timeout_ms,
        )
        return server

    def _updates_in_all(self) -> int:
        """Training steps until --total_environment_frames."""
        settings = self._config.settings
        trained = self._algorithm.steps_per_unroll - self._algorithm.overlap
        frames = settings.batch_size * trained * self._config.spec.frames_per_step
        ratio = self._config.replay.replay_ratio if self._config.replay else 1.0
        return max(1, int(settings.total_environment_frames * ratio / frames))

    def _check_memory(self) -> None:
        """Prints what the tables will take; refuses more than there is."""
        unroll_bytes = memory.spec_bytes(self._unroll_spec)
        tables = memory.tables(unroll_bytes, self._config.settings, self._config.replay)
        self._progress.say(f"Learner: memory for {memory.describe(tables)}.")
        memory.check_fits(tables, memory.available_bytes())


def run(config: LearnerConfig) -> None:
    """Runs a learner in this process until training has ended, or SIGTERM or SIGINT comes."""
    if not config.settings.logdir or config.settings.logdir.endswith("://"):
        raise UserError(
            "--logdir: expected a folder for checkpoints and summaries, got "
            f"'{config.settings.logdir}'."
        )
    try:
        tf.io.gfile.makedirs(config.settings.logdir)
    except tf.errors.OpError as error:
        raise UserError(
            f"--logdir: expected a folder to write to, got {config.settings.logdir} "
            f"({error.message})."
        ) from error
    learner = Learner(config)
    for number in signal.SIGTERM, signal.SIGINT:
        signal.signal(number, learner.stop)
    learner.run()
    logging.info("Learner: ended at %d frames.", learner.frames)

"""No unroll mixes two runs of an environment, whoever dies in the middle of it.

The learner's end is real but for training: central inference, its tables, the server. Actors are
processes on an environment whose observations tell all.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from agents.r2d2.agent import R2D2
from agents.r2d2.settings import R2D2Settings
from agents.vtrace.agent import ActorCriticOutput, VTrace
from agents.vtrace.settings import VTraceSettings
from seed_rl.algorithm import Algorithm
from seed_rl.grpc.server import Server
from seed_rl.inference import CentralInference, network_policy
from seed_rl.network import Network
from seed_rl.trajectories import TimeStep, Unroll
from seed_rl.types import StepType
from tests.end_to_end import counting
from tests.end_to_end.counting import NUM_ACTIONS, Stamp
from tests.end_to_end.processes import Program, main_program, wait_until

ENVS_PER_ACTOR, NUM_ACTORS = 4, 2
NUM_ENVS = ENVS_PER_ACTOR * NUM_ACTORS
NUM_KILLS = 4
QUEUE_CAPACITY = 1_000  # so that actors seldom wait, and are killed at all kinds of moments
SETTINGS = counting.CountingSettings()


class StepCounter(Network):
    """Indifferent to what it does; its state is how many steps of the episode it has seen."""

    def initial_state(self, batch_size: int) -> tf.Tensor:
        return tf.zeros([batch_size], tf.int32)

    def __call__(
        self, time_step: TimeStep, previous_action: tf.Tensor, state: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Acts only: T is 1. Returns zeros [1, B, A]."""
        scores = tf.zeros([*tf.unstack(tf.shape(previous_action)), NUM_ACTIONS])
        return scores, 1 + tf.where(time_step.is_first()[0], 0, state)


class ActorCriticStepCounter(StepCounter):
    def __call__(
        self, time_step: TimeStep, previous_action: tf.Tensor, state: tf.Tensor
    ) -> tuple[ActorCriticOutput, tf.Tensor]:
        scores, state = super().__call__(time_step, previous_action, state)
        return ActorCriticOutput(scores, scores[..., 0]), state


def vtrace() -> VTrace:
    """Unrolls of 12 time steps, one of which they share."""
    return VTrace(ActorCriticStepCounter, NUM_ACTIONS, VTraceSettings(unroll_length=11))


def r2d2() -> R2D2:
    """Unrolls of 12 time steps; each step is in two of them, or three."""
    settings = R2D2Settings(unroll_length=5, burn_in=6, exploration_epsilon=1.0)
    return R2D2(StepCounter, NUM_ENVS, 0, settings)


class LearnerEnd:
    """What actors talk to, and the unrolls that come out."""

    def __init__(self, algorithm: Algorithm, directory: Path):
        spec = counting.spec(SETTINGS)
        self._inference = CentralInference(algorithm, spec, NUM_ENVS, 0, QUEUE_CAPACITY)
        policy = network_policy(algorithm, algorithm.network)
        self._function = self._inference.make_function(policy)
        self._directory = directory
        self._server: Server | None = None
        self.unrolls: list[Unroll] = []

    def serve(self) -> None:
        """Serves with a new server, over the tables that are there."""
        self.close()
        settings = {
            "environment": dataclasses.asdict(SETTINGS),
            "num_training_envs": NUM_ENVS,
            "num_eval_envs": 0,
            "seed": 0,
        }
        self._server = Server([self._address], settings)
        self._server.bind(self._function, name="inference", max_batch_size=NUM_ENVS)
        self._server.start()

    def start_actor(self, task: int) -> Program:
        arguments = self._address, str(task), str(ENVS_PER_ACTOR)
        command = main_program("tests.end_to_end.counting", *arguments)
        return Program(self._directory / f"actor_{task}.log", *command)

    def collect(self, count: int) -> None:
        """Takes out the unrolls that are there, and `count` that come after."""
        queue = self._inference.unrolls
        for _ in range(queue.size() + count):
            wait_until(queue.size)
            unroll = tf.nest.map_structure(lambda x: x.numpy()[0], queue.dequeue_many(1))
            self.unrolls.append(unroll)

    def collect_from(self, actor: Program) -> None:
        """Takes out unrolls until one comes from that process."""
        self.collect(1)
        while actor.pid != _stamps(self.unrolls[-1]).process[0]:
            self.collect(1)

    def close(self) -> None:
        if self._server is not None:
            self._server.shutdown()

    @property
    def _address(self) -> str:
        return f"unix:{self._directory}/learner"


@pytest.fixture(params=[vtrace, r2d2])
def learner_end(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LearnerEnd]:
    end = LearnerEnd(request.param(), tmp_path)
    end.serve()
    yield end
    end.close()


def test_actor_killed_at_any_moment_leaves_no_mixed_unroll(learner_end: LearnerEnd) -> None:
    moments = np.random.default_rng(0)
    with learner_end.start_actor(0):  # goes on all the time
        for _ in range(NUM_KILLS):
            with learner_end.start_actor(1) as killed:
                learner_end.collect_from(killed)
                learner_end.collect(int(moments.integers(20)))
                time.sleep(moments.random() / 100)
        with learner_end.start_actor(1) as last:
            learner_end.collect_from(last)
    for unroll in learner_end.unrolls:
        assert_is_of_one_run(unroll)


def test_actor_that_lost_its_learner_leaves_no_mixed_unroll(learner_end: LearnerEnd) -> None:
    with learner_end.start_actor(0), learner_end.start_actor(1):
        for _ in range(3):
            learner_end.collect(50)
            learner_end.serve()
        learner_end.collect(50)
    for unroll in learner_end.unrolls:
        assert_is_of_one_run(unroll)


def assert_is_of_one_run(unroll: Unroll) -> None:
    """Checks that an unroll is what one environment saw and did in consecutive steps."""
    stamps = _stamps(unroll)
    is_first = unroll.time_step.step_type == StepType.FIRST
    was_last = unroll.time_step.step_type[:-1] == StepType.LAST
    assert len(set(zip(stamps.process, stamps.seed, strict=True))) == 1
    np.testing.assert_array_equal(np.diff(stamps.episode), was_last)
    np.testing.assert_array_equal(stamps.step[1:], np.where(was_last, 0, stamps.step[:-1] + 1))
    np.testing.assert_array_equal(is_first, stamps.step == 0)
    # What the learner remembers fits, from the first step on.
    assert unroll.initial_state == stamps.step[0] or is_first[0]
    np.testing.assert_array_equal(unroll.previous_action, stamps.action)
    np.testing.assert_array_equal(
        unroll.action[:-1][~was_last], unroll.previous_action[1:][~was_last]
    )


def _stamps(unroll: Unroll) -> Stamp:
    """Of its observations: [T] each."""
    return Stamp(*unroll.time_step.observation.T)

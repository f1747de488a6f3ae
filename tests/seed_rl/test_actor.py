"""Actors, in threads and in processes, against a real server that records what they send."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from signal import SIGINT, SIGTERM
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import atari.env
from catch.env import DOMAIN
from seed_rl import actor
from seed_rl.actor import ActorSettings
from seed_rl.errors import UserError
from seed_rl.grpc.server import Server
from seed_rl.types import StepType, TimeStep

FIRST, MID, LAST = StepType.FIRST, StepType.MID, StepType.LAST
COLUMNS = 1_000  # so many that the ball's column tells an episode from others
# The timeout is long for a machine that is busy with other tests; no test waits it out.
SETTINGS = ActorSettings(task=0, env_batch_size=2, connection_timeout_secs=120.0)

ACTOR_PROCESS = """
import sys
from catch.env import DOMAIN
from seed_rl import actor
actor.exit_on_signals()
print("ready", flush=True)
actor.run(sys.argv[1], actor.ActorSettings(env_batch_size=2), DOMAIN)
print(sorted({"tensorflow", "tf_keras", "tf_agents"} & set(sys.modules)))
"""


def settings_for(environment: dict[str, int], num_envs: int, seed: int = 0) -> dict[str, Any]:
    """What a learner without evaluation environments tells its actors."""
    counts = {"num_training_envs": num_envs, "num_eval_envs": 0}
    return {"environment": environment, "seed": seed, **counts}


class Request(NamedTuple):
    env_ids: np.ndarray
    run_ids: np.ndarray
    step_type: np.ndarray
    reward: np.ndarray
    observation: np.ndarray


class Recorder:
    """A learner's end that keeps every request and leaves the paddles where they are."""

    def __init__(self, address: str, *, rows: int = 3, num_envs: int = 2, seed: int = 7):
        dtypes = [tf.int32, tf.int64, tf.int32, tf.float32, tf.uint8]
        env_ids, run_ids, step_type, number = (
            tf.TensorSpec([None], dtype) for dtype in (tf.int32, tf.int64, tf.int32, tf.float32)
        )
        board = tf.TensorSpec([None, rows, COLUMNS], tf.uint8)
        self._requests = tf.queue.FIFOQueue(1_000, dtypes)

        @tf.function(input_signature=[env_ids, run_ids, TimeStep(step_type, number, number, board)])
        def inference(env_ids: tf.Tensor, run_ids: tf.Tensor, time_step: TimeStep) -> tf.Tensor:
            step_type, reward, _, observation, _ = time_step
            self._requests.enqueue([env_ids, run_ids, step_type, reward, observation])
            return tf.ones_like(env_ids)

        environment = {"rows": rows, "columns": COLUMNS}
        settings = settings_for(environment, num_envs, seed)
        self._server = Server([address], settings)
        self._server.bind(inference, max_batch_size=num_envs)
        self._server.start()
        self.shutdown = self._server.shutdown

    def receive(self, count: int) -> list[Request]:
        """The next `count` requests."""
        return [
            Request(*(tensor.numpy() for tensor in self._requests.dequeue())) for _ in range(count)
        ]


Serve = Callable[..., Recorder]
StartActor = Callable[..., "Future[None]"]
Spawn = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"unix:{tmp_path}/learner"


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as executor:
        yield executor


@pytest.fixture
def serve(address: str, threads: ThreadPoolExecutor) -> Iterator[Serve]:
    """serve(...) starts a Recorder. It ends before `threads` does, and so do the actors there."""
    recorders = []

    def start(**settings: int) -> Recorder:
        recorders.append(Recorder(address, **settings))
        return recorders[-1]

    yield start
    for recorder in recorders:
        recorder.shutdown(final=True)


@pytest.fixture
def start_actor(address: str, threads: ThreadPoolExecutor) -> StartActor:
    """start_actor(settings) runs an actor in a thread."""

    def start(settings: ActorSettings = SETTINGS) -> "Future[None]":
        return threads.submit(actor.run, address, settings, DOMAIN)

    return start


@pytest.fixture
def spawn(address: str) -> Iterator[Spawn]:
    """spawn() runs an actor in a process, and returns when that is about to connect."""
    processes = []

    def start() -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", ACTOR_PROCESS, address]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_sends_every_step_of_its_environments(serve: Serve, start_actor: StartActor) -> None:
    learner = serve()
    running = start_actor()
    requests = learner.receive(8)
    for request in requests:
        assert request.env_ids.tolist() == [0, 1]
        np.testing.assert_array_equal(request.run_ids, requests[0].run_ids)
    for n in range(2):
        kinds = [request.step_type[n] for request in requests]
        assert kinds == [FIRST, MID, LAST, FIRST, MID, LAST, FIRST, MID]
        assert [abs(request.reward[n]) for request in requests] == [0, 0, 1, 0, 0, 1, 0, 0]
    assert (requests[0].run_ids > 0).all()
    assert requests[0].run_ids[0] != requests[0].run_ids[1]

    learner.shutdown(final=True)
    assert running.result(timeout=60) is None


def test_task_picks_environments_and_seeds(serve: Serve, start_actor: StartActor) -> None:
    learner = serve(num_envs=4, seed=7)
    start_actor(ActorSettings(task=1, env_batch_size=2))
    (request,) = learner.receive(1)
    assert request.env_ids.tolist() == [2, 3]
    settings = DOMAIN.settings(rows=3, columns=COLUMNS)
    seeds = [actor.environment_seed(7, env_id) for env_id in (2, 3)]
    expected = DOMAIN.make_environments(settings, seeds).reset()
    np.testing.assert_array_equal(request.observation, expected.observation)


def test_runs_with_different_seeds_share_no_environment() -> None:
    seeds = [actor.environment_seed(seed, env_id) for seed in range(10) for env_id in range(100)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**31 for seed in seeds)  # what ALE takes


def test_returning_learner_gets_new_runs_of_the_same_environments(
    serve: Serve, start_actor: StartActor
) -> None:
    learner = serve()
    start_actor()
    before = learner.receive(2)
    learner.shutdown(final=False)
    learner = serve()
    after = learner.receive(4)

    assert [request.step_type[0] for request in after] == [FIRST, MID, LAST, FIRST]
    assert not set(before[0].run_ids) & set(after[0].run_ids)
    # Environments made anew from the same seeds would repeat their first episode.
    assert (after[0].observation != before[0].observation).any()


def test_returning_learner_may_change_the_environments(
    serve: Serve, start_actor: StartActor
) -> None:
    learner = serve(rows=3)
    start_actor()
    learner.receive(2)
    learner.shutdown(final=False)
    learner = serve(rows=5)
    after = learner.receive(6)
    assert [request.step_type[0] for request in after] == [FIRST, MID, MID, MID, LAST, FIRST]


def test_waits_for_a_late_learner(serve: Serve, start_actor: StartActor) -> None:
    running = start_actor()
    time.sleep(1)
    assert not running.done()
    (request,) = serve().receive(1)
    assert request.step_type.tolist() == [FIRST, FIRST]


def test_gives_up_on_an_absent_learner(address: str) -> None:
    settings = ActorSettings(connection_timeout_secs=0.5)
    message = (
        r"^--connection_timeout_secs=0.5: no server answered at unix:.* within 0.5 seconds "
        r"\(.*No such file or directory\)\.$"
    )
    with pytest.raises(UserError, match=message):
        actor.run(address, settings, DOMAIN)


def test_gives_up_on_a_learner_that_does_not_return(serve: Serve, start_actor: StartActor) -> None:
    learner = serve()
    running = start_actor(ActorSettings(env_batch_size=2, connection_timeout_secs=2.0))
    learner.receive(1)
    learner.shutdown(final=False)
    with pytest.raises(UserError, match=r"^--connection_timeout_secs=2: "):
        running.result(timeout=60)


def test_task_beyond_num_envs(serve: Serve, start_actor: StartActor) -> None:
    serve(num_envs=3)
    message = (
        "^--task=1 with --env_batch_size=2 takes environments 2 to 3, "
        "expected less than the learner's --num_envs=3.$"
    )
    with pytest.raises(UserError, match=message):
        start_actor(ActorSettings(task=1, env_batch_size=2)).result(timeout=60)


def test_learner_of_another_domain(serve: Serve, threads: ThreadPoolExecutor, address: str) -> None:
    serve()
    message = (
        r"^--server_address: expected a learner for environments with the settings .*\bgame\b.*, "
        r"got one with columns, rows: "
    )
    with pytest.raises(UserError, match=message):
        threads.submit(actor.run, address, SETTINGS, atari.env.DOMAIN).result(timeout=60)


def test_method_that_takes_something_else(address: str, threads: ThreadPoolExecutor) -> None:
    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def inference(env_ids: tf.Tensor) -> tf.Tensor:
        return env_ids

    environment = {"rows": 3, "columns": COLUMNS}
    with Server([address], settings_for(environment, num_envs=2)) as server:
        server.bind(inference, max_batch_size=2)
        server.start()
        with pytest.raises(
            UserError, match=f"^A call to the learner at {address} failed: .*argument"
        ):
            threads.submit(actor.run, address, SETTINGS, DOMAIN).result(timeout=60)


def test_process_needs_no_tensorflow_and_ends_with_training(serve: Serve, spawn: Spawn) -> None:
    learner = serve()
    process = spawn()
    learner.receive(3)
    learner.shutdown(final=True)
    output, _ = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, "[]\n")


@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
def test_signal_ends_a_process_that_interacts(serve: Serve, spawn: Spawn, number: int) -> None:
    learner = serve()
    process = spawn()
    learner.receive(3)
    process.send_signal(number)
    assert process.wait(timeout=60) == 128 + number


def test_signal_ends_a_process_that_waits_for_the_learner(spawn: Spawn) -> None:
    process = spawn()
    process.send_signal(SIGTERM)
    assert process.wait(timeout=60) == 128 + SIGTERM

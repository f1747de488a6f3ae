"""A learner that is killed, or asked to end, goes on where it was; actors wait for it."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from benchmarks import runs
from tests.end_to_end.processes import (
    Finished,
    Program,
    Scalar,
    assert_refused,
    main_program,
    run,
    run_local,
    scalars,
    wait_until,
)

COUNTS = r"/checkpoint-(\d+) \(training step ([\d,]+), ([\d,]+) frames\)"
SAVED = rf"Learner: saved \S+{COUNTS}"
RESUMING = rf"Learner: resuming from \S+{COUNTS}"
ENDLESS = "--total_environment_frames=1000000000"


class Training:
    """V-trace on Catch with a learner and two actors, each started by hand."""

    def __init__(self, directory: Path, stack: ExitStack):
        self.logdir = directory / "logdir"
        self._directory = directory
        self._stack = stack
        self._flags = [f"--server_address=unix:{directory}/learner", "--env_batch_size=4"]
        self.actors = [self._start(f"actor_{i}", f"--run_mode=actor --task={i}") for i in (0, 1)]

    def start_learner(self, name: str) -> Program:
        """A learner that saves every second."""
        flags = f"--num_envs=8 --logdir={self.logdir} --save_checkpoint_secs=1 {ENDLESS}"
        flags += " --log_episode_frequency=1"
        return self._start(name, flags)

    def _start(self, name: str, flags: str) -> Program:
        command = main_program("catch.vtrace_main", *self._flags, *flags.split())
        return self._stack.enter_context(Program(self._directory / f"{name}.log", *command))


class History:
    """A learner that is killed after two checkpoints, its successor, which is asked to end when it
    has saved what it learnt, and what their actors made of it."""

    def __init__(self, training: Training):
        killed = training.start_learner("killed")
        killed.wait_for(SAVED, count=2)
        killed.kill()
        self.kept = _latest_number(training.logdir)
        saved = re.findall(SAVED, killed.output)
        self.steps_kept = {int(number): _number(step) for number, step, _ in saved}
        second = training.start_learner("second")
        self.resumed = second.wait_for(RESUMING)
        # It may save before its first update, which it has to compile.
        wait_until(lambda: _saved_steps(second.output)[-1:] > [self.steps_kept[self.kept]])
        self.ended = second.terminate()
        self.saved_steps = _saved_steps(self.ended.output)
        self.last_saved = int(re.findall(SAVED, self.ended.output)[-1][0])
        self.last_kept = _latest_number(training.logdir)
        self.actors_alive = [actor.is_alive for actor in training.actors]
        self.actors = [actor.terminate() for actor in training.actors]
        self.logdir = training.logdir


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    with ExitStack() as stack:
        yield History(Training(tmp_path_factory.mktemp("resume"), stack))


def test_killed_learner_resumes_from_its_last_checkpoint(history: History) -> None:
    number, step, shown_frames = (_number(text) for text in history.resumed.groups())
    assert number == history.kept
    assert step == history.steps_kept[number] > 0
    # A batch is 16 unrolls of 10 time steps, one in ten of which is a reset and no frame; what is
    # trained was counted before.
    assert shown_frames >= step * 16 * 9


def test_resumed_learner_goes_on_counting(history: History) -> None:
    steps = history.saved_steps
    assert history.steps_kept[history.kept] <= steps[0] < steps[-1]
    assert steps == sorted(steps)
    frames = [scalar.frames for scalar in scalars(history.logdir)["training/return"]]
    assert frames[-1] > _number(history.resumed[3])


def test_summaries_say_where_a_learner_resumed(history: History) -> None:
    _, step, frames = (_number(text) for text in history.resumed.groups())
    assert Scalar(frames, step) in scalars(history.logdir)["training/steps"]


def test_curve_of_a_resumed_run_goes_forward_only(history: History) -> None:
    run = runs.read(history.logdir)
    frames = [episode.frames for episode in run.episodes]
    seconds = [episode.seconds for episode in run.episodes]
    assert frames == sorted(frames)
    assert seconds == sorted(seconds)
    assert frames[0] < _number(history.resumed[3]) < frames[-1]


def test_learner_that_is_asked_to_end_saves_first(history: History) -> None:
    assert history.ended.code == 0, history.ended.output
    assert history.last_kept == history.last_saved


def test_actors_outlive_their_learners(history: History) -> None:
    assert history.actors_alive == [True, True]
    for actor in history.actors:
        assert actor.code == 128 + signal.SIGTERM, actor.output
        assert len(re.findall("Connected to the learner", actor.output)) == 2
        assert len(re.findall("Lost the learner", actor.output)) == 2


@pytest.fixture(scope="module")
def with_replay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logdir of R2D2 on Catch that has kept its replay."""
    logdir = tmp_path_factory.mktemp("replay")
    run_local(logdir, "catch", "r2d2", "1", "--checkpoint_replay", *_short(4_000))
    return logdir


def test_replay_comes_back(with_replay: Path, tmp_path: Path) -> None:
    before = _replay(with_replay)
    assert before["inserted"] >= 200  # --replay_buffer_min_size
    # No frames are left to train on, so that the learner saves at once what it has restored.
    finished = _learner(tmp_path, with_replay, "--checkpoint_replay", *_short(4_000))
    assert finished.code == 0, finished.output
    after = _replay(with_replay)
    assert before.keys() == after.keys()
    for name in before:
        np.testing.assert_array_equal(after[name], before[name], err_msg=name)


def test_replay_of_another_size_is_refused(with_replay: Path, tmp_path: Path) -> None:
    flags = ["--checkpoint_replay", "--replay_buffer_size=100", "--replay_buffer_min_size=50"]
    finished = _learner(tmp_path, with_replay, *flags)
    assert_refused(finished, "--replay_buffer_size: ", str(with_replay), "size of 100")


def _learner(tmp_path: Path, logdir: Path, *flags: str) -> Finished:
    address = f"--server_address=unix:{tmp_path}/learner"
    command = main_program("catch.r2d2_main", f"--logdir={logdir}", address, *flags)
    return run(tmp_path / "learner.log", *command)


def _short(frames: int) -> list[str]:
    return [f"--total_environment_frames={frames}", "--replay_buffer_size=1000"]


def _replay(logdir: Path) -> dict[str, np.ndarray]:
    """The files of the one replay that is kept beside the checkpoints."""
    (directory,) = (logdir / "checkpoints").glob("replay-*")
    arrays = {file.name: np.load(file) for file in directory.glob("*.npy")}
    return {**arrays, **np.load(directory / "index.npz")}


def _latest_number(logdir: Path) -> int:
    index = (logdir / "checkpoints" / "checkpoint").read_text()
    (number,) = re.findall(r'^model_checkpoint_path: "checkpoint-(\d+)"', index, re.MULTILINE)
    return int(number)


def _saved_steps(output: str) -> list[int]:
    """The training steps of the checkpoints that a learner says it saved."""
    return [_number(step) for _, step, _ in re.findall(SAVED, output)]


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def test_logdir_may_be_a_bucket(tmp_path: Path) -> None:
    logdir = "ram://bucket/run"  # reached as gs:// is, through TensorFlow
    address = f"--server_address=unix:{tmp_path}/socket"
    flags = "--num_envs=8 --env_batch_size=8 --batch_size=4 --total_environment_frames=3000"
    command = main_program("catch.vtrace_main", address, *flags.split())
    with (
        Program(tmp_path / "learner", *command, f"--logdir={logdir}/", cwd=tmp_path) as learner,
        Program(tmp_path / "actor", *command, "--run_mode=actor") as actor,
    ):
        assert actor.finish().code == 0
        finished = learner.finish()
    assert finished.code == 0, finished.output
    assert f"Learner: saved {logdir}/checkpoints/checkpoint-1 " in finished.output
    assert {path.name for path in tmp_path.iterdir()} <= {"learner", "actor", "socket"}

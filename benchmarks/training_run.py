"""A training run started as a user starts it, watched for a while, and ended."""

from __future__ import annotations

import contextlib
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import seed_rl  # noqa: F401  (chooses legacy Keras before TensorFlow is imported)
from benchmarks import processes
from benchmarks.processes import CpuTime, Memory
from seed_rl.children import Child, ending
from seed_rl.errors import UserError

import tensorflow as tf  # isort: skip
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # isort: skip

_REPOSITORY = Path(__file__).resolve().parents[1]
_POLL_SECONDS = 0.2
_PATIENCE_SECONDS = 900.0  # for the first update, and for the end
_UPDATES = re.compile(r"frames/s, (?!- |0 )\S+ updates/s")  # in a line of progress, some


class Scalar(NamedTuple):
    """A point in a summary: time in seconds since 1970, engine frames of the run, value."""

    time: float
    frames: int
    value: float


class Process(NamedTuple):
    """What a process used during the window.

    Attributes:
      name: "learner", "actor 0", or "launcher", the parent of the others.
      cpu: CPU seconds per second.
      threads: the same by name of thread.
      memory: in the window's middle.
    """

    name: str
    cpu: float
    threads: dict[str, float]
    memory: Memory


class Window(NamedTuple):
    """What happened in a stretch of a run.

    Attributes:
      frames: engine frames per second.
      updates: per second.
      policy_lag: mean, in updates.
      batch_size: mean rows of an inference batch.
      processes: all of the run.
    """

    frames: float
    updates: float
    policy_lag: float
    batch_size: float
    processes: list[Process]


def watch(command: Sequence[str], logdir: Path, warm_up_seconds: float, seconds: float) -> Window:
    """Starts a run, lets it warm up after its first update, watches it, and ends it.

    Args:
      command: what run_local.sh would be given, without --logdir.
      logdir: an existing directory.
      warm_up_seconds, seconds: how long.

    Raises:
      UserError: the run ended by itself, or did too little to be measured.
    """
    program = [sys.executable, "-u", "-m", "seed_rl.local", *command, "--notensorboard"]
    with _run([*program, f"--logdir={logdir}"], logdir) as run:
        _wait(run, lambda: _UPDATES.search(run.log.read_text()))
        _sleep(run, warm_up_seconds)
        names = _names(run.pid)
        start, before = time.time(), _cpu_times(names)
        _sleep(run, seconds / 2)
        memory = {pid: processes.memory(pid) for pid in names}
        _sleep(run, seconds / 2)
        end, after = time.time(), _cpu_times(names)
        run.terminate()  # the learner writes down what it has
        _wait(run, lambda: run.poll() is not None, ends=True)
    used = [
        _process(name, before[pid], after[pid], memory[pid], end - start)
        for pid, name in names.items()
    ]
    return _window(scalars(logdir), start, end, used)


def scalars(logdir: Path) -> dict[str, list[Scalar]]:
    """What a run's one start wrote in its summaries, by tag."""
    (file,) = (logdir / "summaries").glob("events.out.tfevents.*")
    events = EventAccumulator(str(file), size_guidance={"tensors": 0})
    events.Reload()
    tags = events.Tags()["tensors"]
    return {tag: [_scalar(event) for event in events.Tensors(tag)] for tag in tags}


def _scalar(event: Any) -> Scalar:
    return Scalar(event.wall_time, event.step, float(tf.make_ndarray(event.tensor_proto)))


@contextlib.contextmanager
def _run(program: Sequence[str], logdir: Path) -> Iterator[Child]:
    run = Child("run", program, logdir, environment={"PYTHONPATH": str(_REPOSITORY)})
    try:
        yield run
    finally:
        run.kill()


def _wait(run: Child, condition: Callable[[], object], ends: bool = False) -> None:
    """Waits until the condition holds; the run may end before only if it `ends`."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise UserError(f"The run made no headway; its log ends with:\n{_tail(run)}")
        if not ends:
            _check_alive(run)
        time.sleep(_POLL_SECONDS)


def _sleep(run: Child, seconds: float) -> None:
    time.sleep(seconds)
    _check_alive(run)


def _check_alive(run: Child) -> None:
    if (code := run.poll()) is not None:
        raise UserError(f"The run {ending(code)}; its log ends with:\n{_tail(run)}")


def _tail(run: Child) -> str:
    return "\n".join(run.log.read_text().splitlines()[-20:])


def _names(launcher: int) -> dict[int, str]:
    """The run's processes: names by id."""
    names = {launcher: "launcher"}
    for pid in processes.children(launcher):
        words = processes.command_line(pid)
        if "--run_mode=actor" in words:
            (task,) = (word for word in words if word.startswith("--task="))
            names[pid] = f"actor {task.removeprefix('--task=')}"
        else:
            names[pid] = "learner"
    return names


def _cpu_times(names: dict[int, str]) -> dict[int, CpuTime]:
    try:
        return {pid: processes.cpu_time(pid) for pid in names}
    except OSError:
        raise UserError("An actor died and was started again: nothing to measure.") from None


def _process(name: str, before: CpuTime, after: CpuTime, memory: Memory, seconds: float) -> Process:
    threads = {
        thread: (time - before.by_thread.get(thread, 0.0)) / seconds
        for thread, time in after.by_thread.items()
    }
    return Process(name, (after.total - before.total) / seconds, threads, memory)


def _window(
    by_tag: dict[str, list[Scalar]], start: float, end: float, used: list[Process]
) -> Window:
    def inside(tag: str) -> list[Scalar]:
        return [scalar for scalar in by_tag.get(tag, ()) if start <= scalar.time <= end]

    steps = inside("training/steps")
    if len(steps) < 2:
        raise UserError(
            "--seconds: expected time for two summaries at least, of which each comes after "
            f"--log_batch_frequency updates, got {end - start:.0f} with {len(steps)}."
        )
    first, last = steps[0], steps[-1]
    seconds = last.time - first.time
    return Window(
        frames=(last.frames - first.frames) / seconds,
        updates=(last.value - first.value) / seconds,
        policy_lag=statistics.fmean(scalar.value for scalar in inside("training/policy_lag")),
        batch_size=statistics.fmean(scalar.value for scalar in inside("inference/batch_size")),
        processes=used,
    )

"""This project's programs as their users start them: processes, and the files that they leave."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

REPOSITORY = Path(__file__).resolve().parents[2]
RUN_LOCAL = str(REPOSITORY / "run_local.sh")
PATIENCE_SECONDS = 250.0

# Whatever a test starts inherits this variable, however far down: so nothing can hide.
_MARK = f"SEED_RL_TESTS={uuid.uuid4().hex}"


class Finished(NamedTuple):
    """A program that has ended; `output` holds what it printed, errors included."""

    code: int
    output: str


class Program:
    """A running program. Leaving its `with` block kills it and all that it started.

    Args:
      log: file for its output, so that no pipe can fill up and stop it.
      command: program and arguments.
      cwd: where it runs.
      imports: whether it finds this project's modules; run_local.sh sees to that itself.
      variables: of its environment, on top of this process's.
    """

    def __init__(
        self,
        log: Path,
        *command: str,
        cwd: Path = REPOSITORY,
        imports: bool = True,
        variables: Mapping[str, str] | None = None,
    ):
        self._log = log
        with log.open("w") as output:
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env={**_environment(imports), **(variables or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        return self._log.read_text()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def wait_for(self, pattern: str, count: int = 1) -> re.Match[str]:
        """Waits until the output holds `count` matches of the pattern; returns the last of them."""

        def matches() -> list[re.Match[str]]:
            return list(re.finditer(pattern, self.output))

        wait_until(lambda: len(matches()) >= count or not self.is_alive)
        assert len(matches()) >= count, f"ended without {pattern!r}:\n{self.output}"
        return matches()[count - 1]

    def finish(self) -> Finished:
        """Waits for the end."""
        code = self._process.wait(PATIENCE_SECONDS)
        return Finished(code, self.output)

    def terminate(self) -> Finished:
        """Asks for the end, and waits for it."""
        self._process.terminate()
        return self.finish()

    def kill(self) -> None:
        """SIGKILL, for the program and all in its session."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill()


def run(log: Path, *command: str, cwd: Path = REPOSITORY, imports: bool = True) -> Finished:
    """Runs a program to its end."""
    with Program(log, *command, cwd=cwd, imports=imports) as program:
        return program.finish()


def main_program(module: str, *flags: str) -> list[str]:
    """The command of a learner or an actor, started by hand."""
    return [sys.executable, "-m", module, *flags]


def run_local(logdir: Path, *arguments: str, cwd: Path = REPOSITORY) -> Finished:
    """`./run_local.sh ARGUMENTS` to its end; it must end well."""
    logdir.mkdir(parents=True, exist_ok=True)
    command = [RUN_LOCAL, *arguments, "--notensorboard", f"--logdir={logdir}"]
    finished = run(logdir / "run_local.log", *command, cwd=cwd, imports=False)
    assert finished.code == 0, finished.output
    return finished


def assert_refused(finished: Finished, *parts: str) -> None:
    """Checks that a program ended with one sentence for its user, which holds all the parts."""
    assert finished.code == 1, finished.output
    assert "Traceback" not in finished.output
    (error,) = re.findall(r"^Error: (.*)$", finished.output, re.MULTILINE)
    for part in parts:
        assert part in error


class Scalar(NamedTuple):
    frames: int
    value: float


def scalars(logdir: Path) -> dict[str, list[Scalar]]:
    """What a run wrote for TensorBoard, by tag, oldest first."""
    by_tag = defaultdict(list)
    for file in sorted((logdir / "summaries").iterdir()):
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            for value in event.summary.value:
                scalar = Scalar(event.step, float(tf.make_ndarray(value.tensor)))
                by_tag[value.tag].append(scalar)
    return by_tag


def wait_until(condition: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.05)


def survivors() -> list[int]:
    """Ids of the processes that tests started and that live."""
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if _is_marked(path)]


def _is_marked(process: Path) -> bool:
    try:
        return _MARK.encode() in (process / "environ").read_bytes()
    except OSError:  # it has just ended, or is another user's
        return False


def _environment(imports: bool) -> dict[str, str]:
    """This process's, but for what a user's would not have."""
    mark, value = _MARK.split("=")
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", mark: value}
    for name in "PYTHONPATH", "TF_USE_LEGACY_KERAS":  # the latter is set by importing seed_rl
        environment.pop(name, None)
    return {**environment, "PYTHONPATH": str(REPOSITORY)} if imports else environment

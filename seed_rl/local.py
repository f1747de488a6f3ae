"""One learner, its actors and a TensorBoard on this machine: what run_local.sh starts.

The learner shows its progress on this command's standard output; everything else that the processes
print goes to <logdir>/logs. Every process is in a session of its own, so that the terminal's Ctrl-C
reaches this one only, which then ends the others in order: first the learner, which saves a
checkpoint, then the rest. This module and what it imports start in a moment: no TensorFlow.

Exit code: the learner's; 128 + n where signal n ended it; 1 for a wrong command line.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import shlex
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from seed_rl import starts
from seed_rl.children import Actor, Child, end_all, ending, on_stop_signals
from seed_rl.command import REPOSITORY, Command, parse
from seed_rl.logs import last_words, quote, shown
from seed_rl.machine import cores
from seed_rl.progress import say
from seed_rl.settings import setting

USAGE = "run_local.sh ENVIRONMENT AGENT NUM_ACTORS [ENVS_PER_ACTOR] [--any_flag=value ...]"

POLL_SECONDS = 0.1


@dataclasses.dataclass(frozen=True)
class LocalSettings:
    """The flags of this command; those of learner and actors are not known here."""

    logdir: str = setting(
        "", "Where the run keeps all it writes. Empty: runs/<environment>_<agent>/<time>, fresh."
    )
    server_address: str = setting(
        "", "Where the learner listens. Empty: a unix socket of this run's own."
    )
    tensorboard: bool = setting(True, "Start a TensorBoard for this run.")
    tensorboard_port: int = setting(
        6006,
        "TensorBoard's port on localhost; if it is taken, a free one.",
        minimum=1,
        maximum=65535,
    )


class Run:
    """One learner with all that belongs to it.

    Args:
      command: what to run.
      logdir: absolute; this process holds its lock.
      scratch: directory for the socket, with a short path: the kernel takes no more than 107 bytes.
    """

    def __init__(self, command: Command[LocalSettings], logdir: Path, scratch: Path):
        self._command = command
        self._logdir = logdir
        self._logs = logdir / "logs"
        self._address = command.settings.server_address or f"unix:{scratch / 'learner'}"
        self._children: list[Child] = []
        self._actors: list[Actor] = []
        self._tensorboard: Child | None = None
        self._started = time.time()
        self._stops_asked = 0  # stop signals that came
        self._stops_passed_on = 0  # of those, how many the learner has heard of

    def run(self) -> int:
        """Runs until the learner ends, by itself or after a signal. Returns the exit code."""
        self._count_stop_signals()
        self._logs.mkdir(exist_ok=True)
        say(f"Checkpoints, TensorBoard data: {shown(self._logdir)}")
        say(f"Logs: {shown(self._logs)}")
        try:
            command = self._main_command("learner", f"--intra_op_threads={operation_threads()}")
            learner = Child("learner", command, self._logs, shares_stdout=True)
            self._children.append(learner)
            if self._command.settings.tensorboard:
                self._start_tensorboard()
            while (code := learner.poll()) is None:
                if self._stops_asked > self._stops_passed_on:
                    self._stop(learner)
                if not self._stops_asked:
                    self._tend_actors()
                    self._watch_tensorboard()
                time.sleep(POLL_SECONDS)
        finally:
            end_all(self._children)
        self._report(learner, code)
        if code == 0 and any(actor.mistakes for actor in self._actors):
            return 1
        return code if code >= 0 else 128 - code

    def _count_stop_signals(self) -> None:
        def count(number: int, frame: object) -> None:
            del number, frame
            self._stops_asked += 1

        on_stop_signals(count)

    def _start_tensorboard(self) -> None:
        port = _free_port(self._command.settings.tensorboard_port)
        # Without its fast loader, which is one more process that could be left over.
        options = f"--host=127.0.0.1 --port={port} --load_fast=false --reload_interval=30".split()
        program = [sys.executable, "-m", "tensorboard.main", f"--logdir={self._logdir}"]
        self._tensorboard = Child("tensorboard", [*program, *options], self._logs)
        self._children.append(self._tensorboard)
        say(f"TensorBoard: http://localhost:{port}")

    def _watch_tensorboard(self) -> None:
        """Training does without it, but its end should not surprise."""
        if self._tensorboard and (code := self._tensorboard.poll()) is not None:
            say(f"TensorBoard {ending(code)}; its log: {shown(self._tensorboard.log)}")
            self._tensorboard = None

    def _tend_actors(self) -> None:
        for actor in self._actors:
            actor.tend()
            if actor.mistakes:
                self._give_up(actor)
                return
        # Actors could wait for the learner themselves, but where it refuses a flag, so would they:
        # one process should say so.
        if not self._actors and self._learner_listens():
            self._actors = [self._start_actor(task) for task in range(self._command.num_actors)]
            self._children += self._actors

    def _give_up(self, actor: Actor) -> None:
        """Ends the run for a user's mistake, which starting the actor again would not mend."""
        quote(actor.log, actor.mistakes)
        self._stops_asked += 1

    def _learner_listens(self) -> bool:
        """Whether the learner's socket is there; for other addresses, True."""
        scheme, _, path = self._address.partition(":")
        return scheme != "unix" or os.path.exists(path)

    def _start_actor(self, task: int) -> Actor:
        command = self._main_command("actor", f"--task={task}")
        # A thread per core in each of many processes would slow all of them down.
        return Actor(f"actor_{task:02}", command, self._logs, environment={"OMP_NUM_THREADS": "1"})

    def _main_command(self, run_mode: str, *options: str) -> list[str]:
        """The command of the learner or an actor."""
        return self._command.main(
            run_mode,
            f"--logdir={self._logdir}",
            f"--server_address={self._address}",
            f"--num_envs={self._command.num_actors * self._command.envs_per_actor}",
            *options,
        )

    def _stop(self, learner: Child) -> None:
        # Signals that came at once, say from a terminal and from a wrapper, are one wish.
        if not self._stops_passed_on:
            say("Stopping: the learner saves a checkpoint; ask again to kill it.")
            learner.terminate()
        else:
            learner.kill()
        self._stops_passed_on = self._stops_asked

    def _report(self, learner: Child, code: int) -> None:
        if code != 0 and not self._stops_asked:
            # A user's mistake says it all; what libraries print around it would hide it.
            words = last_words(learner.log)
            quote(learner.log, words.mistakes or words.lines)
        say(f"The learner {ending(code)}.")
        if self._has_saved():
            logdir = shlex.quote(shown(self._logdir))
            say(f"To go on from its last checkpoint, add: --logdir={logdir}")

    def _has_saved(self) -> bool:
        """Whether this run, not only one before it, has saved a checkpoint."""
        index = self._logdir / "checkpoints" / "checkpoint"
        return index.exists() and index.stat().st_mtime >= self._started


def operation_threads() -> int:
    """Threads of one TensorFlow operation of a learner whose actors run on the same machine.

    The other half of the cores is for environments; more threads cost more CPU time in all.
    """
    return max(1, cores() // 2)


def _free_port(wanted: int) -> int:
    """The wanted port of localhost, or any free one if it is taken."""
    for port in (wanted, 0):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return int(probe.getsockname()[1])
    raise OSError("no free port on localhost")


def _make_logdir(command: Command[LocalSettings]) -> Path:
    given = command.settings.logdir
    if "://" in given:
        raise SystemExit(f"--logdir: expected a directory of this machine, got '{given}'.")
    fresh = f"runs/{command.environment}_{command.agent}/{time.strftime('%Y%m%d-%H%M%S')}"
    logdir = Path(given).absolute() if given else REPOSITORY / fresh
    try:
        logdir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SystemExit(f"--logdir: cannot make '{logdir}': {error.strerror}.") from None
    return logdir


@contextlib.contextmanager
def _locked(logdir: Path) -> Iterator[None]:
    """Holds <logdir>/run.lock, with this process's id in it. The kernel lets go when it dies."""
    try:
        lock = (logdir / "run.lock").open("a+")
    except OSError as error:
        raise SystemExit(f"--logdir: cannot write to '{logdir}': {error.strerror}.") from None
    with lock:
        lock.seek(0)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(
                f"--logdir: '{shown(logdir)}' belongs to a run that has not ended (process"
                f" {lock.read().strip()}); choose another, or stop that run with"
                f" ./stop_local.sh --logdir={shlex.quote(shown(logdir))}."
            ) from None
        lock.truncate(0)
        print(os.getpid(), file=lock, flush=True)
        yield


def main(argv: Sequence[str]) -> int:
    command = parse(argv, USAGE, LocalSettings)
    logdir = _make_logdir(command)
    with _locked(logdir), tempfile.TemporaryDirectory(prefix="seed_rl_", dir="/tmp") as scratch:
        starts.record(logdir, REPOSITORY, ["./run_local.sh", *argv])
        return Run(command, logdir, Path(scratch)).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Child processes that cannot outlive their parent, and actors that are started again."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from seed_rl.errors import USER_ERROR_CODE
from seed_rl.logs import START_MARK, last_words
from seed_rl.progress import say

FIRST_WAIT_SECONDS, LAST_WAIT_SECONDS = 1.0, 30.0  # before a restart; doubles from one to the other
GRACE_SECONDS = 5.0  # from SIGTERM to SIGKILL, for processes with nothing to save
STABLE_SECONDS = 60.0  # an actor that lived this long starts again after the first wait

_libc = ctypes.CDLL(None)


class Child:
    """A process in a session of its own. The kernel kills it when this process dies.

    Args:
      name: names it to the user, and its log.
      command: program and arguments.
      logs: directory of the log to which its output is added.
      shares_stdout: its standard output is this process's; only standard error goes to the log.
      environment: variables on top of this process's.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        logs: Path,
        *,
        shares_stdout: bool = False,
        environment: Mapping[str, str] | None = None,
    ):
        self.name = name
        self.log = logs / f"{name}.log"
        self._command = command
        self._shares_stdout = shares_stdout
        self._environment = {**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})}
        self._process = self._start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while the process lives."""
        return self._process.poll()

    def terminate(self) -> None:
        """Asks the process, and it alone, to end."""
        self._process.terminate()

    def kill(self, after_seconds: float = 0.0) -> None:
        """Waits that long for the process to end, then kills it and all that it started."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(after_seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        with self.log.open("a") as log:
            log.write(f"{START_MARK} {time.strftime('%F %T')} {shlex.join(self._command)}\n")
            log.flush()
            return subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=None if self._shares_stdout else log,
                stderr=log,
                env=self._environment,
                start_new_session=True,
                preexec_fn=functools.partial(die_with, os.getpid()),
            )


class Actor(Child):
    """A child that is started again when it ends, after a wait that grows while it keeps ending.

    Attributes:
      mistakes: the sentences with which it ended for a user's mistake; it is not started again.
    """

    mistakes: Sequence[str] = ()
    _wait = FIRST_WAIT_SECONDS
    _restart_at: float | None = None

    def tend(self) -> int | None:
        """Does what is due now. Returns the exit code where it has just ended, else None."""
        now = time.monotonic()
        code = self.poll()
        if code is None or self.mistakes:
            return None
        if self._restart_at is None:
            if code == USER_ERROR_CODE:
                self.mistakes = last_words(self.log).mistakes
            self._restart_at = now + self._next_wait(code, now - self._started_at)
            return code
        if now >= self._restart_at:
            self.kill()  # what it started and left behind
            self._restart_at = None
            self._process = self._start()
            say(f"{self.name} {ending(code)} and was started again; its log: {self.log}")
        return None

    def _start(self) -> subprocess.Popen[bytes]:
        self._started_at = time.monotonic()
        return super()._start()

    def _next_wait(self, code: int, lived_seconds: float) -> float:
        if code == 0:  # the learner said that training is over, and is about to end itself
            return LAST_WAIT_SECONDS
        wait = FIRST_WAIT_SECONDS if lived_seconds >= STABLE_SECONDS else self._wait
        self._wait = min(2 * wait, LAST_WAIT_SECONDS)
        return wait


def on_stop_signals(handler: Callable[[int, object], None]) -> None:
    """Has signals that ask for the end handled, in the way of signal.signal."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup means it
            signal.signal(number, handler)


def end_all(children: Sequence[Child]) -> None:
    """Asks all to end, and kills those that have not after GRACE_SECONDS."""
    for child in children:
        child.terminate()
    deadline = time.monotonic() + GRACE_SECONDS
    for child in children:
        child.kill(after_seconds=max(0.0, deadline - time.monotonic()))


def ending(code: int) -> str:
    """An exit code in words."""
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


def die_with(parent: int) -> None:
    """In a new child: has the kernel kill it when its parent dies, however that comes."""
    pr_set_pdeathsig = 1
    _libc.prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:  # too late: it is dead already
        os._exit(1)

"""Servers in processes of their own, so that what they cost can be told from what loads them."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

from benchmarks import processes

_STOP_SECONDS = 20.0


class ServerProcess:
    """A process that serves until the end of a `with` block, or until this process ends.

    Args:
      serve: runs in the process, as serve(pipe, *arguments): sends one message when it is up,
        answers each that comes with one, and serves until there are no more (EOFError).
      *arguments: for `serve`; must be picklable.

    Attributes:
      first_message: what the process sent when it was up.

    Raises:
      RuntimeError: the process has ended; what it printed says why.
    """

    def __init__(self, serve: Callable[..., None], *arguments: Any):
        context = multiprocessing.get_context("spawn")  # a fork would copy locks of TensorFlow
        self._pipe, other_end = context.Pipe()
        self._process = context.Process(
            target=_run, args=(serve, other_end, *arguments), daemon=True
        )
        self._process.start()
        other_end.close()
        with self._not_dead():
            self.first_message = self._pipe.recv()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def ask(self, question: Any) -> Any:
        """Sends a message and waits for the answer."""
        with self._not_dead():
            self._pipe.send(question)
            return self._pipe.recv()

    def cpu_seconds(self) -> float:
        """CPU time of the process so far."""
        return processes.cpu_time(self.pid).total

    def stop(self) -> None:
        """Ends the process. Idempotent."""
        self._pipe.close()
        self._process.join(_STOP_SECONDS)
        self._process.kill()
        self._process.join()

    @contextlib.contextmanager
    def _not_dead(self) -> Iterator[None]:
        """Turns the errors of a pipe whose other end is gone into one that says so."""
        try:
            yield
        except (EOFError, ConnectionError):
            self._process.join()
            code = self._process.exitcode
            raise RuntimeError(f"a server process ended with exit code {code}") from None

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


def _run(serve: Callable[..., None], pipe: Connection, *arguments: Any) -> None:
    # Ctrl-C reaches all processes of a terminal; this one ends with the other end of its pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, ConnectionError):
        serve(pipe, *arguments)

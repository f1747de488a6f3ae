"""Servers in processes of their own."""

import os
import signal
from multiprocessing.connection import Connection

import pytest

from benchmarks.server_process import ServerProcess


def double(pipe: Connection, greeting: str) -> None:
    pipe.send((greeting, os.getpid()))
    while True:
        pipe.send(2 * pipe.recv())


def fail(pipe: Connection) -> None:
    os._exit(7)


def ends(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_process_says_that_it_is_up_and_answers() -> None:
    with ServerProcess(double, "hello") as process:
        assert process.first_message == ("hello", process.pid)
        assert process.pid != os.getpid()
        assert [process.ask(1), process.ask("a")] == [2, "aa"]
        assert process.cpu_seconds() > 0
    assert ends(process.pid)


def test_a_process_that_cannot_start_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="exit code 7"):
        ServerProcess(fail)


def test_a_process_that_dies_is_an_error() -> None:
    with ServerProcess(double, "hello") as process:
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(RuntimeError, match="exit code -9"):
            process.ask(1)


def test_ctrl_c_is_for_the_benchmark_alone() -> None:
    with ServerProcess(double, "hello") as process:
        os.kill(process.pid, signal.SIGINT)
        assert process.ask(1) == 2

"""/proc against what processes know of themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from benchmarks import processes

MEGABYTE = 1_000_000
BURNER = """
import json, resource, sys, threading, time
from seed_rl.threads import started_as

def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

kept = bytearray(b"x" * 50_000_000)
brief = threading.Thread(target=burn, args=(0.2,))
brief.start()
brief.join()
enough = threading.Event()
def burn_and_stay():
    burn(0.5)
    burnt.release()
    enough.wait()
burnt = threading.Semaphore(0)
with started_as("a) S (b"):
    for _ in range(2):
        threading.Thread(target=burn_and_stay, daemon=True).start()
for _ in range(2):
    burnt.acquire()
burn(0.3)
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024]), flush=True)
sys.stdin.read()
"""


class Burner(NamedTuple):
    """A process that has used 0.5 CPU seconds in each of two threads named "a) S (b", 0.3 in its
    main thread, 0.2 in one that has ended, and some to start; now it waits."""

    pid: int
    cpu_seconds: float
    most_resident: int


@pytest.fixture(scope="module")
def burner() -> Iterator[Burner]:
    command = [sys.executable, "-c", BURNER]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        yield Burner(process.pid, *json.loads(process.stdout.readline()))
        process.stdin.close()


def test_cpu_time_is_what_the_process_counts_itself(burner: Burner) -> None:
    total = processes.cpu_time(burner.pid).total
    assert total == pytest.approx(burner.cpu_seconds, abs=0.03)  # in hundredths
    assert total > 1.5


def test_cpu_time_of_living_threads_comes_by_name(burner: Burner) -> None:
    total, by_thread = processes.cpu_time(burner.pid)
    assert by_thread["a) S (b"] == pytest.approx(1.0, abs=0.05)
    assert 0.15 < total - sum(by_thread.values()) < 0.25  # the thread that has ended


def test_memory_is_what_the_process_has_allocated(burner: Burner) -> None:
    resident, proportional = processes.memory(burner.pid)
    assert 50 * MEGABYTE < proportional <= resident <= burner.most_resident + MEGABYTE


def test_children_and_their_command_lines(burner: Burner) -> None:
    assert burner.pid in processes.children(os.getpid())
    assert processes.children(burner.pid) == []
    assert processes.command_line(burner.pid) == [sys.executable, "-c", BURNER]


def test_a_process_that_has_ended_is_missed() -> None:
    with subprocess.Popen(["true"]) as process:
        pass
    for function in processes.cpu_time, processes.memory, processes.children:
        with pytest.raises(OSError):
            function(process.pid)


def test_fields_of_stat_are_found_behind_any_name() -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    text = f"7 (x) y (z) S 1 2 3 4 5 6 7 8 9 10 {3 * ticks} {2 * ticks} 13 14\n"
    assert processes.parse_stat(text) == ("x) y (z", 5.0)

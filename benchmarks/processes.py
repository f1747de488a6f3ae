"""CPU time and memory of other processes, from /proc (see proc(5)).

All functions raise OSError where there is no such process.
"""

from __future__ import annotations

import collections
import os
import re
from pathlib import Path
from typing import NamedTuple

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_UTIME, _STIME = 11, 12  # fields of `stat`, counted from the first one behind the name


class CpuTime(NamedTuple):
    """CPU time of a process so far, in seconds, to a hundredth.

    Attributes:
      total: of all its threads, also of those that have ended.
      by_thread: of those that live, by name; threads of the same name are added up.
    """

    total: float
    by_thread: dict[str, float]


class Memory(NamedTuple):
    """Memory of a process, in bytes.

    Attributes:
      resident: what of it is in main memory (RSS).
      proportional: the same, but of pages shared by n processes the n-th part (PSS).
    """

    resident: int
    proportional: int


def cpu_time(pid: int) -> CpuTime:
    by_thread: dict[str, float] = collections.defaultdict(float)
    for thread in Path(f"/proc/{pid}/task").iterdir():
        try:
            name, seconds = parse_stat((thread / "stat").read_text())
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        by_thread[name] += seconds
    _, total = parse_stat(Path(f"/proc/{pid}/stat").read_text())
    return CpuTime(total, dict(by_thread))


def parse_stat(text: str) -> tuple[str, float]:
    """Name and CPU seconds (user and system) of a process or thread, from its `stat`."""
    start, end = text.index("("), text.rindex(")")  # a name may hold anything, ") R 1 2" included
    fields = text[end + 1 :].split()
    return text[start + 1 : end], (int(fields[_UTIME]) + int(fields[_STIME])) / _TICKS_PER_SECOND


def memory(pid: int) -> Memory:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    kilobytes = dict(re.findall(r"^(\w+): +(\d+) kB$", text, re.MULTILINE))
    return Memory(int(kilobytes["Rss"]) * 1024, int(kilobytes["Pss"]) * 1024)


def children(pid: int) -> list[int]:
    """Ids of the processes that this one has started itself."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sorted(int(child) for thread in threads for child in _children_of_thread(thread))


def _children_of_thread(thread: Path) -> list[str]:
    try:
        return (thread / "children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return []  # it has just ended


def command_line(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]

"""Logs of child processes: each has the output of a process and of those started in its place.

Every process begins with a line that starts with START_MARK.
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from seed_rl.errors import USER_ERROR_MARK
from seed_rl.progress import say

START_MARK = "---"
TAIL_LINES = 20


class LastWords(NamedTuple):
    """What a log's latest process wrote.

    Attributes:
      lines: its last lines, at most TAIL_LINES.
      mistakes: all its lines that name a user's mistake.
    """

    lines: list[str]
    mistakes: list[str]


def last_words(log: Path) -> LastWords:
    """Reads the log for what its latest process wrote."""
    lines: collections.deque[str] = collections.deque(maxlen=TAIL_LINES)
    mistakes: list[str] = []
    with log.open(errors="replace") as file:
        for line in file:
            if line.startswith(START_MARK):
                lines.clear()
                mistakes.clear()
            lines.append(line.rstrip("\n"))
            if line.startswith(USER_ERROR_MARK):
                mistakes.append(lines[-1])
    return LastWords(list(lines), mistakes)


def quote(log: Path, lines: Sequence[str]) -> None:
    """Shows the user lines of a log, and which log."""
    text = "\n  ".join(lines)
    say(f"From {shown(log)}:\n  {text}", sys.stderr)


def shown(path: Path) -> str:
    """The path as the user would write it."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)

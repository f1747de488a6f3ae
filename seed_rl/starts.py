"""What a run was started with: <logdir>/commands.txt, to which every start adds two lines.

# 2026-12-02T18:52:00+00:00; commit a9592b3...; AMD EPYC, 2 cores
./run_local.sh atari vtrace 4 --seed=1
"""

from __future__ import annotations

import datetime
import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from seed_rl.machine import machine

FILE = "commands.txt"

_ENTRY = re.compile(r"^# (\S+); (commit .*?); (.*)\n((?:(?!# ).*\n)+)", re.MULTILINE)


class Start(NamedTuple):
    """One start of a run, in words.

    Attributes:
      time: ISO 8601 with the offset from UTC.
      commit: of the repository: "commit <40 digits>", with " with changes" behind it where files
        that git tracks differed from it; "commit unknown" where there is no git checkout.
      machine: the processor's name, and how many cores of it the run may use.
      command: the command line, quoted for the shell.
    """

    time: str
    commit: str
    machine: str
    command: str

    def __str__(self) -> str:
        return f"# {self.time}; {self.commit}; {self.machine}\n{self.command}\n"


def record(logdir: Path, repository: Path, command: Sequence[str]) -> None:
    """Adds to the logdir's file that the repository's program starts now with this command."""
    start = Start(
        time=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        commit=commit(repository),
        machine=machine(),
        command=shlex.join(command),
    )
    with (logdir / FILE).open("a") as file:
        file.write(str(start))


def read(logdir: Path) -> list[Start]:
    """The recorded starts, oldest first; none where the run was not started by run_local.sh."""
    try:
        text = (logdir / FILE).read_text()
    except FileNotFoundError:
        return []
    return [
        Start(time, commit, machine, command.rstrip("\n"))
        for time, commit, machine, command in _ENTRY.findall(text)
    ]


def commit(repository: Path) -> str:
    """What is checked out there: see Start.commit."""
    top = _git(repository, "rev-parse", "--show-toplevel")
    head = _git(repository, "rev-parse", "HEAD")
    # Unpacked inside somebody else's checkout, it is no part of their commit.
    if not head or not top or Path(top) != repository:
        return "commit unknown"
    changes = _git(repository, "status", "--porcelain", "--untracked-files=no")
    return f"commit {head}{' with changes' if changes else ''}"


def _git(repository: Path, *arguments: str) -> str | None:
    """What git answers; None where it fails or there is none."""
    # Started from a git hook, the variables that name the hook's repository are set.
    environment = {name: v for name, v in os.environ.items() if not name.startswith("GIT_")}
    try:
        result = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(repository), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return result.stdout.strip()

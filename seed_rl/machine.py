"""What this machine is, in words."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine() -> str:
    """The processor and how many of its cores this process may use: "AMD EPYC, 2 cores"."""
    cores = len(os.sched_getaffinity(0))
    return f"{_processor()}, {cores} {'core' if cores == 1 else 'cores'}"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()  # ARM has no such line

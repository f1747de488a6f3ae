"""What this machine is, in words and figures."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine() -> str:
    """The processor and how many of its cores this process may use: "AMD EPYC, 2 cores"."""
    count = cores()
    return f"{_processor()}, {count} {'core' if count == 1 else 'cores'}"


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def cpu_features() -> frozenset[str]:
    """Names of the instruction sets that the processor has, as the kernel lists them."""
    features = _cpu_info("flags") or _cpu_info("Features") or ""  # x86, ARM
    return frozenset(features.split())


def _processor() -> str:
    return _cpu_info("model name") or platform.machine()  # ARM has no such line


def _cpu_info(key: str) -> str | None:
    """What the kernel says of the first core under the key, if anything."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return None

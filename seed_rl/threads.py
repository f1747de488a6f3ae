"""Names of threads, for `top -H`, profilers and whoever counts their CPU time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

_OWN_NAME = Path("/proc/thread-self/comm")


@contextlib.contextmanager
def started_as(name: str) -> Iterator[None]:
    """Threads that this one starts in the block inherit the name, of up to 15 bytes."""
    own_name = _OWN_NAME.read_text().removesuffix("\n")
    _OWN_NAME.write_text(name)
    try:
        yield
    finally:
        _OWN_NAME.write_text(own_name)

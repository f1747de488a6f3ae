"""No test here may leave a process behind."""

import os
import signal
from collections.abc import Iterator

import pytest

from tests.end_to_end.processes import survivors, wait_until


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    """Comes before a module's other fixtures, and so looks when all of them are done."""
    yield
    try:
        wait_until(lambda: not survivors(), seconds=20.0)
    finally:
        for pid in survivors():
            os.kill(pid, signal.SIGKILL)

"""No test here may leave a process behind."""

from collections.abc import Iterator

import pytest

from tests.end_to_end import processes


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    """Comes before a module's other fixtures, and so looks when all of them are done."""
    yield
    processes.wait_until(lambda: not list(processes.survivors()))

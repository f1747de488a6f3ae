"""Names of threads as the kernel has them."""

from __future__ import annotations

import threading
from pathlib import Path

from seed_rl.threads import started_as


def names() -> list[str]:
    return [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]


def test_only_threads_started_in_the_block_have_the_name() -> None:
    end = threading.Event()
    threads = [threading.Thread(target=end.wait) for _ in range(3)]
    own = Path("/proc/thread-self/comm").read_text()
    threads[0].start()
    with started_as("emulator"):
        threads[1].start()
    threads[2].start()
    try:
        assert names().count("emulator") == 1
        assert Path("/proc/thread-self/comm").read_text() == own
    finally:
        end.set()
        for thread in threads:
            thread.join()

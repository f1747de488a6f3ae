"""A folder for a process's temporary files that goes when the process does, however that ends.

Engines write files that they don't remove, and may end the process on their own. So the folder is
locked as long as its process lives; the kernel lets go of the lock even where a process is killed,
and the next process with such a folder removes those that nobody holds.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "seed_rl_scratch_"


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Sends all temporary files of this process (Python's tempfile) to a folder of its own.

    Removes the folder at the end of the block. Where a signal ends the process before, its handler
    should call `remove`.

    Yields:
      The folder, in what has been the folder for temporary files (by default $TMPDIR or /tmp).
    """
    shared = Path(tempfile.gettempdir()).resolve()
    # Or a process could remove another's new folder before that has locked it.
    with _locked(shared):
        _remove_abandoned(shared)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=shared))
        lock = _open(folder)
        fcntl.flock(lock, fcntl.LOCK_EX)
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield folder
    finally:
        tempfile.tempdir = before
        remove(folder)
        os.close(lock)


def remove(folder: Path) -> None:
    """Removes what can be removed, in silence: another process, or a signal, may be at it too."""
    shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned(shared: Path) -> None:
    for folder in shared.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # it is in use, another user's, or gone
            lock = _open(folder)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(folder)
            finally:
                os.close(lock)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    lock = _open(folder)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _open(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)

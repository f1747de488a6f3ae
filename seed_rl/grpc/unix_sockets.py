"""The socket files of servers, and those that a dead server left behind."""

import contextlib
import errno
import fcntl
import os
import socket
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from seed_rl.grpc import addresses as address_lib


@contextlib.contextmanager
def claimed(addresses: Sequence[str]) -> Iterator[None]:
    """A block that starts a server at `addresses`, whose stale socket files it removes before.

    gRPC replaces whatever socket is there. So of servers that start at once, one at a time looks
    and starts: the others then find it.

    Raises:
      OSError: a server listens there, or no socket can be there.
    """
    sockets = {
        address: Path(path) for address in addresses if (path := address_lib.unix_path(address))
    }
    directories = {path.parent.resolve() for path in sockets.values()}
    with contextlib.ExitStack() as locks:
        for directory in sorted(directories):  # In order: two servers never wait for each other.
            locks.enter_context(_locked(directory))
        for address, socket_path in sockets.items():
            _clear(address, socket_path)
        yield


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Holds a lock on the directory itself, which leaves no lock file behind."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        message = f"the directory {directory} of a unix socket: {error.strerror}"
        raise OSError(error.errno, message) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _clear(address: str, path: Path) -> None:
    """Removes the socket file at `path` if no server listens on it any more."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise OSError(errno.EEXIST, f"address {address}: a file that is no socket is there")
    problem = _connect(path)
    if problem == errno.ECONNREFUSED:
        path.unlink(missing_ok=True)
    elif problem in (0, errno.EAGAIN):  # A full backlog is a server, too.
        raise OSError(errno.EADDRINUSE, f"address {address} is in use by another server")
    elif problem != errno.ENOENT:
        raise OSError(problem, f"address {address}: {os.strerror(problem)}")


def _connect(path: Path) -> int:
    """Tries to connect, without waiting. Returns 0 or an error number."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        return probe.connect_ex(str(path))

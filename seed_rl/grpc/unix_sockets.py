"""Socket files that a dead server left behind."""

import errno
import os
import socket
import stat
from collections.abc import Sequence

from seed_rl.grpc import addresses as address_lib


def clear_stale(addresses: Sequence[str]) -> None:
    """Removes the socket files at `addresses` that no server listens on any more.

    Raises:
      OSError: a server listens there, or the path is something else than a socket.
    """
    for address in addresses:
        path = address_lib.unix_path(address)
        if path is not None and os.path.lexists(path):
            _clear(address, path)


def _clear(address: str, path: str) -> None:
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        raise OSError(errno.EEXIST, f"address {address}: a file that is no socket is there")
    if _is_served(path):
        raise OSError(errno.EADDRINUSE, f"address {address} is in use by another server")
    os.unlink(path)


def _is_served(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # A full backlog is a server, too.
        return probe.connect_ex(path) != errno.ECONNREFUSED

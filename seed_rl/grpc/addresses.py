"""Addresses of a server: "unix:/path" or "host:port"."""

import ipaddress
import re

_UNIX_PREFIX = "unix:"
_MAX_UNIX_PATH = 107  # sockaddr_un has 108 bytes, one of them for the end.
_URI_CHARACTERS = frozenset("%#?")
_HOST_PORT = re.compile(r"(?P<host>\[[0-9a-fA-F:.%]+\]|[^:/\s\[\]]+):(?P<port>\d{1,5})")


def check(address: str) -> None:
    """Raises ValueError unless `address` is one that a server and a client can use."""
    path = unix_path(address)
    if path is not None:
        if not 0 < len(path.encode()) <= _MAX_UNIX_PATH:
            raise ValueError(
                f"address '{address}': expected a path of 1 to {_MAX_UNIX_PATH} bytes."
            )
        if not _URI_CHARACTERS.isdisjoint(path):
            raise ValueError(
                f"address '{address}': expected a path without '%', '#' and '?', which gRPC reads "
                "as parts of a URI."
            )
        return
    match = _HOST_PORT.fullmatch(address)
    if match is None or int(match["port"]) > 65535:
        raise ValueError(f"address '{address}': expected 'unix:/path' or 'host:port'.")


def unix_path(address: str) -> str | None:
    """Returns the path of a unix socket, or None for a TCP address."""
    if not address.startswith(_UNIX_PREFIX):
        return None
    return address.removeprefix(_UNIX_PREFIX)


def is_local(address: str) -> bool:
    """Whether only this machine can reach a server at a (checked) address."""
    if unix_path(address) is not None:
        return True
    host = address.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, of whatever
        return False


def with_port(address: str, port: int) -> str:
    """Returns a TCP address with its port replaced."""
    return f"{address.rpartition(':')[0]}:{port}"

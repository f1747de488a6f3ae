"""Real servers in the test process, and clients in its threads."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from seed_rl.grpc.client import Client
from seed_rl.grpc.server import Server

Connect = Callable[..., Client]
Serve = Callable[..., Server]


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"unix:{tmp_path}/server"


@pytest.fixture
def serve(address: str) -> Iterator[Serve]:
    """serve(*functions, addresses=..., settings=..., **bind) starts a server of `functions`."""
    servers = []

    def start(
        *functions: Any, addresses: Any = (address,), settings: Any = None, **bind: Any
    ) -> Server:
        server = Server(addresses, settings)
        servers.append(server)
        for function in functions:
            server.bind(function, **bind)
        server.start()
        return server

    yield start
    for server in servers:
        server.shutdown()


@pytest.fixture
def connect(address: str) -> Iterator[Connect]:
    """connect() returns a client that is closed after the test."""
    clients = []

    def start(to: str = address, timeout: float = 30.0) -> Client:
        clients.append(Client(to, timeout))
        return clients[-1]

    yield start
    for client in clients:
        client.close()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=80) as executor:
        yield executor

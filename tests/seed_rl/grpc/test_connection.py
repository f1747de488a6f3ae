"""Finding the server, losing it, and finding it again."""

import contextlib
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from seed_rl.grpc.client import Client
from seed_rl.grpc.errors import (
    ConnectionTimeoutError,
    DeadlineExceededError,
    UnavailableError,
)
from seed_rl.grpc.server import Server

ROOT = Path(__file__).parents[3]


@tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
def double(x):
    return 2 * x


@tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
def triple(x):
    return 3 * x


def test_client_comes_before_the_server(serve, connect, threads: ThreadPoolExecutor):
    client = threads.submit(connect)
    with pytest.raises(TimeoutError):
        client.result(0.3)
    serve(double)
    assert client.result(60).double(np.float32([1])).tolist() == [2]


@pytest.mark.parametrize("unused", ["unix:/nonexistent/socket", "127.0.0.1:1"])
def test_no_server(unused):
    with pytest.raises(
        ConnectionTimeoutError, match=f"no server answered at {unused} within 0.3 seconds"
    ):
        Client(unused, timeout=0.3)


def test_call_finds_a_restarted_server(serve, connect):
    first = serve(double, settings={"run": 1})
    client = connect()
    first.shutdown()
    with pytest.raises(UnavailableError):
        client.double(np.float32([1]))
    serve(triple, settings={"run": 2})
    assert client.call("triple", np.float32([1])).tolist() == [3]
    assert client.settings == {"run": 2}
    assert set(client.methods) == {"triple"}


def test_reconnecting_gives_up(serve, connect):
    server = serve(double)
    client = connect(timeout=0.3)
    server.shutdown()
    with pytest.raises(UnavailableError):
        client.double(np.float32([1]))
    for timeout in (None, 0.2):
        with pytest.raises(ConnectionTimeoutError):
            client.call("double", np.float32([1]), timeout=timeout)


def test_server_killed(connect, address):
    code = """
import sys
import tensorflow as tf
from seed_rl.grpc.server import Server

queue = tf.queue.FIFOQueue(1, tf.int32, [()])

@tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
def put(x):
    queue.enqueue(x)

server = Server([sys.argv[1]])
server.bind(put)
server.start()
sys.stdin.read()
"""
    command = [sys.executable, "-c", code, address]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE) as process:
        client = connect(timeout=60)
        client.put(np.int32(1))
        process.kill()
    with pytest.raises(UnavailableError):
        client.put(np.int32(1))
    # It left its socket file behind, which does not keep the next one from starting.
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE):
        assert client.put(np.int32(1)) is None


def test_timeout_of_a_call(serve, connect):
    queue = tf.queue.FIFOQueue(1, tf.int32, [()])

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def put(x):
        queue.enqueue(x)

    serve(put)
    client = connect()
    assert client.call("put", np.int32(1), timeout=60) is None
    with pytest.raises(DeadlineExceededError, match=r"'put' did not answer within 0\.2 seconds"):
        client.call("put", np.int32(2), timeout=0.2)
    assert queue.dequeue() == 1
    assert queue.dequeue() == 2  # It is unknown to the client whether it ran, and it did.
    assert client.put(np.int32(3)) is None


def test_timeout_at_the_moment_of_the_answer(serve, connect):
    """Whoever is first, the next call is not hurt."""
    serve(double)
    client = connect()
    for microseconds in range(100, 4_000, 20):
        with contextlib.suppress(DeadlineExceededError, ConnectionTimeoutError):
            client.call("double", np.float32([1]), timeout=microseconds / 1e6)
        assert client.call("double", np.float32([2]), timeout=60).tolist() == [4]


def test_closed_client(serve, connect):
    serve(double)
    client = connect()
    client.close()
    client.close()
    with pytest.raises(ValueError, match="closed"):
        client.double(np.float32([1]))


def test_address_in_use(serve, connect, address):
    server = serve(double, addresses=[address, "127.0.0.1:0"])
    for taken in server.addresses:
        other = Server([taken])
        other.bind(triple)
        with pytest.raises(OSError, match=f"{taken} is in use"):
            other.start()
        del other
        assert connect(taken).double(np.float32([1])).tolist() == [2]


def test_start_is_tried_again(serve, connect, address):
    first = serve(triple)
    later = Server(["127.0.0.1:0", address])
    later.bind(double)
    with pytest.raises(OSError, match="is in use"):
        later.start()
    first.shutdown()
    with later:
        later.start()
        assert connect().double(np.float32([1])).tolist() == [2]


def test_address_that_cannot_be_bound(connect):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        server = Server([address])
        server.bind(double)
        with pytest.raises(OSError, match=f"^address {address} is in use or cannot be bound$"):
            server.start()
    with server:
        server.start()
        assert connect(address).double(np.float32([1])).tolist() == [2]


def test_directory_that_is_not_there():
    with pytest.raises(OSError, match="the directory /nonexistent of a unix socket: No such file"):
        Server(["unix:/nonexistent/socket"]).start()


def test_socket_of_another_type(serve, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(str(tmp_path / "server"))
        with pytest.raises(OSError, match="server: Protocol wrong type for socket"):
            serve(double)


def test_servers_that_start_at_once(connect, address, tmp_path, threads: ThreadPoolExecutor):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "server"))
    servers = [Server([address]) for _ in range(8)]
    for server in servers:
        server.bind(double)
    starts = [threads.submit(server.start) for server in servers]
    problems = [str(start.exception(60)) for start in starts]
    assert sum("is in use by another server" in problem for problem in problems) == 7
    assert connect().double(np.float32([1])).tolist() == [2]
    for server in servers:
        server.shutdown()


def test_stale_socket_file(serve, connect, tmp_path):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "server"))
    serve(double)
    assert connect().double(np.float32([1])).tolist() == [2]


def test_file_in_the_way(serve, tmp_path):
    (tmp_path / "server").write_text("precious")
    with pytest.raises(OSError, match="a file that is no socket is there"):
        serve(double)
    assert (tmp_path / "server").read_text() == "precious"


def test_dropped_client_ends_its_stream(serve, connect, address):
    serve(double, max_batch_size=8, timeout_ms=3_600_000)
    assert Client(address).double(np.float32(1)) == 2
    assert connect().call("double", np.float32(1), timeout=60) == 2


def test_process_that_forgets_to_close_its_client_ends(serve, address):
    code = """
import sys
import numpy as np
from seed_rl.grpc.client import Client

client = Client(sys.argv[1])
client.double(np.float32([1]))
"""
    serve(double)
    subprocess.run([sys.executable, "-c", code, address], cwd=ROOT, check=True, timeout=60)


def test_another_kind_of_server():
    """A web server, for example."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as executor:

        def answer():
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

        executor.submit(answer)
        with pytest.raises(ConnectionTimeoutError):
            Client(f"127.0.0.1:{listener.getsockname()[1]}", timeout=0.5)


def test_slow_server():
    """One connection is given the time that it needs, instead of many that are cut short."""
    settings = b"\0\0\0\4\0\0\0\0\0"
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as executor:

        def receive_call() -> bool:
            connection, _ = listener.accept()
            with connection:
                time.sleep(2)
                connection.sendall(settings)
                connection.settimeout(60)
                received = b""
                while chunk := connection.recv(10_000):
                    received += chunk
                return b"/seed_rl.Functions/Describe" in received

        call = executor.submit(receive_call)
        with pytest.raises(ConnectionTimeoutError):
            Client(f"127.0.0.1:{listener.getsockname()[1]}", timeout=4)
        assert call.result(60)


def test_client_process_needs_no_tensorflow(serve, address):
    code = """
import sys
import numpy as np
from seed_rl.grpc.client import Client

with Client(sys.argv[1]) as client:
    assert client.double(np.float32([1])).tolist() == [2]
heavy = {"tensorflow", "tf_keras", "ml_dtypes"} & set(sys.modules)
assert not heavy, heavy
assert not [name for name in sys.modules if name.startswith("tensorflow")]
"""
    serve(double)
    subprocess.run([sys.executable, "-c", code, address], cwd=ROOT, check=True, timeout=60)

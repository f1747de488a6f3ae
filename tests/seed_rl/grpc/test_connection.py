"""Finding the server, losing it, and finding it again."""

import socket
import subprocess
import sys
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


def test_address_that_cannot_be_bound():
    with pytest.raises(OSError, match="unix:/nonexistent/socket"):
        Server(["unix:/nonexistent/socket"]).start()


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
    assert connect().double(np.float32(1)) == 2


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

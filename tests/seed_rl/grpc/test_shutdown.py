"""The end of a server: with calls in flight, by accident, and at exit."""

import gc
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from seed_rl.grpc.errors import ServiceEndedError, UnavailableError
from seed_rl.grpc.server import Server

ROOT = Path(__file__).parents[3]
FOREVER_MS = 3_600_000

ends = pytest.mark.parametrize(
    ("final", "error"), [(False, UnavailableError), (True, ServiceEndedError)]
)


@tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
def double(x):
    return 2 * x


def make_blocking(queue):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def put(x):
        queue.enqueue(tf.size(x))
        return x

    return put


@ends
def test_function_blocked_in_a_full_queue(
    serve, connect, threads: ThreadPoolExecutor, final, error
):
    queue = tf.queue.FIFOQueue(2, tf.int32, [()])
    server = serve(make_blocking(queue), max_batch_size=1)
    clients = [connect() for _ in range(5)]
    calls = [threads.submit(client.put, np.float32(1)) for client in clients]
    while sum(call.done() for call in calls) < 2:  # Two fit, one blocks, two wait for it.
        time.sleep(0.01)
    server.shutdown(final)
    outcomes = [call.exception(60) for call in calls]
    assert sum(outcome is None for outcome in outcomes) == 2
    assert sum(isinstance(outcome, error) for outcome in outcomes) == 3
    assert queue.size() == 2


@ends
def test_row_waiting_for_others(serve, connect, threads: ThreadPoolExecutor, final, error):
    server = serve(double, max_batch_size=8, timeout_ms=FOREVER_MS)
    idle, waiting = connect(), connect()
    idle.call("double", np.float32(1), timeout=60)
    call = threads.submit(waiting.call, "double", np.float32(1), timeout=60)
    server.shutdown(final)
    with pytest.raises(error):
        call.result(60)


@ends
def test_idle_client(serve, connect, final, error):
    server = serve(double)
    client = connect()
    server.shutdown(final)
    with pytest.raises(error):
        client.double(np.float32([1]))


def test_shutdown_twice_and_without_start(address):
    server = Server([address])
    server.bind(double)
    server.shutdown()
    server.shutdown(final=True)
    with pytest.raises(RuntimeError, match="shut down"):
        server.start()


def test_socket_file_goes_with_the_server(serve, tmp_path):
    server = serve(double)
    assert (tmp_path / "server").exists()
    server.shutdown()
    assert not (tmp_path / "server").exists()


def test_end_of_a_with_block(address, connect):
    with Server([address]) as server:
        server.bind(double)
        server.start()
        client = connect()
    with pytest.raises(UnavailableError):
        client.double(np.float32([1]))


def test_last_reference(address, connect):
    server = Server([address])
    server.bind(double)
    server.start()
    client = connect()
    del server
    gc.collect()
    with pytest.raises(UnavailableError):
        client.double(np.float32([1]))


def test_shutdown_while_a_graph_is_traced(serve, connect):
    server = serve(double)
    client = connect()

    tf.function(server.shutdown).get_concrete_function()  # Traced only, and never run.
    with pytest.raises(UnavailableError):
        client.double(np.float32([1]))


def test_python_function_that_needs_the_interpreter(serve, connect, threads: ThreadPoolExecutor):
    """shutdown() waits for it, so it must not hold the interpreter lock meanwhile."""

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def count(n):
        return tf.numpy_function(lambda n: np.int32(sum(1 for _ in range(n))), [n], tf.int32)

    # numpy_function loses the shape, and a method's results have a known rank.
    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def count_slowly(n):
        return tf.ensure_shape(count(n), [])

    server = serve(count_slowly)
    clients = [connect() for _ in range(4)]
    calls = [threads.submit(client.count_slowly, np.int32(1_000_000)) for client in clients]
    calls[0].result(60)
    server.shutdown()
    for call in calls:
        assert call.exception(60) is None or isinstance(call.exception(), UnavailableError)


_PROCESS = """
import sys
import numpy as np
import tensorflow as tf
from concurrent.futures import ThreadPoolExecutor
from seed_rl.grpc.client import Client
from seed_rl.grpc.server import Server

queue = tf.queue.FIFOQueue(1, tf.int32, [()])
entered = tf.queue.FIFOQueue(9, tf.int32, [()])

@tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
def put(x):
    entered.enqueue(x)
    queue.enqueue(x)

server = Server([sys.argv[1]])
server.bind(put)
server.start()
client = Client(sys.argv[1])
client.put(np.int32(1))

def call_and_see_the_end():
    try:
        client.put(np.int32(2))
    except Exception as error:
        print(type(error).__name__, flush=True)

executor = ThreadPoolExecutor(1)
executor.submit(call_and_see_the_end)
entered.dequeue()
entered.dequeue()
"""


@pytest.mark.parametrize(
    ("last_lines", "exit_code"),
    [
        ("server.shutdown(final=True)", 0),
        ("server.shutdown(); sys.exit(3)", 3),
        ("server.shutdown(); raise KeyboardInterrupt", -signal.SIGINT),
    ],
)
def test_process_ends_with_a_blocked_function(address, last_lines, exit_code):
    result = subprocess.run(
        [sys.executable, "-c", _PROCESS + last_lines, address],
        cwd=ROOT, timeout=60, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == exit_code, result.stderr
    assert result.stdout in ("UnavailableError\n", "ServiceEndedError\n")


def test_process_ends_without_shutdown(address):
    code = _PROCESS.replace("executor.submit(call_and_see_the_end)", "").replace(
        "entered.dequeue()\nentered.dequeue()", ""
    )
    result = subprocess.run(
        [sys.executable, "-c", code, address],
        cwd=ROOT, timeout=60, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr

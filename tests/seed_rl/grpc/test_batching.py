"""Which rows run together, and when."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from seed_rl.grpc.errors import DeadlineExceededError, InvalidArgumentError
from seed_rl.grpc.server import Server

ROOT = Path(__file__).parents[3]
FOREVER_MS = 3_600_000


@tf.function(input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, 3], tf.int32)])
def infer(ids, rows):
    """Returns what tells each row apart, and the size of its batch."""
    return ids, tf.reduce_sum(rows, 1), tf.fill([tf.size(ids)], tf.size(ids))


def call_in_a_loop(client, client_id: int, num_calls: int) -> list[int]:
    """Checks the rows of every answer. Returns the batch sizes."""
    sizes = []
    for step in range(num_calls):
        row = np.int32([client_id, step, 1])
        returned_id, total, size = client.call("infer", np.int32(client_id), row, timeout=60)
        assert returned_id == client_id
        assert total == client_id + step + 1
        sizes.append(int(size))
    client.close()
    return sizes


def call_once(client, client_id: int = 0) -> int:
    """Returns the batch size."""
    returned_id, _, size = client.call(
        "infer", np.int32(client_id), np.int32([0, 0, 0]), timeout=60
    )
    assert returned_id == client_id
    return int(size)


def test_every_client_gets_its_own_rows(serve, connect, threads: ThreadPoolExecutor):
    serve(infer, max_batch_size=64, timeout_ms=50)
    loops = [threads.submit(call_in_a_loop, connect(), i, 30) for i in range(64)]
    sizes = [size for loop in loops for size in loop.result(60)]
    assert max(sizes) > 8
    assert max(sizes) <= 64


def test_batch_goes_out_when_all_wait(serve, connect, threads: ThreadPoolExecutor):
    serve(infer, max_batch_size=64, timeout_ms=FOREVER_MS)
    # Those who end earlier close, and are not waited for.
    loops = [threads.submit(call_in_a_loop, connect(), i, 5 + 3 * i) for i in range(6)]
    sizes = [loop.result(60) for loop in loops]
    assert sizes[5][-1] == 1
    assert max(sizes[5]) >= 2


def test_batch_goes_out_when_full(serve, connect):
    serve(infer, max_batch_size=4, timeout_ms=FOREVER_MS)
    idle, busy = connect(), connect()
    call_once(idle)
    _, _, sizes = busy.call("infer", np.zeros(4, "i"), np.zeros((4, 3), "i"), timeout=60)
    assert sizes.tolist() == [4] * 4  # Though one more row could have come.


def test_batch_goes_out_after_the_timeout(serve, connect):
    serve(infer, max_batch_size=4, timeout_ms=100)
    idle, busy = connect(), connect()
    call_once(idle)
    assert call_once(busy) == 1


def test_a_request_is_never_split(serve, connect, threads: ThreadPoolExecutor):
    serve(infer, max_batch_size=8, timeout_ms=50)

    def loop(client, client_id: int) -> set[int]:
        sizes = set()
        for step in range(20):
            ids = np.int32([client_id] * 3)
            rows = np.int32([[step, i, client_id] for i in range(3)])
            returned_ids, totals, batch_sizes = client.infer(ids, rows)
            assert returned_ids.tolist() == ids.tolist()
            assert totals.tolist() == rows.sum(1).tolist()
            sizes |= set(batch_sizes.tolist())
        return sizes

    loops = [threads.submit(loop, connect(), i) for i in range(7)]
    assert set.union(*(each.result(60) for each in loops)) <= {3, 6}


def test_requests_of_different_sizes_share_batches(serve, connect, threads: ThreadPoolExecutor):
    serve(infer, max_batch_size=16, timeout_ms=20)

    def loop(client, rows: int) -> None:
        for step in range(20):
            ids = np.arange(rows, dtype=np.int32) + 100 * rows
            returned_ids, totals, _ = client.infer(ids, np.full((rows, 3), step, np.int32))
            assert returned_ids.tolist() == ids.tolist()
            assert totals.tolist() == [3 * step] * rows

    for each in [threads.submit(loop, connect(), rows) for rows in (1, 2, 5, 8, 16)]:
        each.result(60)


@pytest.mark.parametrize("rows", [0, 9])
def test_row_count_out_of_range(serve, connect, rows):
    serve(infer, max_batch_size=8)
    with pytest.raises(InvalidArgumentError, match=f"expected 1 to 8 rows, got {rows}"):
        connect().infer(np.zeros(rows, np.int32), np.zeros((rows, 3), np.int32))


def test_a_client_that_calls_something_else_is_not_waited_for(
    address, connect, threads: ThreadPoolExecutor
):
    queue = tf.queue.FIFOQueue(1, tf.int32, [()])

    @tf.function(input_signature=[])
    def wait():
        return queue.dequeue()

    with Server([address]) as server:
        server.bind(infer, max_batch_size=64, timeout_ms=FOREVER_MS)
        server.bind(wait)
        server.start()
        elsewhere, other = connect(), connect()
        call_once(elsewhere)
        waiting = threads.submit(elsewhere.wait)
        # It may still be on its way: its arrival sets the batch free, not the timeout.
        assert call_once(other) == 1
        queue.enqueue(5)
        assert waiting.result(60) == 5


_DOOMED_CLIENT = """
import sys
import numpy as np
from seed_rl.grpc.client import Client

client = Client(sys.argv[1])
while True:
    client.infer(np.int32(9), np.int32([0, 0, 0]))
    print("answered", flush=True)
    if sys.argv[2] == "idle":
        sys.stdin.read()
"""


@pytest.mark.parametrize("state", ["idle", "waiting"])
def test_a_killed_client_is_not_waited_for(serve, connect, address, state):
    serve(infer, max_batch_size=64, timeout_ms=FOREVER_MS)
    client = connect()
    doomed = subprocess.Popen(
        [sys.executable, "-c", _DOOMED_CLIENT, address, state],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with doomed:
        assert doomed.stdout.readline() == b"answered\n"
        if state == "waiting":
            # From now on each waits for the other; the doomed one waits once this has its answer.
            assert call_once(client, 1) in (1, 2)
        doomed.kill()
    for _ in range(3):
        call_once(client, 1)


def test_a_client_killed_while_its_batch_runs(serve, connect, address):
    entered, leave = tf.queue.FIFOQueue(9, tf.int32, [()]), tf.queue.FIFOQueue(9, tf.int32, [()])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def work(x):
        entered.enqueue(tf.size(x))
        return x + leave.dequeue()

    serve(work, max_batch_size=8, timeout_ms=FOREVER_MS)
    code = (
        "import sys; import numpy as np; from seed_rl.grpc.client import Client;"
        "Client(sys.argv[1]).work(np.int32(0))"
    )
    with subprocess.Popen([sys.executable, "-c", code, address], cwd=ROOT) as doomed:
        entered.dequeue()
        doomed.kill()
    leave.enqueue(100)
    leave.enqueue(200)
    assert connect().call("work", np.int32(1), timeout=60) == 201


def test_calls_that_nobody_waits_for_do_not_run(serve, connect, threads: ThreadPoolExecutor):
    queue = tf.queue.FIFOQueue(1, tf.int32, [()])

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def put(x):
        queue.enqueue(x)

    serve(put)
    connect().put(np.int32(0))  # Now the queue is full.
    clients = [connect() for _ in range(30)]
    calls = [threads.submit(client.call, "put", np.int32(1), timeout=0.5) for client in clients]
    for call in calls:
        assert isinstance(call.exception(60), DeadlineExceededError)
    time.sleep(1)  # Until the server knows, too.
    last = threads.submit(connect().call, "put", np.int32(2), timeout=10)
    ran = [int(queue.dequeue()) for _ in range(3)]
    assert ran == [0, 1, 2]  # One was running already.
    last.result(60)

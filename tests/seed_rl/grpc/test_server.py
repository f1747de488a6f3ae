"""What can be bound, and that calls bring back what the function returns."""

import collections
import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from seed_rl.grpc.client import Client
from seed_rl.grpc.server import Server

ROOT = Path(__file__).parents[3]

Step = collections.namedtuple("Step", "reward observation")


@tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
def double(x):
    return 2 * x


@pytest.mark.parametrize(
    "dtype",
    [
        np.bool_, np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64,
        np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.complex64, np.complex128,
    ],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
def test_any_dtype_and_shape_comes_back(serve, connect, dtype, shape):
    @tf.function(input_signature=[tf.TensorSpec(shape, tf.as_dtype(dtype))])
    def echo(x):
        return tf.identity(x)

    serve(echo)
    sent = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    received = connect().echo(sent)
    assert received.dtype == sent.dtype
    assert received.shape == sent.shape
    np.testing.assert_array_equal(received, sent)
    assert received.flags.writeable


def test_large_rows(serve, connect):
    @tf.function(input_signature=[tf.TensorSpec([None, 3_000_000], tf.uint8)])
    def echo(x):
        return tf.identity(x)

    serve(echo, max_batch_size=8)
    sent = np.random.default_rng(0).integers(0, 256, (4, 3_000_000), np.uint8)
    np.testing.assert_array_equal(connect().echo(sent), sent)


def test_non_contiguous_arguments(serve, connect):
    @tf.function(input_signature=[tf.TensorSpec([3, 2], tf.int32)])
    def echo(x):
        return tf.identity(x)

    serve(echo)
    sent = np.arange(6, dtype=np.int32).reshape(2, 3).T
    np.testing.assert_array_equal(connect().echo(sent), sent)


def test_several_addresses_at_once(serve, connect, address):
    server = serve(double, addresses=[address, "127.0.0.1:0", "localhost:0"])
    assert server.addresses[0] == address
    assert all(not listened.endswith(":0") for listened in server.addresses)
    for listened in server.addresses:
        assert connect(listened).double(np.float32([1, 2])).tolist() == [2, 4]


@pytest.mark.parametrize("rows", [None, 1, 5])
def test_nested_structures(serve, connect, rows):
    leading = () if rows is None else (rows,)

    @tf.function(
        input_signature=[
            Step(
                tf.TensorSpec([None], tf.float32),
                {"z": [tf.TensorSpec([None, 2], tf.uint8)], "a": tf.TensorSpec([None], tf.bool)},
            ),
            (tf.TensorSpec([None], tf.int64),),
        ]
    )
    def swap(step, ids):
        return Step(ids[0], [step.observation, (step.reward, None), {}])

    serve(swap, max_batch_size=8)
    reward = np.random.default_rng(0).random(leading, np.float32)
    frames = np.full((*leading, 2), 7, np.uint8)
    flags = np.ones(leading, bool)
    ids = np.full(leading, 3, np.int64)
    result = connect().swap(Step(reward, {"a": flags, "z": [frames]}), (ids,))
    assert type(result).__name__ == "Step"
    assert result._fields == Step._fields
    np.testing.assert_array_equal(result.reward, ids)
    observation, (returned_reward, nothing), empty = result.observation
    assert list(observation) == ["a", "z"]
    np.testing.assert_array_equal(observation["a"], flags)
    np.testing.assert_array_equal(observation["z"][0], frames)
    np.testing.assert_array_equal(returned_reward, reward)
    assert nothing is None
    assert empty == {}


def test_unbatched_method_gets_the_shapes_as_sent(serve, connect):
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def transpose(x):
        return tf.transpose(x), tf.shape(x)

    serve(transpose)
    transposed, shape = connect().transpose(np.arange(6, dtype=np.int32).reshape(2, 3))
    assert transposed.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert shape.tolist() == [2, 3]


def test_no_arguments_and_no_results(serve, connect):
    counter = tf.Variable(0)

    @tf.function(input_signature=[])
    def count():
        counter.assign_add(1)

    serve(count)
    client = connect()
    assert client.count() is None
    assert client.count() is None
    assert counter.numpy() == 2


class Accumulator(tf.Module):
    def __init__(self, offset: float):
        super().__init__()
        self.total = tf.Variable(0.0)
        self._offset = tf.constant(offset)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def add(self, x):
        self.total.assign_add(tf.reduce_sum(x))
        return x + self._offset

    @tf.function(input_signature=[])
    def value(self):
        return self.total.read_value()


def test_variables_are_shared_with_python(serve, connect):
    accumulator = Accumulator(10.0)
    serve(accumulator.add, accumulator.value)
    client = connect()
    assert client.add(np.float32([1, 2])).tolist() == [11, 12]
    assert accumulator.total.numpy() == 3
    accumulator.total.assign(5.0)
    assert client.call("value") == 5


def test_server_keeps_variables_alive(serve, connect):
    accumulator = Accumulator(10.0)
    accumulator.total.assign(5.0)
    serve(accumulator.value)
    del accumulator
    gc.collect()
    assert connect().value() == 5


def test_parameters_beyond_the_signature_keep_their_defaults(serve, connect):
    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def add(x, offset=3):
        return x + offset

    serve(add)
    assert connect().add(np.int32(4)) == 7


def test_control_flow_and_nested_functions(serve, connect):
    @tf.function
    def step(x):
        return x + 1

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def sum_up_to(n):
        array = tf.TensorArray(tf.int32, 0, dynamic_size=True)
        i = 0
        while i < n:
            i = step(i)
            array = array.write(i - 1, i)
        return tf.reduce_sum(array.stack())

    serve(sum_up_to)
    client = connect()
    assert [int(client.sum_up_to(np.int32(n))) for n in (1, 10, 100)] == [1, 55, 5050]


def test_several_methods_and_names(address, connect):
    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def plus(x):
        return x + 1

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def minus(x):
        return x - 1

    with Server([address]) as server:
        server.bind(plus)
        server.bind(minus, "decrement")
        server.start()
        client = connect()
        assert set(client.methods) == {"plus", "decrement"}
        assert client.plus(np.int32(3)) == 4
        assert client.decrement(np.int32(3)) == 2


def _rendezvous(entered, leave):
    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def work(x):
        entered.enqueue(x)
        return leave.dequeue()

    return work


def test_functions_under_one_name_run_side_by_side(serve, connect, threads: ThreadPoolExecutor):
    entered, leave = tf.queue.FIFOQueue(9, tf.int32, [()]), tf.queue.FIFOQueue(9, tf.int32, [()])
    serve([_rendezvous(entered, leave), _rendezvous(entered, leave)])
    results = [threads.submit(connect().work, np.int32(i)) for i in range(3)]
    # Two are inside at once before any has left; the third waits for a free function.
    first_two = {int(entered.dequeue()), int(entered.dequeue())}
    assert entered.size() == 0
    leave.enqueue_many(tf.constant([10, 11, 12]))
    assert {*first_two, int(entered.dequeue())} == {0, 1, 2}
    assert sorted(int(result.result(60)) for result in results) == [10, 11, 12]


def test_variables_on_several_devices():
    code = """
import os
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)

from seed_rl.grpc.client import Client
from seed_rl.grpc.server import Server

def make(device):
    with tf.device(device):
        offset = tf.Variable(float(device[-1]))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def add(x):
        with tf.device(device):
            return x + offset, offset.read_value()[tf.newaxis] + 0 * x

    return add

with Server(["127.0.0.1:0"]) as server:
    server.bind([make("CPU:1"), make("CPU:2")], max_batch_size=4)
    server.start()
    with Client(server.addresses[0]) as client:
        for _ in range(20):
            total, offset = client.add(np.float32([5, 6]))
            assert offset[0] in (1, 2), offset
            assert (total == np.float32([5, 6]) + offset).all(), total
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)


def test_settings_reach_the_client(serve, connect):
    settings = {"unroll_length": 100, "game": "Pong é", "nested": {"list": [1, 2.5, None, True]}}
    serve(double, settings=settings)
    assert connect().settings == settings


@pytest.mark.parametrize("value", [{1, 2}, float("nan"), b"bytes"])
def test_settings_must_be_json(address, value):
    with pytest.raises(ValueError, match="settings: expected what JSON can carry"):
        Server([address], {"key": value})


@pytest.mark.parametrize(
    "address",
    [
        "", "unix:", "localhost", "host:port", "host:70000", "unix:" + "x" * 108, "::1:5",
        "unix:/tmp/50%25", "unix:/tmp/a#b", "unix:/tmp/a?b",
    ],
)  # fmt: skip
def test_malformed_addresses(address):
    with pytest.raises(ValueError, match="address"):
        Server([address])
    with pytest.raises(ValueError, match="address"):
        Client(address)


def test_no_address():
    with pytest.raises(ValueError, match="addresses: expected at least one"):
        Server([])


def _identity(x):
    return x


def _sum(x):
    return tf.reduce_sum(x)


def _text(x):
    return tf.as_string(x)


def _nothing():
    return None


_ROWS = tf.TensorSpec([None], tf.float32)
_TEXT = tf.TensorSpec([], tf.string)


def _function(argument=_ROWS, result=_identity):
    return tf.function(result, input_signature=[argument])


_UNKNOWN_RANK = tf.TensorSpec(None, tf.float32)


@pytest.mark.parametrize(
    ("functions", "options", "error", "message"),
    [
        (_identity, {}, TypeError, "expected a tf.function, got function"),
        (tf.function(_identity), {}, ValueError, "expected an input_signature"),
        ([], {}, ValueError, "functions: expected at least one"),
        (_function(_TEXT), {}, ValueError, "argument x: .*string cannot be sent"),
        (_function({"a": _TEXT}), {}, ValueError, r"argument x\['a'\]: .*string"),
        (_function(result=_text), {}, ValueError, "result: .*string cannot be sent"),
        (_function(_UNKNOWN_RANK), {}, ValueError, "argument x: .*known rank"),
        (_function(), {"max_batch_size": 0}, ValueError, "max_batch_size: expected at least 1"),
        (_function(), {"max_batch_size": 2**31}, ValueError, "max_batch_size: .* got 2147483648"),
        (
            _function(tf.TensorSpec([None, 1 << 20], tf.float32)), {"max_batch_size": 5_000},
            ValueError, "max_batch_size: .* at most 16 GB .* got 5000 rows of 4194304 bytes",
        ),
        (_function(), {"timeout_ms": -1}, ValueError, "timeout_ms: expected no less than 0"),
        (_function(), {"timeout_ms": float("nan")}, ValueError, "timeout_ms: .* got nan"),
        (_function(), {"timeout_ms": float("inf")}, ValueError, "timeout_ms: .* got inf"),
        (_function(), {"timeout_ms": 1e300}, ValueError, r"timeout_ms: .* got 1e\+300"),
        (
            _function(tf.TensorSpec([3], tf.float32)), {"max_batch_size": 4},
            ValueError, "argument x: expected None as leading dimension",
        ),
        (
            _function(tf.TensorSpec([None, None], tf.float32)), {"max_batch_size": 4},
            ValueError, "argument x: expected None only as leading dimension",
        ),
        (_function(result=_sum), {"max_batch_size": 4}, ValueError, "result: expected None as"),
        (
            tf.function(_nothing, input_signature=[]), {"max_batch_size": 4},
            ValueError, "expected an argument with rows",
        ),
        (
            [_function(), _function(tf.TensorSpec([None], tf.int32))], {},
            ValueError, "expected functions with equal signatures",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_bound(address, functions, options, error, message):
    with pytest.raises(error, match=message):
        Server([address]).bind(functions, "method", **options)


def test_a_name_is_bound_once(address):
    server = Server([address])
    server.bind(double)
    with pytest.raises(ValueError, match="'double' is bound already"):
        server.bind(double)


def test_bind_and_start_in_order(serve):
    server = serve(double)
    with pytest.raises(RuntimeError, match="before"):
        server.bind(double, "again")
    with pytest.raises(RuntimeError, match="started"):
        server.start()

"""Requests that do not fit: refused by the client, and by the server from a raw client."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import numpy as np
import pytest
import tensorflow as tf

from seed_rl.grpc.errors import (
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    from_status,
)
from seed_rl.grpc.messages import service_pb2, service_pb2_grpc

ROOT = Path(__file__).parents[3]
FLOAT32, INT32 = service_pb2.FLOAT32, service_pb2.INT32


@tf.function(
    input_signature=[
        {"a": tf.TensorSpec([None], tf.float32), "b": tf.TensorSpec([None, 2], tf.int32)},
        (tf.TensorSpec([None], tf.float32),),
    ]
)
def infer(x, y):
    return x["a"] + y[0]


@pytest.fixture
def server(serve):
    return serve(infer, max_batch_size=4, timeout_ms=20)


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], r"method 'infer': expected 2 arguments \(x, y\), got 0"),
        ([np.float32([1]), (np.float32([1]),)], "argument 'x': expected a dict of .*, got a nd"),
        ([{"a": np.float32([1])}, ()], r"argument 'x': expected a dict of \['a', 'b'\], got a d"),
        ([{"a": 1, "b": 2}, ()], r"argument 'y': expected a tuple of 1, got a tuple of 0"),
        ([{"a": 1, "b": 2}, [1]], r"argument 'y': expected a tuple of 1, got a list of 1"),
        (
            [{"a": np.float64([1]), "b": np.int32([[1, 2]])}, (np.float32([1]),)],
            r"argument 'x\['a'\]': expected float32 \[\?\], got float64 \[1\]",
        ),
        (
            [{"a": np.float32([1]), "b": np.int32([[1, 2, 3]])}, (np.float32([1]),)],
            r"argument 'x\['b'\]': expected int32 \[\?,2\], got int32 \[1,3\]",
        ),
        (
            [{"a": np.float32([1]), "b": np.int32([[1, 2]])}, (np.float32(1),)],
            r"argument 'y\[0\]': expected float32 \[\?\], got float32 \[\]",
        ),
        (
            [{"a": np.float32(1), "b": np.int32([[1, 2]])}, (np.float32(1),)],
            r"argument 'x\['b'\]': expected int32 \[2\], got int32 \[1,2\]",
        ),
        (
            [{"a": np.float32([1, 2]), "b": np.int32([[1, 2]])}, (np.float32([1, 2]),)],
            r"argument 'x\['b'\]': expected int32 \[\?,2\] with 2 rows like the first, got 1",
        ),
        (
            [{"a": np.zeros(5, "f"), "b": np.zeros((5, 2), "i")}, (np.zeros(5, "f"),)],
            "method 'infer': expected 1 to 4 rows, got 5",
        ),
        (
            [{"a": np.array(["text"]), "b": np.int32([[1, 2]])}, (np.float32([1]),)],
            r"argument 'x\['a'\]': expected float32 \[\?\], got <U4 \[1\]",
        ),
    ],
)
def test_client_refuses(connect, arguments, message):
    client = connect()
    with pytest.raises(InvalidArgumentError, match=message):
        client.infer(*arguments)
    result = client.infer({"a": np.float32(1), "b": np.int32([1, 2])}, (np.float32(2),))
    assert result == 3


@pytest.mark.usefixtures("server")
def test_unknown_method(connect):
    client = connect()
    with pytest.raises(NotFoundError, match=r"no method 'learn', expected one of \['infer'\]"):
        client.call("learn")
    with pytest.raises(AttributeError, match="has no 'learn'"):
        _ = client.learn


def tensor(dtype, shape, data):
    return service_pb2.Tensor(dtype=dtype, shape=shape, data=data)


def request(a=None, b=None, c=None, method="infer"):
    good = (
        tensor(FLOAT32, [1], b"\0" * 4), tensor(INT32, [1, 2], b"\0" * 8),
        tensor(FLOAT32, [1], b"\0" * 4),
    )  # fmt: skip
    arguments = [given or default for given, default in zip((a, b, c), good, strict=True)]
    return service_pb2.CallRequest(method=method, arguments=arguments)


def call_raw(address: str, *requests: service_pb2.CallRequest | bytes) -> list:
    """Returns the replies, and instead of the last the error, if there is one."""

    def serialize(message):
        return message if isinstance(message, bytes) else message.SerializeToString()

    with grpc.insecure_channel(address) as channel:
        call = channel.stream_stream("/seed_rl.Functions/Call", request_serializer=serialize)
        replies = []
        try:
            for reply in call(iter(requests), timeout=60):
                replies.append(service_pb2.CallReply.FromString(reply))
        except grpc.RpcError as error:
            replies.append(error)
        return replies


@pytest.mark.parametrize(
    ("bad", "status", "message"),
    [
        (request(method="learn"), "NOT_FOUND", "there is no method 'learn'"),
        (request(method="infer\0\n"), "NOT_FOUND", r"there is no method 'infer\000\n'"),
        (service_pb2.CallRequest(), "NOT_FOUND", "there is no method ''"),
        (service_pb2.CallRequest(method="infer"), "INVALID", "method 'infer': expected 3 tensors"),
        (
            request(b=tensor(FLOAT32, [1, 2], b"\0" * 8)), "INVALID",
            "argument 'x['b']': expected int32 [?,2], got float32 [1,2]",
        ),
        (
            request(c=tensor(FLOAT32, [1, 1], b"\0" * 4)), "INVALID",
            "argument 'y[0]': expected float32 [?], got float32 [1,1]",
        ),
        (request(a=tensor(FLOAT32, [], b"\0" * 4)), "INVALID", "got float32 []"),
        (request(a=tensor(FLOAT32, [1], b"\0" * 5)), "INVALID", "got 5 bytes for shape [1]"),
        (request(a=tensor(FLOAT32, [1], b"")), "INVALID", "got 0 bytes for shape [1]"),
        (request(a=tensor(FLOAT32, [-1], b"\0" * 4)), "INVALID", "got an impossible shape"),
        (request(a=tensor(FLOAT32, [2**20], b"\0" * 4)), "INVALID", "got 4 bytes for shape"),
        (request(a=tensor(FLOAT32, [2**62], b"\0" * 4)), "INVALID", "got an impossible shape"),
        (request(b=tensor(INT32, [2**62, 2], b"")), "INVALID", "got an impossible shape"),
        (request(b=tensor(INT32, [0, 2**32], b"")), "INVALID", "got an impossible shape"),
        (request(b=tensor(INT32, [2**30, 0, 2**30], b"")), "INVALID", "got an impossible shape"),
        (request(b=tensor(INT32, [1] * 300, b"")), "INVALID", "got an impossible shape"),
        (request(a=tensor(777, [1], b"\0" * 4)), "INVALID", "argument 'x['a']'"),
        (request(a=tensor(-5, [1], b"\0" * 4)), "INVALID", "argument 'x['a']'"),
        (
            request(a=tensor(FLOAT32, [2], b"\0" * 8)), "INVALID",
            "argument 'x['b']': expected int32 [?,2] with 2 rows like the first, got 1",
        ),
        (
            request(
                tensor(FLOAT32, [5], b"\0" * 20), tensor(INT32, [5, 2], b"\0" * 40),
                tensor(FLOAT32, [5], b"\0" * 20),
            ),
            "INVALID", "method 'infer': expected 1 to 4 rows, got 5",
        ),
        (
            request(
                tensor(FLOAT32, [0], b""), tensor(INT32, [0, 2], b""), tensor(FLOAT32, [0], b"")
            ),
            "INVALID", "method 'infer': expected 1 to 4 rows, got 0",
        ),
        (b"\xff\xff\xff", "INVALID", "the message is not a CallRequest"),
        (b"\x0a\xff\xff\xff\xff\x0f", "INVALID", "the message is not a CallRequest"),
        (b"\x0a\x02\xff\xfe", "INVALID", "the message is not a CallRequest"),
        # A million empty tensors, which to parse would take fifty times their size.
        (b"\x12\x00" * 1_000_000, "RESOURCE_EXHAUSTED", "larger than max"),
    ],
)  # fmt: skip
def test_server_refuses(server, address, connect, bad, status, message):
    bystander = connect()
    good, error = call_raw(address, request(), bad)
    assert good.results[0].data == b"\0" * 4
    assert status in error.code().name
    assert message in error.details()
    result = bystander.infer({"a": np.float32(1), "b": np.int32([1, 2])}, (np.float32(2),))
    assert result == 3


def test_requests_sent_ahead_are_answered_in_order(server, address):
    replies = call_raw(address, *[request()] * 50)
    assert [len(reply.results) for reply in replies] == [1] * 50


def test_describe_for_a_raw_client(server, address):
    with grpc.insecure_channel(address) as channel:
        stub = service_pb2_grpc.FunctionsStub(channel)
        description = stub.Describe(service_pb2.DescribeRequest(), timeout=60)
    (method,) = description.methods
    assert method.name == "infer"
    assert method.max_batch_size == 4
    assert [argument.name for argument in method.arguments] == ["x", "y"]


@tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
def divide(x):
    tf.debugging.assert_positive(x, "a row is not positive")
    return x, tf.fill([tf.size(x)], tf.size(x))


def test_error_of_the_function(serve, connect, threads: ThreadPoolExecutor):
    serve(divide, max_batch_size=8, timeout_ms=3_600_000)
    first, second = connect(), connect()

    def call_divide(client, number):
        return client.call("divide", np.int32(number), timeout=60)

    def call_until_paired(client):
        while call_divide(client, 1)[1] != 2:
            pass

    # From their first common batch on, the server expects both in every batch.
    for call in [threads.submit(call_until_paired, client) for client in (first, second)]:
        call.result(60)
    good = threads.submit(call_divide, first, 1)
    bad = threads.submit(call_divide, second, -1)
    for call in (good, bad):
        with pytest.raises(InternalError, match="a row is not positive"):
            call.result(60)
    assert call_divide(first, 5)[0] == 5  # It has connected again.


def test_long_error_message(serve, connect):
    """It is cut between two characters, whether they begin at even bytes or at odd ones."""

    @tf.function(input_signature=[tf.TensorSpec([], tf.bool)])
    def fail(shifted):
        text = tf.constant("é" * 100_000)
        tf.debugging.Assert(False, [tf.where(shifted, "x" + text, text)])

    serve(fail)
    client = connect()
    for shifted in (False, True):
        with pytest.raises(InternalError, match=r"[^é]é{100}é*$"):
            client.fail(np.bool_(shifted))


def test_message_that_is_too_long():
    error = from_status(grpc.StatusCode.RESOURCE_EXHAUSTED, "larger than max")
    assert isinstance(error, InvalidArgumentError)


def test_no_memory_for_a_batch():
    code = """
import resource
import numpy as np
import tensorflow as tf
from seed_rl.grpc.client import Client
from seed_rl.grpc.errors import InvalidArgumentError
from seed_rl.grpc.server import Server

@tf.function(input_signature=[tf.TensorSpec([None, 1 << 20], tf.uint8)])
def large(x):
    return x

@tf.function(input_signature=[tf.TensorSpec([None], tf.uint8)])
def small(x):
    return x

with Server(["127.0.0.1:0"]) as server:
    server.bind(large, max_batch_size=8 << 10)
    server.bind(small, max_batch_size=8)
    server.start()
    with Client(server.addresses[0]) as client:
        assert client.small(np.uint8(1)) == 1
        in_use = 4096 * int(open("/proc/self/statm").read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (in_use + (1 << 30),) * 2)
        try:
            client.call("large", np.zeros(1 << 20, np.uint8), timeout=60)
            raise SystemExit("there was memory")
        except InvalidArgumentError as error:
            assert "'large': the server has no memory" in str(error)
        assert client.small(np.uint8(2)) == 2
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)


def test_rows_that_the_function_loses(serve, connect):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def lose(x):
        return x[1:]

    serve(lose, max_batch_size=8)
    with pytest.raises(InternalError, match=r"result 0 has shape \[2\] for a batch of 3 rows"):
        connect().lose(np.int32([1, 2, 3]))

"""Bytes on the TCP port that are not gRPC, or only look like it."""

import contextlib
import os
import socket
import struct
import time

import numpy as np
import pytest
import tensorflow as tf

from seed_rl.grpc.messages import service_pb2

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


@tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
def double(x):
    return 2 * x


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name: bytes, value: bytes) -> bytes:
    """A header field in HPACK, without Huffman code or table."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


SETTINGS = frame(4, 0, 0, b"")
CALL = frame(
    1, 4, 1,
    literal(b":method", b"POST") + literal(b":scheme", b"http")
    + literal(b":path", b"/seed_rl.Functions/Call") + literal(b":authority", b"localhost")
    + literal(b"content-type", b"application/grpc") + literal(b"te", b"trailers"),
)  # fmt: skip


OPEN = PREFACE + SETTINGS + CALL


def test_well_formed_bytes(serve):
    """The bytes below fail for what is wrong with them, and not for what they share."""
    tensor = service_pb2.Tensor(dtype=service_pb2.FLOAT32, shape=[1], data=struct.pack("<f", 1.5))
    request = service_pb2.CallRequest(method="double", arguments=[tensor]).SerializeToString()
    server = serve(double, addresses=["127.0.0.1:0"])
    host, port = server.addresses[0].split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(OPEN + frame(0, 0, 1, struct.pack(">BI", 0, len(request)) + request))
        received = b""
        while struct.pack("<f", 3.0) not in received:
            received += connection.recv(1000) or pytest.fail(f"closed after {received!r}")


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\0", id="one byte"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", id="web browser"),
        pytest.param(np.random.default_rng(0).bytes(100_000), id="noise"),
        pytest.param(PREFACE + np.random.default_rng(1).bytes(100_000), id="noisy frames"),
        pytest.param(PREFACE + frame(4, 0, 0, b"odd"), id="odd settings"),
        pytest.param(PREFACE + SETTINGS + frame(1, 4, 1, b"\xff" * 50), id="bad header"),
        pytest.param(PREFACE + SETTINGS + frame(0, 0, 7, b"data"), id="data of no stream"),
        pytest.param(OPEN + frame(0, 0, 1, b"\0\xff\xff\xff\xff" + b"x" * 1000), id="giant length"),
        pytest.param(OPEN + frame(0, 0, 1, b"\1\0\0\0\5hello"), id="unknown compression"),
        pytest.param(OPEN + frame(0, 1, 1, b"\0\0\0\1\0half"), id="half a message"),
        pytest.param(OPEN + frame(3, 0, 1, b"\0\0\0\0"), id="reset stream"),
        pytest.param(OPEN[:-20], id="half a header"),
    ],
)
@pytest.mark.parametrize("abort", [False, True])
def test_server_survives(serve, connect, sent, abort):
    server = serve(double, addresses=["127.0.0.1:0"], max_batch_size=4, timeout_ms=3_600_000)
    host, port = server.addresses[0].split(":")
    client = connect(server.addresses[0])
    assert client.call("double", np.float32(1), timeout=60) == 2
    for _ in range(3):
        with socket.create_connection((host, int(port))) as connection:
            if abort:  # With a reset.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with contextlib.suppress(OSError):  # The server may hang up meanwhile.
                connection.sendall(sent)
    assert client.call("double", np.float32(3), timeout=60) == 6
    assert connect(server.addresses[0]).methods.keys() == {"double"}


def test_many_connections_that_say_nothing(serve, connect):
    server = serve(double, addresses=["127.0.0.1:0"])
    host, port = server.addresses[0].split(":")
    before = count_descriptors()
    silent = [socket.create_connection((host, int(port))) for _ in range(200)]
    assert connect(server.addresses[0]).double(np.float32([3])).tolist() == [6]
    assert count_descriptors() >= before + 400  # Both ends.
    for connection in silent:
        connection.close()
    deadline = time.monotonic() + 60
    while count_descriptors() > before + 50:  # The client has some.
        assert time.monotonic() < deadline
        time.sleep(0.05)


def count_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))

"""The servers to compare with do what ours does."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf

from benchmarks.grpcio_server import AsyncioServer, Binding, ThreadedServer
from seed_rl.grpc.client import Client
from seed_rl.grpc.messages import service_pb2, service_pb2_grpc

Make = Callable[..., Any]
BATCH_SIZES: list[int] = []


@tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x")], autograph=False)
def add(x: tf.Tensor) -> tf.Tensor:
    tf.py_function(lambda size: BATCH_SIZES.append(int(size)), [tf.shape(x)[0]], [])
    return tf.reduce_sum(x, axis=1)


@pytest.fixture(params=[ThreadedServer, AsyncioServer])
def addresses(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[str]]:
    BATCH_SIZES.clear()
    bindings = {"batched": Binding(add, 4), "single": Binding(add)}
    server = request.param([f"unix:{tmp_path}/server", "localhost:0"], bindings)
    yield server.addresses
    server.stop()


def rows(start: float, count: int) -> np.ndarray:
    return np.arange(start, start + 2 * count, dtype=np.float32).reshape(count, 2)


@pytest.mark.parametrize("method", ["batched", "single"])
@pytest.mark.parametrize("kind", [0, 1])
def test_a_client_gets_what_the_function_returns(
    addresses: list[str], kind: int, method: str
) -> None:
    with Client(addresses[kind]) as client:
        for start, count in (0, 1), (5, 3):
            x = rows(start, count)
            result = client.call(method, x)
            assert result.dtype == np.float32
            np.testing.assert_array_equal(result, x.sum(axis=1))


def test_clients_that_call_at_once_get_their_own_rows(addresses: list[str]) -> None:
    def play(number: int) -> list[bool]:
        x = rows(100.0 * number, 1)
        with Client(addresses[0]) as client:
            return [np.array_equal(client.batched(x), x.sum(axis=1)) for _ in range(50)]

    with ThreadPoolExecutor(8) as threads:
        assert all(all(answers) for answers in threads.map(play, range(8)))
    assert sum(BATCH_SIZES) == 8 * 50
    assert max(BATCH_SIZES) in range(2, 5)


def test_single_calls_run_by_themselves(addresses: list[str]) -> None:
    def play(number: int) -> None:
        with Client(addresses[0]) as client:
            for _ in range(10):
                client.single(rows(number, 1))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(play, range(4)))
    assert BATCH_SIZES == [1] * 40


def test_a_bad_request_is_refused_and_others_go_on(addresses: list[str]) -> None:
    tensor = service_pb2.Tensor(dtype=service_pb2.FLOAT32, shape=[1, 3], data=bytes(12))
    request = service_pb2.CallRequest(method="batched", arguments=[tensor])
    with Client(addresses[0]) as good, grpc.insecure_channel(addresses[0]) as channel:
        good.batched(rows(0, 1))
        with pytest.raises(grpc.RpcError):
            next(service_pb2_grpc.FunctionsStub(channel).Call(iter([request])))
        np.testing.assert_array_equal(good.batched(rows(0, 1)), [1.0])

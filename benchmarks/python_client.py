"""A load of one client in Python, as an actor is: load.py starts it and says what it prints.

`python -m benchmarks.python_client ADDRESS 1 0 WARM_UP_US MEASURE_US`
"""

from __future__ import annotations

import struct
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from seed_rl.grpc import specs
from seed_rl.grpc.client import Client
from seed_rl.grpc.messages import service_pb2


def main() -> None:
    address, num_clients, step_us, warm_up_us, measure_us = sys.argv[1], *map(int, sys.argv[2:])
    assert (num_clients, step_us) == (1, 0), "that load_client.cc alone offers"
    request = _read_request()
    arguments = [
        np.frombuffer(tensor.data, specs.numpy_dtype(tensor.dtype)).reshape(tensor.shape)
        for tensor in request.arguments
    ]
    with Client(address) as client:
        _say("connected")
        sys.stdin.buffer.read(1)
        _measure(lambda: client.call(request.method, *arguments), warm_up_us, measure_us)


def _measure(call: Callable[[], Any], warm_up_us: int, measure_us: int) -> None:
    first = call()
    answered, changed, latencies = 1, 0, []
    begin = time.monotonic_ns() + 1000 * warm_up_us
    end = begin + 1000 * measure_us
    measuring = False
    before = time.monotonic_ns()
    while before < end:
        if before >= begin and not measuring:
            measuring = True
            _say("measuring")
        answered += 1
        changed += not np.array_equal(call(), first)
        after = time.monotonic_ns()
        if begin <= after < end:
            latencies.append(after - before)
        before = after
    _say(f"measured {1000 * measure_us}")
    _say(_encode(first).SerializeToString().hex(), answered, changed, *latencies)


def _encode(array: np.ndarray) -> service_pb2.CallReply:
    """The reply that the client was given as an array."""
    dtype = service_pb2.DataType.Value(array.dtype.name.upper())
    tensor = service_pb2.Tensor(dtype=dtype, shape=array.shape, data=array.tobytes())
    return service_pb2.CallReply(results=[tensor])


def _read_request() -> service_pb2.CallRequest:
    (size,) = struct.unpack("=I", sys.stdin.buffer.read(4))
    return service_pb2.CallRequest.FromString(sys.stdin.buffer.read(size))


def _say(*words: object) -> None:
    print(*words, flush=True)


if __name__ == "__main__":
    main()

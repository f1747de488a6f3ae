"""What to compare with: servers of the same messages, written in Python with grpcio alone.

Two, as one would write them with care: with a thread for each stream, and with asyncio, which
spares the hand-overs between threads and is the faster one. Both join the rows of several streams
in one call of the function, and copy nothing but what that needs.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import tensorflow as tf

from seed_rl.grpc import addresses as address_lib
from seed_rl.grpc import signatures, specs
from seed_rl.grpc.messages import service_pb2, service_pb2_grpc

TIMEOUT_SECONDS = 0.02  # as seed_rl.grpc.Server has it
_OPTIONS = [("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", 512 << 20)]


@dataclasses.dataclass(frozen=True)
class Binding:
    """A function to serve.

    Attributes:
      function: a tf.function with an input_signature, from a tensor [N, ...] to a tensor [N, ...].
      max_batch_size: rows of several calls run together, up to this many; None: every call runs by
        itself.
    """

    function: Callable[[np.ndarray], tf.Tensor]
    max_batch_size: int | None = None


class ThreadedServer:
    """Serves with a thread for each stream, from the start to stop().

    Args:
      addresses: each "unix:/path" or "host:port"; port 0 picks a free one.
      bindings: what to serve, by name.
      max_streams: clients that can be connected at once.

    Attributes:
      addresses: with the real ports.
    """

    def __init__(
        self, addresses: Sequence[str], bindings: Mapping[str, Binding], max_streams: int = 256
    ):
        self._servicer = _ThreadedServicer(bindings)
        # A few more: each client also asks once what is served.
        self._server = grpc.server(ThreadPoolExecutor(max_streams + 8), options=_OPTIONS)
        service_pb2_grpc.add_FunctionsServicer_to_server(self._servicer, self._server)
        ports = [self._server.add_insecure_port(address) for address in addresses]
        self.addresses = _with_ports(addresses, ports)
        self._server.start()

    def stop(self) -> None:
        self._server.stop(None).wait()
        self._servicer.stop()


class AsyncioServer:
    """Serves with one event loop in a thread of its own, from the start to stop().

    Args and attributes: as of ThreadedServer, but for the number of streams, which has no limit.
    """

    def __init__(self, addresses: Sequence[str], bindings: Mapping[str, Binding]):
        self._servicer = _AsyncioServicer(bindings)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.addresses = _with_ports(addresses, self._run(self._start(addresses)))

    def stop(self) -> None:
        self._run(self._server.stop(None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self, addresses: Sequence[str]) -> list[int]:
        self._server = grpc.aio.server(options=_OPTIONS)
        service_pb2_grpc.add_FunctionsServicer_to_server(self._servicer, self._server)
        ports = [self._server.add_insecure_port(address) for address in addresses]
        await self._server.start()
        return ports

    def _run(self, coroutine):  # type: ignore[no-untyped-def]
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


def _with_ports(addresses: Sequence[str], ports: Sequence[int]) -> list[str]:
    return [
        address if address_lib.unix_path(address) else address_lib.with_port(address, port)
        for address, port in zip(addresses, ports, strict=True)
    ]


class _Method:
    """A function between messages."""

    def __init__(self, name: str, binding: Binding):
        method = signatures.method(binding.function, name, binding.max_batch_size)
        ((_, self._spec),) = method.argument_leaves()
        self._dtype = specs.numpy_dtype(self._spec.dtype)
        self._function = binding.function
        self.max_batch_size = binding.max_batch_size
        self.description = specs.method_to_proto(method)

    def decode(self, request: service_pb2.CallRequest) -> np.ndarray:
        """The argument, in the memory of the message."""
        (tensor,) = request.arguments
        if tensor.dtype != self._spec.dtype or not self._spec.matches_shape(tuple(tensor.shape)):
            raise ValueError(f"expected {self._spec}, got a tensor of shape {tensor.shape}")
        return np.frombuffer(tensor.data, self._dtype).reshape(tensor.shape)

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Runs the function once for the rows of all; returns the rows of each."""
        if len(arrays) == 1:
            return [self._function(arrays[0]).numpy()]
        results = self._function(np.concatenate(arrays)).numpy()
        ends = list(itertools.accumulate(len(array) for array in arrays))
        return [results[end - len(array) : end] for end, array in zip(ends, arrays, strict=True)]


def _encode(result: np.ndarray) -> service_pb2.CallReply:
    dtype = tf.as_dtype(result.dtype).as_datatype_enum
    tensor = service_pb2.Tensor(dtype=dtype, shape=result.shape, data=result.tobytes())
    return service_pb2.CallReply(results=[tensor])


def _methods(bindings: Mapping[str, Binding]) -> dict[str, _Method]:
    return {name: _Method(name, binding) for name, binding in bindings.items()}


def _description(methods: Mapping[str, _Method]) -> service_pb2.Description:
    descriptions = [method.description for method in methods.values()]
    return service_pb2.Description(methods=descriptions, settings_json="{}")


class _ThreadedServicer(service_pb2_grpc.FunctionsServicer):
    def __init__(self, bindings: Mapping[str, Binding]):
        self._methods = _methods(bindings)
        self._batchers = {
            name: _ThreadedBatcher(method, method.max_batch_size)
            for name, method in self._methods.items()
            if method.max_batch_size is not None
        }

    def stop(self) -> None:
        for batcher in self._batchers.values():
            batcher.stop()

    def Describe(self, request, context):  # type: ignore[no-untyped-def]  # noqa: N802
        return _description(self._methods)

    def Call(  # noqa: N802
        self, requests: Iterator[service_pb2.CallRequest], context: grpc.ServicerContext
    ) -> Iterator[service_pb2.CallReply]:
        replies: queue.SimpleQueue[np.ndarray] = queue.SimpleQueue()
        for request in requests:
            method = self._methods[request.method]
            array = method.decode(request)
            if request.method in self._batchers:
                self._batchers[request.method].put(array, replies)
                yield _encode(replies.get())
            else:
                yield _encode(method.run([array])[0])


class _ThreadedBatcher:
    """Runs together what has come while the last batch ran: nobody ever waits for others."""

    def __init__(self, method: _Method, max_batch_size: int):
        self._method = method
        self._max_batch_size = max_batch_size
        self._calls: queue.SimpleQueue[tuple[np.ndarray, queue.SimpleQueue] | None] = (
            queue.SimpleQueue()
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def put(self, array: np.ndarray, replies: queue.SimpleQueue[np.ndarray]) -> None:
        self._calls.put((array, replies))

    def stop(self) -> None:
        self._calls.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            calls, rows = [call], len(call[0])
            # The last one may bring more rows than there were left.
            while rows < self._max_batch_size and not self._calls.empty():
                if (call := self._calls.get()) is None:
                    return
                calls.append(call)
                rows += len(call[0])
            results = self._method.run([array for array, _ in calls])
            for (_, replies), result in zip(calls, results, strict=True):
                replies.put(result)


class _AsyncioServicer(service_pb2_grpc.FunctionsServicer):
    def __init__(self, bindings: Mapping[str, Binding]):
        self._methods = _methods(bindings)
        self._batchers = {
            name: _AsyncioBatcher(method, method.max_batch_size)
            for name, method in self._methods.items()
            if method.max_batch_size is not None
        }

    async def Describe(self, request, context):  # type: ignore[no-untyped-def]  # noqa: N802
        return _description(self._methods)

    async def Call(  # noqa: N802
        self, requests: AsyncIterator[service_pb2.CallRequest], context: grpc.aio.ServicerContext
    ) -> None:
        del requests  # read() and write() cost less than an iterator
        with contextlib.ExitStack() as memberships:
            joined = set()
            while (request := await context.read()) is not grpc.aio.EOF:
                method = self._methods[request.method]
                array = method.decode(request)
                if batcher := self._batchers.get(request.method):
                    if request.method not in joined:
                        joined.add(request.method)
                        memberships.enter_context(batcher.membership())
                    result = await batcher.put(array)
                else:
                    # In the loop: another thread would cost more than so small a function.
                    (result,) = method.run([array])
                await context.write(_encode(result))


class _AsyncioBatcher:
    """Runs a batch when it is full, when all streams that call the method wait in it, or when its
    oldest call has waited TIMEOUT_SECONDS."""

    def __init__(self, method: _Method, max_batch_size: int):
        self._method = method
        self._max_batch_size = max_batch_size
        self._members = 0
        self._calls: list[tuple[np.ndarray, asyncio.Future[np.ndarray]]] = []
        self._timer: asyncio.TimerHandle | None = None

    @contextlib.contextmanager
    def membership(self) -> Iterator[None]:
        """The time in which a stream calls the method."""
        self._members += 1
        try:
            yield
        finally:
            self._members -= 1

    def put(self, array: np.ndarray) -> asyncio.Future[np.ndarray]:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._calls.append((array, future))
        rows = sum(len(array) for array, _ in self._calls)
        if rows >= self._max_batch_size or len(self._calls) >= self._members:
            self._run()
        elif self._timer is None:
            self._timer = loop.call_later(TIMEOUT_SECONDS, self._run)
        return future

    def _run(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        calls, self._calls = self._calls, []
        results = self._method.run([array for array, _ in calls])
        for (_, future), result in zip(calls, results, strict=True):
            if not future.done():  # cancelled with its stream
                future.set_result(result)

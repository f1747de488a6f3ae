"""The actor's end: calls the methods of a server. Needs grpcio and NumPy, not TensorFlow."""

import contextlib
import functools
import json
import logging
import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import grpc

from seed_rl.grpc import addresses, errors, specs
from seed_rl.grpc.codec import MethodCodec
from seed_rl.grpc.messages import service_pb2, service_pb2_grpc
from seed_rl.grpc.security import PLAIN, Security

_CHANNEL_OPTIONS = {
    "grpc.max_send_message_length": 512 << 20,
    "grpc.max_receive_message_length": 512 << 20,
    # Look for a learner that is starting every second, not ever more rarely.
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 1_000,
    # Notice a learner's host that lost power.
    "grpc.keepalive_time_ms": 20_000,
    "grpc.keepalive_timeout_ms": 20_000,
    "grpc.http2.max_pings_without_data": 0,
    # A connection for each client, and none through a proxy meant for the web.
    "grpc.use_local_subchannel_pool": 1,
    "grpc.enable_http_proxy": 0,
}
_RETRY_SECONDS = 0.1
_TELL_SECONDS = 30.0  # between two words on a server that is not there
_WHY_SECONDS = 1.0  # to ask what keeps a connection from being made


class Client:
    """A connection to a server.

    A method of the server is called as `client.call("name", ...)` or `client.name(...)`, with
    nestings of arrays as arguments. A method that is batched also takes one row without the
    leading row dimension; its results then have none either. Results are writable NumPy arrays.

    The server runs one call of a client at a time; a thread that wants its own needs its own
    client. After an error of the connection the next call connects again.
    """

    def __init__(self, address: str, timeout: float = 60.0, security: Security = PLAIN):
        """Connects.

        Args:
          address: "unix:/path" or "host:port".
          timeout: for how many seconds to wait for the server, now and when connecting again.
          security: as the server's.

        Raises:
          ValueError: the address is malformed.
          ConnectionTimeoutError: no server came up in time, or it is not secured in this way.
          UnauthenticatedError: the server expects another token.
        """
        addresses.check(address)
        self._address = address
        self._timeout = timeout
        self._security = security
        self._connection: _Connection | None = None
        self._closed = False
        self._connect(_Deadline(timeout))

    @property
    def settings(self) -> dict[str, Any]:
        """What the server was given as settings."""
        return self._settings

    @property
    def methods(self) -> Mapping[str, specs.Method]:
        """What the server serves, by name."""
        return self._methods

    def call(self, name: str, *arguments: specs.Nest, timeout: float | None = None) -> specs.Nest:
        """Calls a method and returns its results.

        Args:
          name: of the method.
          *arguments: nestings of arrays, or of what np.asarray makes arrays of.
          timeout: in seconds, with connecting again where that is needed; None waits as long as
            the connection lives.

        Raises:
          NotFoundError, InvalidArgumentError: the call does not fit the server; nothing was sent.
          DeadlineExceededError: no answer in time; it is unknown whether the method ran.
          UnavailableError: the server shut down or the connection broke; likewise.
          ServiceEndedError: the server has ended for good.
          InternalError: the method raised an error.
          ConnectionTimeoutError, UnauthenticatedError: there was no connection, and none could be
            made.
        """
        if self._closed:
            raise ValueError("the client is closed.")
        deadline = _Deadline(timeout)
        connection = self._connection
        if connection is None:
            connection = self._connect(_Deadline(self._timeout) if timeout is None else deadline)
        if name not in self._codecs:
            raise errors.NotFoundError(
                f"there is no method '{name}', expected one of {sorted(self._codecs)}"
            )
        codec = self._codecs[name]
        request, rows_added = codec.encode(arguments)
        try:
            reply = connection.exchange(request, deadline)
        except BaseException:  # Also when interrupted: the answer would be taken for the next one.
            self._disconnect()
            raise
        if connection.expired:  # Just after the answer.
            self._disconnect()
        return codec.decode(reply, drop_rows=rows_added)

    def close(self) -> None:
        """Ends the connection. Idempotent."""
        self._closed = True
        self._disconnect()

    def _connect(self, deadline: "_Deadline") -> "_Connection":
        connection, description = self._describe(deadline)
        self._settings = json.loads(description.settings_json)
        self._methods = {
            proto.name: specs.method_from_proto(proto) for proto in description.methods
        }
        self._codecs = {name: MethodCodec(method) for name, method in self._methods.items()}
        return connection

    def _describe(self, deadline: "_Deadline") -> tuple["_Connection", service_pb2.Description]:
        """Returns a connection, and what its server serves."""
        while True:
            self._connection = connection = _Connection(self._address, self._security)
            try:
                return connection, connection.describe(deadline)
            except errors.UnavailableError:  # It went away while it answered; it may restart.
                self._disconnect()  # All of it: the stream may be of a server before.
                time.sleep(_RETRY_SECONDS)
            except BaseException:
                self._disconnect()
                raise

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __getattr__(self, name: str) -> Callable[..., specs.Nest]:
        if name.startswith("_") or name not in self._methods:
            raise AttributeError(f"the server at {self.__dict__.get('_address')} has no '{name}'")
        return functools.partial(self.call, name)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class _Deadline:
    """The end of a wait of so many seconds, over all the steps it takes; None: without an end."""

    def __init__(self, seconds: float | None):
        self.seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    def remaining(self) -> float | None:
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)


class _Connection:
    """One channel with one stream of calls."""

    def __init__(self, address: str, security: Security):
        self._address = address
        self._channel = security.channel(address, _CHANNEL_OPTIONS)
        self._metadata = security.metadata()
        self._stub = service_pb2_grpc.FunctionsStub(self._channel)
        self._requests: queue.SimpleQueue[service_pb2.CallRequest | None] = queue.SimpleQueue()
        # gRPC reads the requests in a thread of its own until it meets None.
        self._replies = self._stub.Call(
            iter(self._requests.get, None), wait_for_ready=True, metadata=self._metadata
        )
        # Also when forgotten: the server would go on to wait for rows of an open stream. And also
        # at exit, but before gRPC's threads are frozen: later, close() would wait for them forever.
        self._finalizer = weakref.finalize(
            self, _close, self._requests, self._replies, self._channel
        )
        self._expired = threading.Event()

    @property
    def expired(self) -> bool:
        """Whether a deadline has ended the stream."""
        return self._expired.is_set()

    def describe(self, deadline: _Deadline) -> service_pb2.Description:
        """Waits until the server is there, and now and then says why it is not."""
        while True:
            remaining = deadline.remaining()
            last = remaining is not None and remaining <= _TELL_SECONDS
            try:
                return self._stub.Describe(
                    service_pb2.DescribeRequest(),
                    wait_for_ready=True,
                    metadata=self._metadata,
                    timeout=remaining if last else _TELL_SECONDS,
                )
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.DEADLINE_EXCEEDED:
                    raise errors.from_status(error.code(), error.details()) from None
            if last:
                raise errors.ConnectionTimeoutError(
                    f"no server answered at {self._address} within {deadline.seconds:g} seconds"
                    f"{self._why_not()}"
                )
            logging.warning("No server answers at %s yet%s.", self._address, self._why_not())

    def _why_not(self) -> str:
        """The last failure to connect, for the end of a sentence; a call that waits hides it."""
        try:
            self._stub.Describe(service_pb2.DescribeRequest(), timeout=_WHY_SECONDS)
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.UNAVAILABLE:
                return f" ({error.details().rpartition('last error: ')[2]})"
        return ""

    def exchange(
        self, request: service_pb2.CallRequest, deadline: _Deadline
    ) -> service_pb2.CallReply:
        """Sends one request and waits for its reply."""
        with self._expiring(deadline):
            self._requests.put(request)
            try:
                return next(self._replies)
            except StopIteration:
                raise errors.ServiceEndedError("the server has ended for good") from None
            except grpc.RpcError as error:
                if self.expired:
                    raise errors.DeadlineExceededError(
                        f"method '{request.method}' did not answer within {deadline.seconds:g} "
                        "seconds"
                    ) from None
                raise errors.from_status(error.code(), error.details()) from None

    @contextlib.contextmanager
    def _expiring(self, deadline: _Deadline) -> Iterator[None]:
        """Lets the connection expire at the deadline, unless the block ends before."""
        seconds = deadline.remaining()
        if seconds is None:
            yield
            return
        timer = threading.Timer(seconds, self._expire)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()  # It may be expiring just now.

    def _expire(self) -> None:
        self._expired.set()
        self._replies.cancel()

    def close(self) -> None:
        self._finalizer()


def _close(requests: queue.SimpleQueue, replies: grpc.Call, channel: grpc.Channel) -> None:
    requests.put(None)
    replies.cancel()
    channel.close()

"""The learner's end: serves tf.functions to clients.

Everything between a client's message and the function's arguments happens in C++ threads, without
the interpreter lock: see server_ops.cc and what it includes.
"""

import contextlib
import itertools
import json
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from seed_rl.grpc import addresses as address_lib
from seed_rl.grpc import signatures, specs, unix_sockets
from seed_rl.grpc.messages import service_pb2
from seed_rl.grpc.ops import library as ops
from seed_rl.grpc.security import PLAIN, Security

_DEFAULT_TIMEOUT_MS = 20.0
_MAX_TIMEOUT_MS = 24 * 3_600_000
_MAX_ROWS = 2**31 - 1
_MAX_BATCH_BYTES = 16 << 30
_MAX_MESSAGE_BYTES = 512 << 20
_TENSORFLOWS_ADDITIONS = re.compile(r"^\{\{.*?\}\} | \[Op:\w+\]$")  # to an op's error message
_MAX_ENVELOPE_BYTES = 64 << 10  # What a message holds beside data: names, dtypes, shapes.


class Server:
    """Serves tf.functions at one or several addresses.

    bind() each function, then start(). The server ends by shutdown(), at the end of a `with`
    block, or with the last reference to it.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        settings: Mapping[str, Any] | None = None,
        security: Security = PLAIN,
    ):
        """Args:
          addresses: each "unix:/path" or "host:port"; port 0 picks a free one.
          settings: handed to every client as it is; must be JSON.
          security: of all connections.

        Raises:
          ValueError: an address is malformed, or the settings are not JSON.
        """
        if not addresses:
            raise ValueError("addresses: expected at least one, got none.")
        for address in addresses:
            address_lib.check(address)
        self._addresses = list(addresses)
        self._settings_json = _to_json(settings or {})
        self._security = security
        self._methods: dict[str, specs.Method] = {}
        self._started = False
        # C++ holds no reference to a function's variables.
        self._keep_alive: list[object] = []
        with _eagerly():
            self._handle = ops.seed_rl_server()
        # Runs at exit, too, while TensorFlow is still whole.
        self._finalizer = weakref.finalize(self, _shutdown, self._handle, self._keep_alive)

    def bind(
        self,
        functions: Callable[..., Any] | Sequence[Callable[..., Any]],
        name: str | None = None,
        *,
        max_batch_size: int | None = None,
        timeout_ms: float = _DEFAULT_TIMEOUT_MS,
    ) -> None:
        """Serves a function.

        Without `max_batch_size` every call runs the function by itself. With it, the leading
        dimension of every argument and result counts rows: it must be None in the signature. Rows
        of many calls run together, in a batch that goes out when it is full, when every client
        that calls this method waits, or when its oldest row has waited `timeout_ms`.

        Args:
          functions: a tf.function with an input_signature of tensors (no strings), nested at will;
            or several with equal signatures, such as one for each inference device. Whichever is
            free takes the next batch; each runs one at a time.
          name: what clients call it; by default the function's own name.
          max_batch_size: how many rows one run may have.
          timeout_ms: for how many milliseconds a row waits for others; at most a day.

        Raises:
          TypeError, ValueError: a function cannot be served.
          RuntimeError: the server has started.
        """
        if self._started:
            raise RuntimeError("bind() was called after start(), expected before.")
        if not isinstance(functions, Sequence):
            functions = [functions]
        if not functions:
            raise ValueError("functions: expected at least one, got none.")
        if max_batch_size is not None and not 1 <= max_batch_size <= _MAX_ROWS:
            raise ValueError(
                f"max_batch_size: expected at least 1 and at most {_MAX_ROWS}, got "
                f"{max_batch_size}."
            )
        if not 0 <= timeout_ms <= _MAX_TIMEOUT_MS:  # Nor NaN.
            raise ValueError(
                f"timeout_ms: expected no less than 0 and no more than {_MAX_TIMEOUT_MS}, got "
                f"{timeout_ms}."
            )
        method = signatures.method(
            functions[0], name or signatures.name(functions[0]), max_batch_size
        )
        if method.name in self._methods:
            raise ValueError(f"method '{method.name}' is bound already.")
        for function in functions[1:]:
            other = signatures.method(function, method.name, max_batch_size)
            signatures.check_equal(method, other)
        _check_batch_bytes(method)
        self._bind([signatures.concrete_function(each) for each in functions], method, timeout_ms)
        self._methods[method.name] = method

    def _bind(self, functions: list[Any], method: specs.Method, timeout_ms: float) -> None:
        leaves = method.argument_leaves()
        captures = [function.captured_inputs for function in functions]
        with _eagerly():
            ops.seed_rl_server_bind(
                self._handle,
                list(itertools.chain.from_iterable(captures)),
                functions=functions,
                num_captures=[len(each) for each in captures],
                method=method.name,
                descriptions=[f"argument '{path}': expected {spec}" for path, spec in leaves],
                dtypes=[spec.dtype for _, spec in leaves],
                shapes=[spec.shape for _, spec in leaves],
                max_batch_size=method.max_batch_size or 0,
                timeout_us=round(timeout_ms * 1_000),
            )
        self._keep_alive += [(function, function.variables) for function in functions]

    def start(self) -> None:
        """Listens, and returns at once.

        Raises:
          OSError: an address is in use or cannot be bound; start() may be tried again.
          RuntimeError: the server was started or shut down before.
        """
        if self._started or not self._finalizer.alive:
            raise RuntimeError("start() was called on a server that had been started or shut down.")
        description = service_pb2.Description(
            methods=[specs.method_to_proto(method) for method in self._methods.values()],
            settings_json=self._settings_json,
        )
        try:
            with unix_sockets.claimed(self._addresses), _eagerly():
                ports = ops.seed_rl_server_start(
                    self._handle,
                    self._addresses,
                    description.SerializeToString(),
                    [
                        self._security.certificate,
                        self._security.key,
                        self._security.ca,
                        self._security.token,
                    ],
                    max_request_bytes=_max_message_bytes(self._methods.values()),
                )
        except tf.errors.UnavailableError as error:
            raise OSError(_TENSORFLOWS_ADDITIONS.sub("", error.message)) from None
        self._started = True
        self._addresses = [
            address if address_lib.unix_path(address) else address_lib.with_port(address, port)
            for address, port in zip(self._addresses, ports.numpy(), strict=True)
        ]

    @property
    def addresses(self) -> list[str]:
        """Where the server listens; after start() with the real ports."""
        return list(self._addresses)

    def shutdown(self, final: bool = False) -> None:
        """Ends all calls and connections, and returns when no function runs any more.

        Later calls do nothing.

        Args:
          final: clients get ServiceEndedError, "do not come back", instead of UnavailableError.
        """
        if self._finalizer.detach():
            _shutdown(self._handle, self._keep_alive, final)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *exception: object) -> None:
        self.shutdown()


def _shutdown(handle: tf.Tensor, keep_alive: list[object], final: bool = False) -> None:
    with _eagerly():
        ops.seed_rl_server_shutdown(handle, final)
    keep_alive.clear()


@contextlib.contextmanager
def _eagerly() -> Iterator[None]:
    """Runs ops at once and on the CPU, even while a graph is traced: a server may be shut down, or
    collected as garbage, in the middle of it."""
    with tf.init_scope(), tf.device("CPU:0"):
        yield


def _check_batch_bytes(method: specs.Method) -> None:
    """Raises ValueError if a batch has more bytes than anybody can mean."""
    size = method.max_request_bytes()
    if method.max_batch_size is not None and size > _MAX_BATCH_BYTES:
        raise ValueError(
            f"max_batch_size: expected batches of at most {_MAX_BATCH_BYTES >> 30} GB for method "
            f"'{method.name}', got {method.max_batch_size} rows of "
            f"{size // method.max_batch_size} bytes."
        )


def _max_message_bytes(methods: Iterable[specs.Method]) -> int:
    """Returns how large a message may be; to parse one takes many times its size."""
    largest = max((method.max_request_bytes() for method in methods), default=0)
    return int(min(largest + _MAX_ENVELOPE_BYTES, _MAX_MESSAGE_BYTES))


def _to_json(settings: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(settings), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"settings: expected what JSON can carry, but {error}.") from None

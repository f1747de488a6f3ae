"""Arrays of one call to messages, and back."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from seed_rl.grpc import specs
from seed_rl.grpc.errors import InvalidArgumentError
from seed_rl.grpc.messages import service_pb2


class MethodCodec:
    """Checks and encodes the arguments of one method, and decodes its results."""

    def __init__(self, method: specs.Method):
        self._method = method
        self._paths_and_specs = method.argument_leaves()

    def encode(self, arguments: tuple[Any, ...]) -> tuple[service_pb2.CallRequest, bool]:
        """Returns the request, and whether rows were added to arguments that had none.

        Raises:
          InvalidArgumentError: naming the argument that is not as the method wants it.
        """
        arrays = [np.asarray(leaf) for leaf in self._flatten(arguments)]
        add_rows = self._lack_rows(arrays)
        for (path, spec), array in zip(self._paths_and_specs, arrays, strict=True):
            expected = spec.without_rows() if add_rows else spec
            if not expected.matches(array):
                shape = specs.format_shape(array.shape)
                raise InvalidArgumentError(
                    f"argument '{path}': expected {expected}, got {array.dtype} {shape}"
                )
        if self._method.max_batch_size is not None and not add_rows:
            self._check_rows(arrays, self._method.max_batch_size)
        tensors = [
            service_pb2.Tensor(
                dtype=spec.dtype,
                shape=(1, *array.shape) if add_rows else array.shape,
                data=array.tobytes(),
            )
            for (_, spec), array in zip(self._paths_and_specs, arrays, strict=True)
        ]
        return service_pb2.CallRequest(method=self._method.name, arguments=tensors), add_rows

    def decode(self, reply: service_pb2.CallReply, drop_rows: bool) -> specs.Nest:
        """Returns the results as arrays, without their row dimension if `drop_rows`."""
        arrays = (_decode(tensor) for tensor in reply.results)
        if drop_rows:
            arrays = (array[0, ...] for array in arrays)
        return specs.pack(self._method.results, arrays)

    def _flatten(self, arguments: tuple[Any, ...]) -> Iterator[Any]:
        expected = self._method.arguments
        if len(arguments) != len(expected):
            raise InvalidArgumentError(
                f"method '{self._method.name}': expected {len(expected)} arguments "
                f"({', '.join(expected)}), got {len(arguments)}"
            )
        for (name, nest), argument in zip(expected.items(), arguments, strict=True):
            yield from specs.flatten(nest, argument, name)

    def _lack_rows(self, arrays: list[np.ndarray]) -> bool:
        if self._method.max_batch_size is None:
            return False
        _, first = self._paths_and_specs[0]
        return arrays[0].ndim == len(first.shape) - 1

    def _check_rows(self, arrays: list[np.ndarray], max_rows: int) -> None:
        rows = len(arrays[0])
        for (path, spec), array in zip(self._paths_and_specs, arrays, strict=True):
            if len(array) != rows:
                raise InvalidArgumentError(
                    f"argument '{path}': expected {spec} with {rows} rows like the first, "
                    f"got {len(array)}"
                )
        if not 1 <= rows <= max_rows:
            raise InvalidArgumentError(
                f"method '{self._method.name}': expected 1 to {max_rows} rows, got {rows}"
            )


def _decode(tensor: service_pb2.Tensor) -> np.ndarray:
    array = np.frombuffer(tensor.data, specs.numpy_dtype(tensor.dtype))
    return array.reshape(tensor.shape).copy()  # The buffer itself is read-only.

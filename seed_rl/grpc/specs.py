"""What a method takes and returns: nestings of tensor specs, and the values that fit them.

A nesting is a tensor spec, or a tuple, list, dict (with string keys) or namedtuple of nestings.
Its leaves are read depth first and dicts in sorted order, which is also the order of tf.nest.
"""

import collections
import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from seed_rl.grpc.errors import InvalidArgumentError
from seed_rl.grpc.messages import service_pb2

Nest = Any


@functools.cache
def numpy_dtype(number: int) -> np.dtype:
    """Returns the NumPy dtype of a DataType of service.proto."""
    name = service_pb2.DataType.Name(number).lower()
    if name == "bfloat16":
        import ml_dtypes  # NumPy has none of its own, and few actors need it.

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


@dataclass(frozen=True)
class TensorSpec:
    """One tensor: `dtype` is a DataType of service.proto; None in `shape` stands for any size."""

    dtype: int
    shape: tuple[int | None, ...]

    def matches(self, array: np.ndarray) -> bool:
        return array.dtype == numpy_dtype(self.dtype) and self.matches_shape(array.shape)

    def matches_shape(self, shape: tuple[int, ...]) -> bool:
        return len(shape) == len(self.shape) and all(
            expected is None or size == expected
            for size, expected in zip(shape, self.shape, strict=True)
        )

    def without_rows(self) -> "TensorSpec":
        return TensorSpec(self.dtype, self.shape[1:])

    def max_bytes(self, max_rows: int | None) -> float:
        """Returns the bytes of data of the largest tensor; infinity if a size is unknown.

        Args:
          max_rows: the largest leading dimension, if it counts rows.
        """
        shape = self.shape if max_rows is None else (max_rows, *self.shape[1:])
        sizes = [size for size in shape if size is not None]
        if len(sizes) < len(shape):
            return math.inf
        return math.prod(sizes) * numpy_dtype(self.dtype).itemsize

    def __str__(self) -> str:
        return f"{numpy_dtype(self.dtype)} {format_shape(self.shape)}"


@dataclass(frozen=True)
class Method:
    """A method of a server.

    Attributes:
      name: what clients call it.
      arguments: the nesting of each positional argument, by name, in order.
      results: the nesting of what it returns.
      max_batch_size: None if every call runs by itself. Otherwise the leading dimension of every
        tensor counts rows, and this is how many one call may bring.
    """

    name: str
    arguments: Mapping[str, Nest]
    results: Nest
    max_batch_size: int | None

    def argument_leaves(self) -> list[tuple[str, TensorSpec]]:
        """Returns the path and the spec of each tensor that a call sends."""
        return [leaf for name, nest in self.arguments.items() for leaf in leaves(nest, name)]

    def max_request_bytes(self) -> float:
        """Returns how many bytes of data the largest call sends; infinity if that is unknown."""
        return sum(spec.max_bytes(self.max_batch_size) for _, spec in self.argument_leaves())


def format_shape(shape: tuple[int | None, ...]) -> str:
    return "[" + ",".join("?" if size is None else str(size) for size in shape) + "]"


def _is_namedtuple(nest: Nest) -> bool:
    return isinstance(nest, tuple) and hasattr(nest, "_fields")


def _children(nest: Nest) -> list[tuple[str, Nest]]:
    """Returns each child of a container with what it adds to the path."""
    if _is_namedtuple(nest):
        return [(f".{field}", child) for field, child in zip(nest._fields, nest, strict=True)]
    if isinstance(nest, Mapping):
        return [(f"[{key!r}]", nest[key]) for key in sorted(nest)]
    return [(f"[{index}]", child) for index, child in enumerate(nest)]


def leaves(nest: Nest, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the path and the value of every leaf; None is an empty nesting."""
    if nest is None:
        return
    if not isinstance(nest, (tuple, list, Mapping)):
        yield path, nest
        return
    for step, child in _children(nest):
        yield from leaves(child, path + step)


def flatten(spec: Nest, value: Nest, path: str) -> Iterator[Any]:
    """Yields the leaves of `value`, which must be nested like `spec`.

    Raises:
      InvalidArgumentError: it is not; the message names the place.
    """
    if isinstance(spec, TensorSpec):
        yield value
        return
    if not _same_container(spec, value):
        raise InvalidArgumentError(
            f"argument '{path}': expected {_container_name(spec)}, got {_container_name(value)}"
        )
    if spec is None:
        return
    for (step, child_spec), (_, child) in zip(_children(spec), _children(value), strict=True):
        yield from flatten(child_spec, child, path + step)


def _same_container(spec: Nest, value: Nest) -> bool:
    if spec is None:
        return value is None
    if isinstance(spec, Mapping):
        return isinstance(value, Mapping) and spec.keys() == value.keys()
    if _is_namedtuple(spec):  # An actor need not share the learner's class.
        return _is_namedtuple(value) and spec._fields == value._fields
    return type(spec) is type(value) and len(spec) == len(value)


def _container_name(nest: Nest) -> str:
    if isinstance(nest, Mapping):
        return f"a dict of {sorted(map(str, nest))}"
    if _is_namedtuple(nest):
        return f"a namedtuple of {list(nest._fields)}"
    if isinstance(nest, (tuple, list)):
        return f"a {type(nest).__name__} of {len(nest)}"
    return "None" if nest is None else f"a {type(nest).__name__}"


def pack(spec: Nest, values: Iterator[Any]) -> Nest:
    """Returns a nesting like `spec` with the next `values` as leaves."""
    if spec is None:
        return None
    if isinstance(spec, TensorSpec):
        return next(values)
    if isinstance(spec, Mapping):
        return {key: pack(spec[key], values) for key in sorted(spec)}
    children = [pack(child, values) for child in spec]
    if _is_namedtuple(spec):
        return type(spec)(*children)
    return type(spec)(children)


def method_to_proto(method: Method) -> service_pb2.Method:
    return service_pb2.Method(
        name=method.name,
        arguments=[
            service_pb2.Argument(name=name, structure=_nest_to_proto(nest))
            for name, nest in method.arguments.items()
        ],
        results=_nest_to_proto(method.results),
        max_batch_size=method.max_batch_size or 0,
    )


def method_from_proto(proto: service_pb2.Method) -> Method:
    return Method(
        name=proto.name,
        arguments={
            argument.name: _nest_from_proto(argument.structure) for argument in proto.arguments
        },
        results=_nest_from_proto(proto.results),
        max_batch_size=proto.max_batch_size or None,
    )


def _nest_to_proto(nest: Nest) -> service_pb2.Structure:
    structure = service_pb2.Structure
    if nest is None:
        return structure(kind=structure.NONE)
    if isinstance(nest, TensorSpec):
        shape = [-1 if size is None else size for size in nest.shape]
        spec = service_pb2.TensorSpec(dtype=nest.dtype, shape=shape)
        return structure(kind=structure.TENSOR, tensor=spec)
    children = [_nest_to_proto(child) for _, child in _children(nest)]
    if isinstance(nest, Mapping):
        return structure(kind=structure.DICT, keys=sorted(nest), children=children)
    if _is_namedtuple(nest):
        return structure(
            kind=structure.NAMEDTUPLE,
            type_name=type(nest).__name__,
            keys=nest._fields,
            children=children,
        )
    kind = structure.TUPLE if isinstance(nest, tuple) else structure.LIST
    return structure(kind=kind, children=children)


def _nest_from_proto(proto: service_pb2.Structure) -> Nest:
    if proto.kind == proto.NONE:
        return None
    if proto.kind == proto.TENSOR:
        shape = tuple(None if size < 0 else size for size in proto.tensor.shape)
        return TensorSpec(proto.tensor.dtype, shape)
    children = [_nest_from_proto(child) for child in proto.children]
    if proto.kind == proto.DICT:
        return dict(zip(proto.keys, children, strict=True))
    if proto.kind == proto.NAMEDTUPLE:
        return collections.namedtuple(proto.type_name, list(proto.keys))(*children)
    return tuple(children) if proto.kind == proto.TUPLE else children

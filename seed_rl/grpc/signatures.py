"""From a tf.function to the method that clients see."""

from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from seed_rl.grpc import specs
from seed_rl.grpc.messages import service_pb2


def name(function: Any) -> str:
    """Returns the name of a tf.function. Raises TypeError if it is none."""
    if not isinstance(function, tf.types.experimental.PolymorphicFunction):
        raise TypeError(f"functions: expected a tf.function, got {type(function).__name__}.")
    return function.python_function.__name__


def concrete_function(function: Any) -> Any:
    """Returns the one concrete function of a tf.function that has an input_signature.

    Raises:
      TypeError, ValueError: it is not a tf.function, or has no input_signature.
    """
    function_name = name(function)
    if function.input_signature is None:
        raise ValueError(f"function '{function_name}': expected an input_signature, got none.")
    return function.get_concrete_function()


def method(function: Any, method_name: str, max_batch_size: int | None) -> specs.Method:
    """Returns the method that a tf.function makes.

    Raises:
      TypeError, ValueError: it cannot be served; the message names the argument or the result.
    """
    concrete = concrete_function(function)
    positional, _ = concrete.structured_input_signature
    # Parameters beyond the signature keep their defaults.
    names = list(concrete.function_type.parameters)[: len(function.input_signature)]
    arguments = dict(zip(names, positional, strict=False))
    results = concrete.structured_outputs
    try:
        _check(arguments, results)
        if max_batch_size is not None:
            _check_batched(arguments, results)
    except ValueError as error:
        raise ValueError(f"method '{method_name}': {error}") from None
    return specs.Method(
        name=method_name,
        arguments={argument: _to_specs(nest) for argument, nest in arguments.items()},
        results=_to_specs(results),
        max_batch_size=max_batch_size,
    )


def check_equal(first: specs.Method, other: specs.Method) -> None:
    if specs.method_to_proto(first) != specs.method_to_proto(other):
        raise ValueError(f"method '{first.name}': expected functions with equal signatures.")


def _argument_leaves(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for argument, nest in arguments.items():
        yield from specs.leaves(nest, f"argument {argument}")


def _check(arguments: Mapping[str, Any], results: Any) -> None:
    for path, leaf in (*_argument_leaves(arguments), *specs.leaves(results, "result")):
        if not isinstance(leaf, (tf.Tensor, tf.TensorSpec)):
            raise ValueError(f"{path}: expected a dense tensor, got {type(leaf).__name__}.")
        if leaf.dtype.as_datatype_enum not in service_pb2.DataType.values():
            raise ValueError(f"{path}: tensors of dtype {leaf.dtype.name} cannot be sent.")
        if leaf.shape.rank is None:
            raise ValueError(f"{path}: expected a known rank, got a tensor without one.")


def _check_batched(arguments: Mapping[str, Any], results: Any) -> None:
    argument_leaves = list(_argument_leaves(arguments))
    if not argument_leaves:
        raise ValueError("expected an argument with rows to batch, got none.")
    for path, leaf in (*argument_leaves, *specs.leaves(results, "result")):
        if leaf.shape.rank == 0 or leaf.shape[0] is not None:
            raise ValueError(f"{path}: expected None as leading dimension, got {leaf.shape}.")
    for path, leaf in argument_leaves:  # Rows that are joined have one shape.
        if not leaf.shape[1:].is_fully_defined():
            raise ValueError(f"{path}: expected None only as leading dimension, got {leaf.shape}.")


def _to_specs(nest: Any) -> specs.Nest:
    """Returns the nesting with each tensor or tf.TensorSpec replaced by its TensorSpec."""

    def to_spec(leaf: Any) -> specs.TensorSpec | None:
        if leaf is None:
            return None
        return specs.TensorSpec(leaf.dtype.as_datatype_enum, tuple(leaf.shape.as_list()))

    return tf.nest.map_structure(to_spec, nest)

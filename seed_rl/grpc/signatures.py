"""From a tf.function to the method that clients see."""

from typing import Any

import tensorflow as tf

from seed_rl.grpc import specs
from seed_rl.grpc.messages import service_pb2


def name(function: Any) -> str:
    return function.python_function.__name__


def concrete_function(function: Any) -> Any:
    """Returns the one concrete function of a tf.function that has an input_signature."""
    if not isinstance(function, tf.types.experimental.PolymorphicFunction):
        raise TypeError(f"functions: expected a tf.function, got {type(function).__name__}.")
    if function.input_signature is None:
        raise ValueError(f"function '{name(function)}': expected an input_signature, got none.")
    return function.get_concrete_function()


def method(function: Any, method_name: str, max_batch_size: int | None) -> specs.Method:
    """Returns the method that a concrete function makes.

    Raises:
      ValueError: it cannot be served; the message names the argument or the result.
    """
    positional, _ = function.structured_input_signature
    names = function.function_type.parameters
    described = specs.Method(
        name=method_name,
        arguments={
            argument: _to_specs(nest, f"method '{method_name}': argument '{argument}")
            for argument, nest in zip(names, positional, strict=True)
        },
        results=_to_specs(function.structured_outputs, f"method '{method_name}': result '"),
        max_batch_size=max_batch_size,
    )
    if max_batch_size is not None:
        _check_batched(described)
    return described


def check_equal(first: specs.Method, other: specs.Method) -> None:
    if specs.method_to_proto(first) != specs.method_to_proto(other):
        raise ValueError(f"method '{first.name}': expected functions with equal signatures.")


def _to_specs(nest: Any, path: str) -> specs.Nest:
    """Returns the nesting with each tensor or tf.TensorSpec replaced by its TensorSpec."""
    for leaf_path, leaf in specs.leaves(nest, path):
        _check_leaf(leaf_path, leaf)
    return tf.nest.map_structure(
        lambda leaf: (
            None
            if leaf is None
            else specs.TensorSpec(leaf.dtype.as_datatype_enum, tuple(leaf.shape.as_list()))
        ),
        nest,
    )


def _check_leaf(path: str, leaf: Any) -> None:
    if not isinstance(leaf, (tf.Tensor, tf.TensorSpec)):
        raise ValueError(f"{path}': expected a dense tensor, got {type(leaf).__name__}.")
    if leaf.dtype.as_datatype_enum not in service_pb2.DataType.values():
        raise ValueError(f"{path}': tensors of dtype {leaf.dtype.name} cannot be sent.")
    if leaf.shape.rank is None:
        raise ValueError(f"{path}': expected a known rank, got none.")


def _check_batched(described: specs.Method) -> None:
    arguments = list(specs.leaves(dict(described.arguments)))
    if not arguments:
        raise ValueError(f"method '{described.name}': expected an argument with rows to batch.")
    for path, spec in arguments:
        if spec.shape[:1] != (None,) or None in spec.shape[1:]:
            raise ValueError(
                f"method '{described.name}': argument {path}: expected None for the leading "
                f"dimension and only for that, got {specs.format_shape(spec.shape)}."
            )
    for path, spec in specs.leaves(described.results):
        if spec.shape[:1] != (None,):
            raise ValueError(
                f"method '{described.name}': result {path}: expected None for the leading "
                f"dimension, got {specs.format_shape(spec.shape)}."
            )

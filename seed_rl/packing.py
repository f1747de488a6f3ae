"""Bytes packed into words, for devices that take images badly.

A TPU pads the last dimensions of what it gets to tiles, which makes an 84 x 84 image of bytes
several times larger on the way. One vector of 32-bit words per image loses nothing.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_BYTES_PER_WORD = 4


def pack(structure: Any, spec: Any) -> Any:
    """Packs the uint8 tensors of a structure.

    Args:
      structure: tensors [..., *shape of the spec].
      spec: TensorSpecs of the same structure, without the leading dimensions.

    Returns:
      The structure with every uint8 tensor [..., *shape] as int32 [..., ceil(bytes / 4)].
    """

    def pack_leaf(x: tf.Tensor, leaf: tf.TensorSpec) -> tf.Tensor:
        if leaf.dtype != tf.uint8:
            return x
        x = tf.convert_to_tensor(x)
        outer = tf.shape(x)[: x.shape.rank - leaf.shape.rank]
        size = leaf.shape.num_elements()
        padding = -size % _BYTES_PER_WORD
        rows = tf.pad(tf.reshape(x, [-1, size]), [[0, 0], [0, padding]])
        words = (size + padding) // _BYTES_PER_WORD
        packed = tf.bitcast(tf.reshape(rows, [-1, words, _BYTES_PER_WORD]), tf.int32)
        return tf.reshape(packed, tf.concat([outer, [words]], axis=0))

    return tf.nest.map_structure(pack_leaf, structure, spec)


def unpack(structure: Any, spec: Any) -> Any:
    """The inverse of `pack`, with the same spec."""

    def unpack_leaf(x: tf.Tensor, leaf: tf.TensorSpec) -> tf.Tensor:
        if leaf.dtype != tf.uint8:
            return x
        outer = tf.shape(x)[:-1]
        size = leaf.shape.num_elements()
        rows = tf.reshape(tf.bitcast(x, tf.uint8), [-1, x.shape[-1] * _BYTES_PER_WORD])[:, :size]
        return tf.reshape(rows, tf.concat([outer, leaf.shape], axis=0))

    return tf.nest.map_structure(unpack_leaf, structure, spec)

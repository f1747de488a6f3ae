"""Bytes packed into words and back."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from seed_rl.packing import pack, unpack


@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 3), (5, 2, 2)])
@pytest.mark.parametrize("outer", [(3,), (2, 3)])
def test_unpack_is_the_inverse(shape: tuple[int, ...], outer: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    spec = {"image": tf.TensorSpec(shape, tf.uint8), "reward": tf.TensorSpec([], tf.float32)}
    structure = {
        "image": rng.integers(256, size=outer + shape, dtype=np.uint8),
        "reward": tf.constant(rng.normal(size=outer), tf.float32),
    }
    packed = pack(structure, spec)
    assert packed["image"].dtype == tf.int32
    assert packed["image"].shape == (*outer, -(-int(np.prod(shape)) // 4))
    assert packed["reward"] is structure["reward"]
    unpacked = tf.function(lambda x: unpack(x, spec))(packed)
    tf.nest.map_structure(np.testing.assert_array_equal, unpacked, structure)

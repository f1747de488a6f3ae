"""The papers' torsos: sizes counted by hand, and bfloat16 against float32."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from agents.blocks import torsos

FLOAT32 = tf_keras.mixed_precision.Policy("float32")
BFLOAT16 = tf_keras.mixed_precision.Policy("mixed_bfloat16")


def images(*shape: int) -> tf.Tensor:
    return tf.constant(np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8))


def convolution(kernel: int, inputs: int, outputs: int) -> int:
    return (kernel**2 * inputs + 1) * outputs


def residual_sections(inputs: int, channels: tuple[int, ...], blocks: int) -> int:
    total = 0
    for depth in channels:
        total += convolution(3, inputs, depth) + 2 * blocks * convolution(3, depth, depth)
        inputs = depth
    return total


@pytest.mark.parametrize(
    "make, features, parameters",
    [
        (
            torsos.nature,
            512,
            convolution(8, 4, 32)
            + convolution(4, 32, 64)
            + convolution(3, 64, 64)
            + (7 * 7 * 64 + 1) * 512,
        ),
        (
            torsos.shallow,
            256,
            convolution(8, 4, 16) + convolution(4, 16, 32) + (9 * 9 * 32 + 1) * 256,
        ),
        (
            torsos.deep,
            256,
            residual_sections(4, (16, 32, 32), blocks=2) + (11 * 11 * 32 + 1) * 256,
        ),
    ],
)
def test_sizes_are_the_papers(
    make: Callable[..., torsos.Torso], features: int, parameters: int
) -> None:
    torso = make(FLOAT32)
    assert torso(images(2, 84, 84, 4)).shape == (2, features)
    assert torso.count_params() == parameters


@pytest.mark.parametrize("make", [torsos.nature, torsos.shallow, torsos.deep])
def test_pixels_count_from_0_to_1(make: Callable[..., torsos.Torso]) -> None:
    of_pixels, of_numbers, batch = make(FLOAT32), make(FLOAT32), images(2, 40, 40, 2)
    features, _ = of_pixels(batch), of_numbers(batch / 255)  # Keras casts to the first call's dtype
    of_numbers.set_weights(of_pixels.get_weights())
    np.testing.assert_allclose(of_numbers(batch / 255), features, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("make", [torsos.nature, torsos.shallow, torsos.deep])
def test_bfloat16_is_close_and_keeps_weights_and_features_in_float32(
    make: Callable[..., torsos.Torso],
) -> None:
    exact, rounded = make(FLOAT32), make(BFLOAT16)
    batch = images(2, 40, 40, 2)
    expected, _ = exact(batch), rounded(batch)
    rounded.set_weights(exact.get_weights())
    features = rounded(batch)
    assert features.dtype == tf.float32
    assert {weight.dtype for weight in rounded.weights} == {tf.float32}
    np.testing.assert_allclose(features, expected, atol=0.03 * np.max(expected))
    assert np.any(features != expected)


def test_residual_blocks_start_from_what_they_are_given() -> None:
    """With all of a block's weights zero, what it gets is what it gives."""
    with_blocks, without = (
        torsos.deep(FLOAT32, (8,), blocks=2),
        torsos.deep(FLOAT32, (8,), blocks=0),
    )
    batch = images(1, 16, 16, 1)
    with_blocks(batch), without(batch)
    entry, dense = without.get_weights()[:2], without.get_weights()[2:]
    zeros = [np.zeros_like(weight) for weight in with_blocks.get_weights()[2:-2]]
    with_blocks.set_weights([*entry, *zeros, *dense])
    np.testing.assert_array_equal(with_blocks(batch), without(batch))

"""Image torsos: from uint8 images [N, H, W, C] to float32 features [N, F].

All take a Keras dtype policy, see `dtype_policy`.

Weights of plain stacks of rectified layers start orthogonal with gain sqrt(2) (Saxe et al., arXiv
1312.6120), so that what differs between images reaches the features: under Keras's default, Pong's
ball moves the features of `nature` a tenth as much, and that drowns beside the previous action,
which is a one-hot vector. Residual sums need no gain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import tensorflow as tf
import tf_keras

DTypePolicy: TypeAlias = tf_keras.mixed_precision.Policy


def dtype_policy(compute_dtype: tf.DType) -> DTypePolicy:
    """Products in float32 or bfloat16, weights in float32."""
    mixed = compute_dtype == tf.bfloat16
    return tf_keras.mixed_precision.Policy("mixed_bfloat16" if mixed else "float32")


def _rectified() -> tf_keras.initializers.Initializer:
    return tf_keras.initializers.Orthogonal(2**0.5)


class Torso(tf_keras.Sequential):
    """Runs the layers, flattens, and ends in a rectified dense layer.

    Args:
      layers: from uint8 images to images.
      features: F.
      policy: dtype policy of the dense layer; the layers' own is theirs.
    """

    def __init__(
        self, layers: Sequence[tf_keras.layers.Layer], features: int, policy: DTypePolicy, name: str
    ):
        super().__init__(
            [
                *layers,
                tf_keras.layers.Flatten(dtype=policy),
                tf_keras.layers.Dense(
                    features, "relu", kernel_initializer=_rectified(), dtype=policy
                ),
                tf_keras.layers.Activation("linear", dtype="float32"),
            ],
            name=name,
        )


def nature(policy: DTypePolicy) -> Torso:
    """Mnih et al., "Human-level control through deep RL" (Nature 2015): 512 features."""
    return Torso(_convolutions([(32, 8, 4), (64, 4, 2), (64, 3, 1)], policy), 512, policy, "nature")


def shallow(policy: DTypePolicy) -> Torso:
    """IMPALA's shallow network (arXiv 1802.01561, figure 3 left): 256 features."""
    return Torso(_convolutions([(16, 8, 4), (32, 4, 2)], policy), 256, policy, "shallow")


def deep(policy: DTypePolicy, channels: Sequence[int] = (16, 32, 32), blocks: int = 2) -> Torso:
    """IMPALA's deep residual network (arXiv 1802.01561, figure 3 right): 256 features.

    Args:
      policy: dtype policy.
      channels: of each section: convolution, max pooling, residual blocks.
      blocks: residual blocks in a section.
    """
    sections = [_ResidualSection(depth, blocks, policy) for depth in channels]
    return Torso([*sections, tf_keras.layers.ReLU(dtype=policy)], 256, policy, "deep")


class Convolution(tf_keras.layers.Conv2D):
    """A convolution that sees uint8 images as [0, 1]: it scales the kernel, which is smaller."""

    def convolution_op(self, inputs: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        if inputs.dtype == tf.uint8:
            inputs, kernel = tf.cast(inputs, self.compute_dtype), kernel / 255.0
        return super().convolution_op(inputs, kernel)


def _convolutions(
    shapes: Sequence[tuple[int, int, int]], policy: DTypePolicy
) -> list[tf_keras.layers.Layer]:
    """Rectified convolutions of (channels, kernel size, stride)."""
    return [
        Convolution(
            channels,
            kernel,
            stride,
            activation="relu",
            kernel_initializer=_rectified(),
            dtype=policy,
        )
        for channels, kernel, stride in shapes
    ]


class _ResidualSection(tf_keras.layers.Layer):
    """Convolution, max pooling by 2, then `blocks` times x + conv(relu(conv(relu(x))))."""

    def __init__(self, channels: int, blocks: int, policy: DTypePolicy):
        super().__init__(dtype=policy)

        def convolution() -> Convolution:
            return Convolution(channels, 3, padding="same", dtype=policy)

        self._entry = convolution()
        self._pool = tf_keras.layers.MaxPool2D(3, 2, padding="same", dtype=policy)
        self._blocks = [(convolution(), convolution()) for _ in range(blocks)]

    def call(self, images: tf.Tensor) -> tf.Tensor:
        x = self._pool(self._entry(images))
        for first, second in self._blocks:
            x = x + second(tf.nn.relu(first(tf.nn.relu(x))))
        return x

"""How fast the machine is just now: virtual machines drift by half their speed within minutes.

Taken beside every figure, so that figures of different hours can be compared.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable

import seed_rl  # noqa: F401  (chooses legacy Keras before TensorFlow is imported)

import tensorflow as tf  # isort: skip

COLUMN = "f32 / bf16 / conv GFLOP/s"  # what `str` of a Calibration gives

_SIZE = 1024  # of the square matrices
_IMAGES, _WIDTH, _CHANNELS, _KERNEL = 16, 84, 32, 3
_MIN_REPETITIONS = 5


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Speeds over all cores, each the median of repetitions over a third of a second.

    Attributes:
      product_gflops: of float32 matrices [1024, 1024].
      bfloat16_gflops: of the same in bfloat16; many times as fast where the CPU has AMX.
      convolution_gflops: of 16 float32 images [84, 84, 32] with 32 kernels [3, 3, 32].
    """

    product_gflops: float
    bfloat16_gflops: float
    convolution_gflops: float

    def __str__(self) -> str:
        speeds = (self.product_gflops, self.bfloat16_gflops, self.convolution_gflops)
        return " / ".join(f"{speed:.0f}" for speed in speeds)


def measure(seconds: float = 1.0) -> Calibration:
    """Takes about that long, and a moment more the first time in a process."""
    share = seconds / 3
    matrix = tf.random.stateless_normal([_SIZE, _SIZE], seed=(0, 0))
    small = tf.cast(matrix, tf.bfloat16)
    images = tf.random.stateless_normal([_IMAGES, _WIDTH, _WIDTH, _CHANNELS], seed=(0, 1))
    kernels = tf.random.stateless_normal([_KERNEL, _KERNEL, _CHANNELS, _CHANNELS], seed=(0, 2))
    product_flops = 2 * _SIZE**3
    convolution_flops = 2 * _IMAGES * _WIDTH**2 * _KERNEL**2 * _CHANNELS**2
    return Calibration(
        _gflops(lambda: tf.matmul(matrix, matrix), product_flops, share),
        _gflops(lambda: tf.matmul(small, small), product_flops, share),
        _gflops(lambda: tf.nn.conv2d(images, kernels, 1, "SAME"), convolution_flops, share),
    )


def _gflops(run: Callable[[], tf.Tensor], flops: float, seconds: float) -> float:
    """The speed of eager operations on the CPU that together take so many operations."""
    with tf.device("/cpu:0"):
        run()  # allocates and picks kernels
        times: list[float] = []
        end = time.monotonic() + seconds
        while len(times) < _MIN_REPETITIONS or time.monotonic() < end:
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
    return flops / statistics.median(times) / 1e9

"""What --precision means on this machine."""

from __future__ import annotations

import tensorflow as tf

from seed_rl.machine import cpu_features

# Instruction sets with products of bfloat16: two of x86, one of ARM.
_CPU_FEATURES = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
_GPU_CAPABILITY = (8, 0)  # Ampere


def compute_dtype(precision: str) -> tf.DType:
    """The dtype of matrix products and convolutions: float32 or bfloat16.

    Args:
      precision: "float32", "bfloat16", or "auto": bfloat16 where the hardware multiplies it and so
        gains from it, by the TPU, else the GPUs, else the processor.
    """
    if precision != "auto":
        return tf.as_dtype(precision)
    return tf.bfloat16 if _multiplies_bfloat16() else tf.float32


def _multiplies_bfloat16() -> bool:
    if tf.config.list_physical_devices("TPU"):
        return True
    if gpus := tf.config.list_physical_devices("GPU"):
        details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus]
        return all(gpu.get("compute_capability", (0, 0)) >= _GPU_CAPABILITY for gpu in details)
    return not _CPU_FEATURES.isdisjoint(cpu_features())

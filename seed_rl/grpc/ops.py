"""The compiled ops behind `Server`, loaded only if they belong to these sources and this
environment."""

import ctypes
import os
from typing import Any

import tensorflow as tf

from seed_rl.grpc import build

# DEEPBIND: it must find the gRPC that it was linked with before TensorFlow's own.
_TRANSPORT_FLAGS = os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND


def _load() -> Any:
    build.require_current()
    try:
        ctypes.CDLL(str(build.SOURCE_DIR / build.TRANSPORT_LIBRARY), _TRANSPORT_FLAGS)
        return tf.load_op_library(str(build.SOURCE_DIR / build.OPS_LIBRARY))
    except (OSError, tf.errors.OpError) as error:
        raise ImportError(
            f"seed_rl.grpc cannot be loaded ({error}): run ./setup.sh in the repository's root."
        ) from None


library: Any = _load()

"""The compiled ops behind `Server`, loaded only if they belong to these sources and this
environment."""

from typing import Any

import tensorflow as tf

from seed_rl.grpc import build

build.require_current()
library: Any = tf.load_op_library(str(build.SOURCE_DIR / build.OPS_LIBRARY))

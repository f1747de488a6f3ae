"""SEED RL: distributed deep reinforcement learning with central inference."""

import os

# TF-Agents' networks and this project's need legacy Keras: under Keras 3 a tf.Module does not find
# the variables of the layers it holds. TensorFlow reads the variable when it is first imported.
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
# Warnings and errors are enough of TensorFlow's own log.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

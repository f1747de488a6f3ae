"""The Atari networks on real frames."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from agents.blocks import torsos
from atari.env import AtariSettings, make_environments

SEEDS = 3  # of initial weights


@pytest.fixture(scope="module")
def pong() -> np.ndarray:
    """Frames of Pong at random play as unstacked images: uint8 [N, 84, 84, 1]."""
    env = make_environments(AtariSettings(), [1])
    rng = np.random.default_rng(0)
    env.reset()
    frames = [env.step(rng.integers(0, 6, 1, np.int32)).observation[0] for _ in range(300)]
    env.close()
    return np.stack(frames)[60:, :, :, np.newaxis]


@pytest.mark.parametrize("torso", [torsos.nature, torsos.shallow, torsos.deep])
def test_what_moves_in_pong_reaches_the_features_of_an_untrained_torso(torso, pong) -> None:
    # Beside them go the previous action, a one-hot vector, and the reward. With Keras's default
    # weights ball and paddles move nature's features by about 0.02, and V-trace did not learn Pong.
    moved = []
    for seed in range(SEEDS):
        tf_keras.utils.set_random_seed(seed)
        features = torso(tf_keras.mixed_precision.Policy("float32"))(pong)
        centred = features - tf.reduce_mean(features, axis=0)
        moved.append(tf.reduce_mean(tf.norm(centred, axis=-1)).numpy())
    assert np.mean(moved) > 0.1

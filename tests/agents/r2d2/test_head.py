"""The dueling head."""

import numpy as np
import tensorflow as tf

from agents.r2d2.head import DuelingHead


def test_advantages_have_no_say_in_the_mean() -> None:
    head = DuelingHead(num_actions=4, hidden=16)
    features = tf.random.stateless_normal([5, 2, 7], seed=[0, 0])
    q_values = head(features)
    assert q_values.shape == (5, 2, 4)
    before = tf.reduce_mean(q_values, axis=-1)
    advantage_outputs = [v for v in head.trainable_variables if v.shape[-1] == 4]
    assert len(advantage_outputs) == 2  # kernel and bias
    for variable in advantage_outputs:
        variable.assign(2.0 * variable + 1.0)
    after = head(features)
    np.testing.assert_allclose(tf.reduce_mean(after, axis=-1), before, atol=1e-5)
    assert np.any(np.abs(after - q_values) > 0.1)

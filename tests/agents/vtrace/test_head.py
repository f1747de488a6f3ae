"""The actor-critic head."""

import tensorflow as tf

from agents.vtrace.head import ActorCriticHead


def test_logits_per_action_and_one_value() -> None:
    output = ActorCriticHead(num_actions=4)(tf.ones([5, 2, 7]))
    assert output.policy_logits.shape == (5, 2, 4)
    assert output.value.shape == (5, 2)

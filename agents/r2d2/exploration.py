"""Epsilon-greedy, an epsilon per environment: Horgan et al. (arXiv 1803.00933), section 4."""

from __future__ import annotations

import numpy as np
import tensorflow as tf


def epsilons(
    num_training_envs: int, num_eval_envs: int, base: float, eval_epsilon: float
) -> np.ndarray:
    """Epsilon of every environment: float32 [num_training_envs + num_eval_envs].

    Training environment i of N has base^(1 + 7 i / (N - 1)), and base if N is 1; evaluation
    environments, which have the last ids, have eval_epsilon.
    """
    fractions = np.arange(num_training_envs) / max(1, num_training_envs - 1)
    training = base ** (1.0 + 7.0 * fractions)
    return np.concatenate([training, np.full(num_eval_envs, eval_epsilon)]).astype(np.float32)


def epsilon_greedy(q_values: tf.Tensor, epsilon: tf.Tensor) -> tf.Tensor:
    """Actions int32 [B]: the argmax of q_values [B, A]; a uniform one with chance epsilon [B]."""
    batch_size, num_actions = tf.shape(q_values)[0], q_values.shape[-1]
    greedy = tf.argmax(q_values, axis=-1, output_type=tf.int32)
    uniform = tf.random.uniform([batch_size], maxval=num_actions, dtype=tf.int32)
    return tf.where(tf.random.uniform([batch_size]) < epsilon, uniform, greedy)

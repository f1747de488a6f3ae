"""The targets and priorities of R2D2 (Kapturowski et al., ICLR 2019)."""

from __future__ import annotations

import tensorflow as tf


def rescale(x: tf.Tensor, epsilon: float) -> tf.Tensor:
    """h(x) = sign(x) (sqrt(|x| + 1) - 1) + epsilon x (arXiv 1805.11593, section 3.1)."""
    return tf.sign(x) * (tf.sqrt(tf.abs(x) + 1.0) - 1.0) + epsilon * x


def unscale(x: tf.Tensor, epsilon: float) -> tf.Tensor:
    """The inverse of `rescale` (proposition A.2 there).

    With s = sqrt(1 + 4 epsilon (|x| + 1 + epsilon)), the closed form's (s - 1) / (2 epsilon) loses
    its digits in float32; the equal 2 (|x| + 1 + epsilon) / (s + 1) does not.
    """
    shifted = tf.abs(x) + 1.0 + epsilon
    root = 2.0 * shifted / (tf.sqrt(1.0 + 4.0 * epsilon * shifted) + 1.0)
    return tf.sign(x) * (tf.square(root) - 1.0)


def n_step_returns(
    rewards: tf.Tensor, discounts: tf.Tensor, values: tf.Tensor, is_last: tf.Tensor, n_steps: int
) -> tf.Tensor:
    """n-step returns G_t = r_t + discount_t r_{t+1} + ... + (discounts) V(x_{t+n}), as R2D2's
    equation 1.

    A return never crosses the end of an episode, nor the end of the sequence: it then has fewer
    rewards and is bootstrapped from the value of the last step it may use. (A termination is in
    the discounts; that of a truncated episode is 1, and its final observation's value counts.)

    Args:
      rewards: float32 [T, B], reward for the action at t.
      discounts: float32 [T, B], discount after the action at t.
      values: float32 [T + 1, B], V(x_t).
      is_last: bool [T, B], whether t is the last step of its episode; the return there is just
        V(x_t).
      n_steps: n.

    Returns:
      float32 [T, B].
    """
    tf.debugging.assert_shapes(
        [(rewards, ("T", "B")), (discounts, ("T", "B")), (is_last, ("T", "B"))],
        message="n_step_returns",
    )
    # After k rounds `returns` holds the k-step returns of all steps, each made from its
    # successor's k - 1.
    returns = values
    for _ in range(n_steps):
        longer = tf.where(is_last, values[:-1], rewards + discounts * returns[1:])
        returns = tf.concat([longer, values[-1:]], axis=0)
    return returns[:-1]


def select(q_values: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
    """The values [...] of the actions int32 [...] in q_values [..., A]."""
    return tf.gather(q_values, actions, batch_dims=actions.shape.rank)


def sequence_priorities(td_errors: tf.Tensor, valid: tf.Tensor, eta: float) -> tf.Tensor:
    """eta max_t |td_t| + (1 - eta) mean_t |td_t| over the valid steps (R2D2, section 2.3): float32
    [B].

    Args:
      td_errors: float32 [T, B].
      valid: float32 [T, B], 1 where the step counts, else 0.
      eta: weight of the maximum.
    """
    magnitudes = valid * tf.abs(td_errors)
    mean = tf.math.divide_no_nan(tf.reduce_sum(magnitudes, axis=0), tf.reduce_sum(valid, axis=0))
    return eta * tf.reduce_max(magnitudes, axis=0) + (1.0 - eta) * mean

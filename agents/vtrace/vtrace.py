"""V-trace targets: Espeholt et al., "IMPALA" (arXiv 1802.01561), section 4.1."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf


class VTraceReturns(NamedTuple):
    """Targets for both heads; no gradient flows through them.

    Attributes:
      targets: float32 [T, B], v_t of equation 1, what the value of step t is regressed to.
      advantages: float32 [T, B], rho_t (r_t + discount_t v_{t+1} - V(x_t)), what weighs the policy
        gradient.
    """

    targets: tf.Tensor
    advantages: tf.Tensor


def vtrace_returns(
    log_rhos: tf.Tensor,
    rewards: tf.Tensor,
    discounts: tf.Tensor,
    values: tf.Tensor,
    bootstrap_value: tf.Tensor,
    valid: tf.Tensor,
    lambda_: float = 1.0,
    clip_rho: float = 1.0,
    clip_advantage_rho: float = 1.0,
) -> VTraceReturns:
    """V-trace targets and policy-gradient advantages (IMPALA, equation 1 and section 4.2).

    With the temporal difference delta_t = min(clip_rho, rho_t) (r_t + discount_t V_{t+1} - V_t)
    and the trace c_t = lambda min(1, rho_t), targets obey (remark 1)

        v_t - V_t = delta_t + discount_t c_t (v_{t+1} - V_{t+1}).

    A transition that is not experience (from LAST to FIRST) has valid_t = 0: its delta and trace
    are 0, so v_t = V_t and a truncated episode is bootstrapped from the value of its final
    observation.

    Args:
      log_rhos: float32 [T, B], log of target over behaviour probability of the action at t.
      rewards: float32 [T, B], reward for the action at t.
      discounts: float32 [T, B], discount after the action at t.
      values: float32 [T, B], V(x_t).
      bootstrap_value: float32 [B], V(x_T).
      valid: float32 [T, B], 1 where the transition from t to t + 1 is experience, else 0.
      lambda_: mixes n-step returns, as in TD(lambda).
      clip_rho: rho-bar of equation 1, which decides the fixed point.
      clip_advantage_rho: the same for the advantages.
    """
    for name, tensor in dict(
        rewards=rewards, discounts=discounts, values=values, valid=valid
    ).items():
        tf.debugging.assert_shapes([(log_rhos, ("T", "B")), (tensor, ("T", "B"))], message=name)
    tf.debugging.assert_shapes(
        [(log_rhos, ("T", "B")), (bootstrap_value, ("B",))], message="bootstrap_value"
    )

    rhos = tf.exp(log_rhos)
    next_values = tf.concat([values[1:], bootstrap_value[tf.newaxis]], axis=0)
    deltas = valid * tf.minimum(clip_rho, rhos) * (rewards + discounts * next_values - values)
    traces = valid * discounts * lambda_ * tf.minimum(1.0, rhos)
    corrections = tf.scan(
        lambda later, now: now[0] + now[1] * later,
        (deltas, traces),
        initializer=tf.zeros_like(bootstrap_value),
        reverse=True,
    )
    targets = values + corrections
    next_targets = tf.concat([targets[1:], bootstrap_value[tf.newaxis]], axis=0)
    advantages = (
        valid * tf.minimum(clip_advantage_rho, rhos) * (rewards + discounts * next_targets - values)
    )
    return VTraceReturns(tf.stop_gradient(targets), tf.stop_gradient(advantages))

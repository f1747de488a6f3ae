"""The V-trace actor-critic of IMPALA (arXiv 1802.01561), as in SEED RL (arXiv 1910.06591)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from agents.blocks.rewards import clip_rewards
from agents.vtrace.settings import VTraceSettings
from agents.vtrace.vtrace import vtrace_returns
from seed_rl.algorithm import Algorithm, LossOutput
from seed_rl.network import Network, run_one_step
from seed_rl.trajectories import PolicyStep, TimeStep, Unroll, experience_mask


class ActorCriticOutput(NamedTuple):
    """What a network for V-trace returns.

    Attributes:
      policy_logits: float32 [T, B, A].
      value: float32 [T, B].
    """

    policy_logits: tf.Tensor
    value: tf.Tensor


class VTrace(Algorithm):
    """Off-policy actor-critic whose networks return an ActorCriticOutput."""

    overlap = 1  # an unroll's last step only bootstraps; it is the next unroll's first

    def __init__(
        self, create_network: Callable[[], Network], num_actions: int, settings: VTraceSettings
    ):
        super().__init__(create_network)
        self._settings = settings
        self.steps_per_unroll = settings.unroll_length + 1
        self.policy_info_spec = tf.TensorSpec([num_actions], tf.float32, "policy_logits")
        self._entropy_cost = _EntropyCost(settings)

    @property
    def trained_variables(self) -> Sequence[tf.Variable]:
        return (*self.network.trainable_variables, *self._entropy_cost.trainable_variables)

    def act(
        self,
        network: Network,
        time_step: TimeStep,
        previous_action: tf.Tensor,
        state: Any,
        env_ids: tf.Tensor | None = None,
    ) -> PolicyStep:
        del env_ids  # the same policy everywhere
        output, state = run_one_step(network, time_step, previous_action, state)
        logits = output.policy_logits
        action = tf.random.categorical(logits, 1, dtype=tf.int32)[:, 0]
        return PolicyStep(action, state, logits)

    def loss(self, unrolls: Unroll) -> LossOutput:
        """Policy-gradient, value, entropy and KL losses, each a mean over the T transitions."""
        settings = self._settings
        output, _ = self.network(unrolls.time_step, unrolls.previous_action, unrolls.initial_state)
        logits, behaviour_logits = output.policy_logits[:-1], unrolls.policy_info[:-1]
        actions = unrolls.action[:-1]
        log_probs = _log_prob(logits, actions)
        valid = experience_mask(unrolls.time_step.step_type)

        returns = vtrace_returns(
            log_rhos=tf.stop_gradient(log_probs) - _log_prob(behaviour_logits, actions),
            rewards=clip_rewards(unrolls.time_step.reward[1:], settings.max_abs_reward),
            discounts=settings.discounting * unrolls.time_step.discount[1:],
            values=tf.stop_gradient(output.value[:-1]),
            bootstrap_value=tf.stop_gradient(output.value[-1]),
            valid=valid,
            lambda_=settings.lambda_,
        )
        losses = {
            "policy": -log_probs * returns.advantages,
            "value": settings.baseline_cost * 0.5 * tf.square(returns.targets - output.value[:-1]),
            "kl": settings.kl_cost * _kl(behaviour_logits, logits),
        }
        losses = {name: tf.reduce_mean(valid * loss, axis=0) for name, loss in losses.items()}
        entropy = tf.reduce_mean(valid * _entropy(logits), axis=0)
        losses["entropy"] = self._entropy_cost.loss(entropy, tf.reduce_mean(valid, axis=0))

        metrics = {f"loss/{name}": tf.reduce_mean(loss) for name, loss in losses.items()}
        metrics["policy/entropy"] = tf.math.divide_no_nan(
            tf.reduce_mean(entropy), tf.reduce_mean(valid)
        )
        metrics["policy/entropy_cost"] = self._entropy_cost.value()
        metrics["policy/advantage"] = tf.reduce_mean(returns.advantages)
        metrics["value/mean"] = tf.reduce_mean(output.value)
        return LossOutput(tf.add_n(list(losses.values())), (), metrics)


class _EntropyCost(tf.Module):
    """The entropy bonus's weight: constant, or adapted to hold a target entropy.

    The adapted weight is exp(speed * x) with a trained x whose gradient is positive while the
    entropy is above the target, and negative below it.
    """

    def __init__(self, settings: VTraceSettings):
        super().__init__()
        self._target = settings.target_entropy
        self._constant = settings.entropy_cost
        self._speed = settings.entropy_cost_adjustment_speed
        if self._target is not None:
            initial = tf.math.log(max(settings.entropy_cost, 1e-20)) / self._speed
            self._log_cost = tf.Variable(initial, name="log_entropy_cost", dtype=tf.float32)

    def value(self) -> tf.Tensor:
        if self._target is None:
            return tf.constant(self._constant)
        return tf.exp(self._speed * self._log_cost)

    def loss(self, entropy: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
        """Losses [B] of masked mean entropies [B], where `valid` [B] is the fraction not masked."""
        bonus = -tf.stop_gradient(self.value()) * entropy
        if self._target is None:
            return bonus
        return bonus + self.value() * tf.stop_gradient(entropy - valid * self._target)


def _log_prob(logits: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
    return -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=actions, logits=logits)


def _entropy(logits: tf.Tensor) -> tf.Tensor:
    return -tf.reduce_sum(tf.nn.softmax(logits) * tf.nn.log_softmax(logits), axis=-1)


def _kl(p_logits: tf.Tensor, q_logits: tf.Tensor) -> tf.Tensor:
    """KL(p || q) over the last dimension."""
    log_ratio = tf.nn.log_softmax(p_logits) - tf.nn.log_softmax(q_logits)
    return tf.reduce_sum(tf.nn.softmax(p_logits) * log_ratio, axis=-1)

"""R2D2: recurrent Q-learning from prioritized replay (Kapturowski et al., ICLR 2019)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from agents.blocks.rewards import clip_rewards
from agents.r2d2 import returns
from agents.r2d2.exploration import epsilon_greedy, epsilons
from agents.r2d2.settings import R2D2Settings
from seed_rl.algorithm import Algorithm, LossOutput
from seed_rl.network import Network, copy_weights, run_one_step
from seed_rl.trajectories import (
    PolicyStep,
    StepType,
    TimeStep,
    Unroll,
    experience_mask,
    transpose_time,
)


class ActingValues(NamedTuple):
    """What acting already knows of the values, so that initial priorities need no second forward
    pass.

    Attributes:
      chosen: float32 [...], Q of the action taken.
      greatest: float32 [...], the largest Q.
    """

    chosen: tf.Tensor
    greatest: tf.Tensor


class R2D2(Algorithm):
    """Q-learning whose networks return Q values float32 [T, B, A].

    A sequence has burn_in + T + 1 steps: the burn-in, the T trained transitions and the step that
    bootstraps. Consecutive ones overlap by burn_in + 1, so that each transition is trained in one
    of them.
    """

    def __init__(
        self,
        create_network: Callable[[], Network],
        num_training_envs: int,
        num_eval_envs: int,
        settings: R2D2Settings,
    ):
        super().__init__(create_network)
        self._settings = settings
        self._epsilons = epsilons(
            num_training_envs, num_eval_envs, settings.exploration_epsilon, settings.eval_epsilon
        )
        self.steps_per_unroll = settings.burn_in + settings.unroll_length + 1
        self.overlap = settings.burn_in + 1
        self.policy_info_spec = ActingValues(
            tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.float32)
        )
        self.target_network = create_network()
        self._update_target()

    def act(
        self,
        network: Network,
        time_step: TimeStep,
        previous_action: tf.Tensor,
        state: Any,
        env_ids: tf.Tensor | None = None,
    ) -> PolicyStep:
        q_values, state = run_one_step(network, time_step, previous_action, state)
        if env_ids is None:
            action = tf.argmax(q_values, axis=-1, output_type=tf.int32)
        else:
            action = epsilon_greedy(q_values, tf.gather(self._epsilons, env_ids))
        values = ActingValues(returns.select(q_values, action), tf.reduce_max(q_values, axis=-1))
        return PolicyStep(action, state, values)

    def loss(self, unrolls: Unroll) -> LossOutput:
        """Half the squared TD errors of the n-step double Q targets, summed over the sequence."""
        q_values = self._burned_in_q_values(self.network, unrolls)
        target_q_values = self._burned_in_q_values(self.target_network, unrolls)
        trained = self._without_burn_in(unrolls)
        valid = experience_mask(trained.time_step.step_type)

        greedy = tf.argmax(q_values, axis=-1, output_type=tf.int32)
        targets = self._targets(trained.time_step, returns.select(target_q_values, greedy))
        chosen = returns.select(q_values[:-1], trained.action[:-1])
        td_errors = valid * (tf.stop_gradient(targets) - chosen)

        metrics = {
            "td_error/mean_abs": tf.reduce_mean(tf.abs(td_errors)),
            "q/mean": tf.reduce_mean(q_values),
            "q/max": tf.reduce_max(q_values),
        }
        priorities = returns.sequence_priorities(td_errors, valid, self._settings.priority_eta)
        return LossOutput(tf.reduce_sum(0.5 * tf.square(td_errors), axis=0), priorities, metrics)

    def initial_priorities(self, unrolls: Unroll) -> tf.Tensor:
        """From the values that acting computed, online network on both sides (Ape-X, section 3)."""
        trained = self._without_burn_in(transpose_time(unrolls))
        valid = experience_mask(trained.time_step.step_type)
        targets = self._targets(trained.time_step, trained.policy_info.greatest)
        td_errors = targets - trained.policy_info.chosen[:-1]
        return returns.sequence_priorities(td_errors, valid, self._settings.priority_eta)

    def after_update(self, training_step: int) -> None:
        if training_step % self._settings.update_target_every_n_step == 0:
            self._update_target()

    @tf.function(autograph=False)
    def _update_target(self) -> None:
        copy_weights(self.network, self.target_network)

    def _targets(self, time_step: TimeStep, values: tf.Tensor) -> tf.Tensor:
        """Rescaled n-step targets [T, B] from rescaled bootstrap values [T + 1, B]."""
        settings = self._settings
        epsilon = settings.value_function_rescaling_epsilon
        n_step = returns.n_step_returns(
            rewards=clip_rewards(time_step.reward[1:], settings.max_abs_reward),
            discounts=settings.discounting * time_step.discount[1:],
            values=returns.unscale(values, epsilon),
            is_last=time_step.step_type[:-1] == StepType.LAST,
            n_steps=settings.n_steps,
        )
        return returns.rescale(n_step, epsilon)

    def _burned_in_q_values(self, network: Network, unrolls: Unroll) -> tf.Tensor:
        """Q values [T + 1, B, A] after the burn-in, through which no gradient flows."""
        state = unrolls.initial_state
        if self._settings.burn_in:
            burn_in = self._steps(unrolls, slice(0, self._settings.burn_in))
            _, state = network(burn_in.time_step, burn_in.previous_action, state)
            state = tf.nest.map_structure(tf.stop_gradient, state)
        trained = self._without_burn_in(unrolls)
        q_values, _ = network(trained.time_step, trained.previous_action, state)
        return q_values

    def _without_burn_in(self, unrolls: Unroll) -> Unroll:
        return self._steps(unrolls, slice(self._settings.burn_in, None))

    @staticmethod
    def _steps(unrolls: Unroll, steps: slice) -> Unroll:
        """Some of the time steps, without the initial state, which belongs to the first."""
        timed = unrolls._replace(initial_state=())
        return tf.nest.map_structure(lambda x: x[steps], timed)

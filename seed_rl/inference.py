"""Central inference: the function that actors call with observations and that answers with actions.

actors -> [run ids] -> [state, previous action] -> network -> action -> actors
                               |                      |
                    episode statistics          unroll store -> queue of unrolls -> training
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from seed_rl.algorithm import Algorithm
from seed_rl.episodes import EpisodeStatistics
from seed_rl.network import Network
from seed_rl.queues import StructuredQueue
from seed_rl.trajectories import (
    EnvironmentStep,
    PolicyStep,
    TimeStep,
    Unroll,
    environment_step_spec,
    time_step_spec,
)
from seed_rl.types import EnvironmentSpec
from seed_rl.unrolls import EnvironmentTable, UnrollStore

_HOST = "/cpu:0"

Policy = Callable[[TimeStep, tf.Tensor, Any, tf.Tensor], PolicyStep]


def unroll_step_spec(algorithm: Algorithm, spec: EnvironmentSpec) -> Unroll:
    """TensorSpecs of one step of an unroll."""
    state = algorithm.network.initial_state(1)
    return Unroll(
        initial_state=tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape[1:], x.dtype), state),
        time_step=time_step_spec(spec),
        previous_action=tf.TensorSpec([], tf.int32),
        action=tf.TensorSpec([], tf.int32),
        policy_info=algorithm.policy_info_spec,
        policy_version=tf.TensorSpec([], tf.int64),
    )


def unroll_spec(algorithm: Algorithm, spec: EnvironmentSpec) -> Unroll:
    """TensorSpecs of an unroll: [steps_per_unroll, ...] but for the initial state."""
    step = unroll_step_spec(algorithm, spec)
    timed = tf.nest.map_structure(
        lambda leaf: tf.TensorSpec([algorithm.steps_per_unroll, *leaf.shape], leaf.dtype),
        step._replace(initial_state=()),
    )
    return timed._replace(initial_state=step.initial_state)


class CentralInference(tf.Module):
    """The state of every environment, on the host, and the functions that advance it.

    Environments with ids from num_training_envs on are for evaluation: they act and are counted in
    the statistics, but their steps reach no unroll.

    Args:
      algorithm: says how unrolls are cut and what is stored with each action.
      spec: of the environments.
      num_training_envs, num_eval_envs: how many there are of each kind.
      queue_capacity: completed unrolls that may wait.

    Attributes:
      unrolls: queue of completed unrolls. While it is full, actors wait.
      episodes: statistics.
      steps: int64 variable, actions that took effect in training environments (all time steps but
        FIRST).
      policy_version: int64 variable, the training step whose weights the policies have. Who gives
        them weights sets it.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        spec: EnvironmentSpec,
        num_training_envs: int,
        num_eval_envs: int,
        queue_capacity: int,
    ):
        super().__init__()
        self._spec = spec
        self._num_training_envs = num_training_envs
        step_spec = unroll_step_spec(algorithm, spec)
        self._num_envs = num_training_envs + num_eval_envs
        rows = self._num_envs + 1  # one to spare, see _redirect
        with tf.device(_HOST):
            self._run_ids = EnvironmentTable(tf.TensorSpec([], tf.int64), rows)
            self._state = EnvironmentTable(step_spec.initial_state, rows)
            self._action = EnvironmentTable(tf.TensorSpec([], tf.int32), rows)
            self._store = UnrollStore(
                step_spec, num_training_envs, algorithm.steps_per_unroll, algorithm.overlap
            )
            self.unrolls = StructuredQueue(unroll_spec(algorithm, spec), queue_capacity)
            self.episodes = EpisodeStatistics(self._num_envs, spec.has_score)
            self.steps = tf.Variable(0, dtype=tf.int64, trainable=False, name="environment_steps")
            self.policy_version = tf.Variable(0, dtype=tf.int64, trainable=False)
            self._load = tf.Variable([0, 0], dtype=tf.int64, trainable=False)  # batches, rows
            self._batch_size = 0.0

    def make_function(self, policy: Policy) -> tf.function:
        """The function to bind for one inference device.

        Args:
          policy: from time steps [N, ...], previous actions [N], states [N, ...] and environment
            ids [N] to a PolicyStep; it runs the device's copy of the network.

        Returns:
          A tf.function (env_ids int32 [N], run_ids int64 [N], EnvironmentStep [N, ...]) -> actions
          int32 [N]. A run id that is new for an environment says that its actor has started afresh.
        """

        @tf.function(
            input_signature=(
                tf.TensorSpec([None], tf.int32, "env_ids"),
                tf.TensorSpec([None], tf.int64, "run_ids"),
                environment_step_spec(self._spec, outer_dims=(None,)),
            ),
            autograph=False,
        )
        def inference(
            env_ids: tf.Tensor, run_ids: tf.Tensor, time_step: EnvironmentStep
        ) -> tf.Tensor:
            *fields, score = time_step
            with tf.device(_HOST):  # the policy alone leaves it
                return self._advance(policy, env_ids, run_ids, TimeStep(*fields), score)

        return inference

    def take_batch_size(self) -> float:
        """Mean rows of the inference batches since the last call; without any, its answer again."""
        batches, rows = load = self._load.numpy()
        self._load.assign_sub(load)
        if batches:
            self._batch_size = float(rows / batches)
        return self._batch_size

    def _advance(
        self,
        policy: Policy,
        env_ids: tf.Tensor,
        run_ids: tf.Tensor,
        time_step: TimeStep,
        score: Any,
    ) -> tf.Tensor:
        """Takes one time step of some environments; returns their actions."""
        self._load.assign_add([1, tf.size(env_ids, tf.int64)])
        env_ids = self._redirect(env_ids)
        is_new_run = self._run_ids.read(env_ids) != run_ids
        self._run_ids.write(env_ids, run_ids)
        state = _zero_where(is_new_run, self._state.read(env_ids))
        previous_action = _zero_where(is_new_run | time_step.is_first(), self._action.read(env_ids))

        acting_ids = tf.minimum(env_ids, self._num_envs - 1)
        policy_step = policy(time_step, previous_action, state, acting_ids)

        self._state.write(env_ids, policy_step.state)
        self._action.write(env_ids, policy_step.action)
        self.episodes.update(env_ids, is_new_run, time_step, score)
        step = Unroll(
            initial_state=state,
            time_step=time_step,
            previous_action=previous_action,
            action=policy_step.action,
            policy_info=policy_step.info,
            policy_version=tf.fill(tf.shape(env_ids), self.policy_version),
        )
        self._record(env_ids, is_new_run, step)
        return policy_step.action

    def _redirect(self, env_ids: tf.Tensor) -> tf.Tensor:
        """Sends rows that must leave no trace to a spare environment, with the id num_envs.

        They are rows with an id that does not exist, and those of an actor that was killed while it
        waited in a batch which its successor then joined: of several rows the last one counts.
        """
        exists = (env_ids >= 0) & (env_ids < self._num_envs)
        count = tf.size(env_ids)
        is_same = tf.equal(env_ids[:, tf.newaxis], env_ids[tf.newaxis, :])
        is_later = ~tf.sequence_mask(tf.range(1, count + 1), count)
        is_replaced = tf.reduce_any(is_same & is_later, axis=1)
        return tf.where(exists & ~is_replaced, env_ids, self._num_envs)

    def _record(self, env_ids: tf.Tensor, is_new_run: tf.Tensor, step: Unroll) -> None:
        """Adds training environments' steps to their unrolls and queues what this completes."""
        is_training = env_ids < self._num_training_envs
        rows = (env_ids, is_new_run, step)
        env_ids, is_new_run, step = tf.cond(
            tf.reduce_all(is_training),
            lambda: rows,
            lambda: tf.nest.map_structure(lambda x: tf.boolean_mask(x, is_training), rows),
        )
        self.steps.assign_add(tf.math.count_nonzero(~step.time_step.is_first()))
        self.unrolls.enqueue_many(self._store.append(env_ids, is_new_run, step))


def _zero_where(mask: tf.Tensor, structure: Any) -> Any:
    """Zeros the rows of tensors [N, ...] in which mask bool [N] is set."""

    def zero(x: tf.Tensor) -> tf.Tensor:
        return tf.where(tf.reshape(mask, [-1] + [1] * (x.shape.rank - 1)), tf.zeros_like(x), x)

    return tf.nest.map_structure(zero, structure)


def network_policy(algorithm: Algorithm, network: Network) -> Policy:
    """The algorithm's behaviour policy with a given copy of the network."""
    return lambda time_step, previous_action, state, env_ids: algorithm.act(
        network, time_step, previous_action, state, env_ids
    )

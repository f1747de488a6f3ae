"""Time steps, policy steps and unrolls as tensors: the one place that knows TF-Agents' types.

Notation of all shapes: B batch or environments, T time, A actions. Inside losses and networks
tensors are time-major [T, B, ...]; tables, queues and replays are batch-major [B, T, ...].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf
from tf_agents.trajectories.policy_step import PolicyStep
from tf_agents.trajectories.time_step import StepType, TimeStep

from seed_rl.types import ArraySpec, EnvironmentSpec
from seed_rl.types import TimeStep as EnvironmentStep

__all__ = [
    "EnvironmentStep",
    "PolicyStep",
    "StepType",
    "TimeStep",
    "Unroll",
    "environment_step_spec",
    "experience_mask",
    "merge_outer",
    "time_step_spec",
    "transpose_time",
    "zeros_like_spec",
]


class Unroll(NamedTuple):
    """Consecutive time steps of one environment and what the behaviour policy did in them.

    All but `initial_state` have a time dimension.

    Attributes:
      initial_state: the network's state before the first time step.
      time_step: TimeStep.
      previous_action: int32, the action before each time step; 0 at FIRST.
      action: int32, the action taken on each time step.
      policy_info: what the algorithm stored with each action (structure of its `policy_info_spec`).
      policy_version: int64, the training step whose weights chose each action.
    """

    initial_state: Any
    time_step: TimeStep
    previous_action: tf.Tensor
    action: tf.Tensor
    policy_info: Any
    policy_version: tf.Tensor


def time_step_spec(spec: EnvironmentSpec, outer_dims: tuple[int | None, ...] = ()) -> TimeStep:
    """TensorSpecs of one environment's time steps, with `outer_dims` put in front."""

    def with_outer(leaf: ArraySpec) -> tf.TensorSpec:
        return tf.TensorSpec(outer_dims + leaf.shape, leaf.dtype)

    return TimeStep(
        step_type=tf.TensorSpec(outer_dims, tf.int32, "step_type"),
        reward=tf.TensorSpec(outer_dims, tf.float32, "reward"),
        discount=tf.TensorSpec(outer_dims, tf.float32, "discount"),
        observation=tf.nest.map_structure(with_outer, spec.observation),
    )


def environment_step_spec(
    spec: EnvironmentSpec, outer_dims: tuple[int | None, ...] = ()
) -> EnvironmentStep:
    """TensorSpecs of what an actor sends: a time step, and a score where the domain has one."""
    score = tf.TensorSpec(outer_dims, tf.float32, "score") if spec.has_score else ()
    return EnvironmentStep(*time_step_spec(spec, outer_dims))._replace(score=score)


def zeros_like_spec(spec: Any) -> Any:
    """A structure of zero tensors of the shapes and dtypes in `spec` (TensorSpecs without None)."""
    return tf.nest.map_structure(lambda leaf: tf.zeros(leaf.shape, leaf.dtype), spec)


def transpose_time(unroll: Unroll) -> Unroll:
    """Swaps the first two dimensions of what has a time dimension: [B, T] <-> [T, B]."""

    def swap(x: tf.Tensor) -> tf.Tensor:
        return tf.transpose(x, [1, 0, *range(2, x.shape.rank)])

    swapped = tf.nest.map_structure(swap, unroll._replace(initial_state=()))
    return swapped._replace(initial_state=unroll.initial_state)


def experience_mask(step_type: tf.Tensor) -> tf.Tensor:
    """Which transitions are experience: float32 [T, B], 0 for those from LAST to FIRST, else 1.

    Args:
      step_type: int32 [T + 1, B], of the steps that the transitions join.
    """
    return tf.cast(step_type[:-1] != StepType.LAST, tf.float32)


def merge_outer(x: tf.Tensor) -> tf.Tensor:
    """Merges the first two dimensions: [T, B, ...] -> [T * B, ...]."""
    return tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], axis=0))

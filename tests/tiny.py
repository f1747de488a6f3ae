"""Small environments, networks, agents and random experience that the tests share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from agents.blocks.lstm import ResettingLSTM
from agents.blocks.recurrent import RecurrentNetwork
from agents.r2d2.agent import R2D2
from agents.r2d2.head import DuelingHead
from agents.r2d2.settings import R2D2Settings
from agents.vtrace.agent import ActorCriticOutput, VTrace
from agents.vtrace.head import ActorCriticHead
from agents.vtrace.settings import VTraceSettings
from seed_rl.algorithm import Algorithm
from seed_rl.network import Network, build
from seed_rl.trajectories import EnvironmentStep, TimeStep, Unroll
from seed_rl.types import ArraySpec, EnvironmentSpec, StepType

NUM_ACTIONS = 4
FRAME = (4, 4)
SPEC = EnvironmentSpec(ArraySpec.of(FRAME, np.uint8), NUM_ACTIONS)

R2D2_SETTINGS = R2D2Settings(unroll_length=4, burn_in=2, n_steps=2, discounting=0.9)
VTRACE_SETTINGS = VTraceSettings(unroll_length=4, discounting=0.9)


class Tabular(Network):
    """One row of numbers per state of the environment, whose observation is the state's number."""

    def __init__(self, rows: Any):
        super().__init__()
        self.table = tf.Variable(rows, dtype=tf.float32)

    def initial_state(self, batch_size: int) -> tuple[()]:
        del batch_size
        return ()

    def __call__(
        self, time_step: TimeStep, previous_action: tf.Tensor, state: tuple[()]
    ) -> tuple[tf.Tensor, tuple[()]]:
        del previous_action
        return tf.gather(self.table, time_step.observation), state


class TabularActorCritic(Tabular):
    """A row holds the policy's logits and, last, the value."""

    def __call__(
        self, time_step: TimeStep, previous_action: tf.Tensor, state: tuple[()]
    ) -> tuple[ActorCriticOutput, tuple[()]]:
        rows, state = super().__call__(time_step, previous_action, state)
        return ActorCriticOutput(rows[..., :-1], rows[..., -1]), state


def network(head: tf.Module, precision: tf.DType = tf.float32) -> Network:
    """All that RecurrentNetwork can have: two stacked frames, a dense torso, an LSTM."""
    torso = tf_keras.Sequential(
        [
            tf_keras.layers.Rescaling(1 / 255),
            tf_keras.layers.Flatten(),
            tf_keras.layers.Dense(8, "tanh"),
        ]
    )
    core = ResettingLSTM(6, precision)
    return build(RecurrentNetwork(torso, head, NUM_ACTIONS, core, 2, FRAME), SPEC)


def actor_critic() -> Network:
    return network(ActorCriticHead(NUM_ACTIONS))


def dueling() -> Network:
    return network(DuelingHead(NUM_ACTIONS, hidden=5))


def vtrace(create_network: Callable[[], Network] = actor_critic, **settings: Any) -> VTrace:
    return VTrace(create_network, NUM_ACTIONS, dataclasses.replace(VTRACE_SETTINGS, **settings))


def r2d2(
    create_network: Callable[[], Network] = dueling,
    num_training_envs: int = 3,
    num_eval_envs: int = 0,
    **settings: Any,
) -> R2D2:
    settings = dataclasses.replace(R2D2_SETTINGS, **settings)
    return R2D2(create_network, num_training_envs, num_eval_envs, settings)


def time_steps(rng: np.random.Generator, length: int, batch_size: int) -> TimeStep:
    """Random time-major steps; episodes end by termination and truncation, lives are lost."""
    step_type = np.empty((length, batch_size), np.int32)
    step_type[0] = rng.choice([StepType.FIRST, StepType.MID, StepType.LAST], batch_size)
    for t in range(1, length):
        going_on = rng.choice([StepType.MID, StepType.LAST], batch_size, p=[0.7, 0.3])
        step_type[t] = np.where(step_type[t - 1] == StepType.LAST, StepType.FIRST, going_on)
    is_first = step_type == StepType.FIRST
    return_ends = rng.random(step_type.shape) < np.where(step_type == StepType.LAST, 0.5, 0.1)
    return TimeStep(
        step_type=step_type,
        reward=np.where(is_first, 0.0, rng.normal(size=step_type.shape)).astype(np.float32),
        discount=np.where(return_ends & ~is_first, 0.0, 1.0).astype(np.float32),
        observation=rng.integers(256, size=(*step_type.shape, *FRAME), dtype=np.uint8),
    )


def unrolls(algorithm: Algorithm, batch_size: int, rng: np.random.Generator) -> Unroll:
    """Random batch-major unrolls for an agent on SPEC."""
    outer = (batch_size, algorithm.steps_per_unroll)
    steps = time_steps(rng, algorithm.steps_per_unroll, batch_size)

    def random(shape: tuple[int, ...], dtype: tf.DType) -> tf.Tensor:
        if dtype.is_integer:
            return tf.constant(rng.integers(-(2**31), 2**31, shape), dtype)
        return tf.constant(rng.normal(size=shape), dtype)

    state = algorithm.network.initial_state(batch_size)
    return Unroll(
        initial_state=tf.nest.map_structure(lambda x: random(x.shape, x.dtype), state),
        time_step=tf.nest.map_structure(lambda x: tf.constant(x.swapaxes(0, 1)), steps),
        previous_action=tf.constant(rng.integers(NUM_ACTIONS, size=outer), tf.int32),
        action=tf.constant(rng.integers(NUM_ACTIONS, size=outer), tf.int32),
        policy_info=tf.nest.map_structure(
            lambda leaf: random((*outer, *leaf.shape), leaf.dtype), algorithm.policy_info_spec
        ),
        policy_version=tf.constant(rng.integers(100, size=outer), tf.int64),
    )


def unroll_by_hand(
    states: Sequence[int],
    actions: Sequence[int],
    rewards: Sequence[float],
    policy_info: Any,
    step_types: Sequence[int] | None = None,
    discounts: Sequence[float] | None = None,
) -> Unroll:
    """One time-major unroll [T, 1] of a tabular network; by default MID steps of discount 1."""
    length = len(states)

    def batched(x: Any, dtype: tf.DType) -> tf.Tensor:
        return tf.constant(x, dtype)[:, tf.newaxis]

    return Unroll(
        initial_state=(),
        time_step=TimeStep(
            batched(step_types or [StepType.MID] * length, tf.int32),
            batched(rewards, tf.float32),
            batched(discounts or [1.0] * length, tf.float32),
            batched(states, tf.int32),
        ),
        previous_action=tf.zeros([length, 1], tf.int32),
        action=batched(actions, tf.int32),
        policy_info=policy_info,
        policy_version=tf.zeros([length, 1], tf.int64),
    )


def play(function: Callable[..., Any], steps: TimeStep, run_id: int = 1) -> np.ndarray:
    """Sends time-major steps of environments 0, 1, ... to an inference function, for actions."""
    length, batch_size = steps.step_type.shape
    env_ids = tf.range(batch_size)
    run_ids = tf.fill([batch_size], np.int64(run_id))
    inputs = [tf.nest.map_structure(lambda x, t=t: tf.constant(x[t]), steps) for t in range(length)]
    return np.stack([function(env_ids, run_ids, EnvironmentStep(*step)).numpy() for step in inputs])


def assign(target: tf.Module, source: tf.Module) -> None:
    """Gives one module the other's variables' values."""
    for copy, original in zip(target.variables, source.variables, strict=True):
        copy.assign(original.numpy())


def leaves(structure: Any) -> list[np.ndarray]:
    """A structure's tensors as arrays."""
    return [np.asarray(leaf) for leaf in tf.nest.flatten(structure)]

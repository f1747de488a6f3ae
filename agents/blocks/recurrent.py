"""The shape that all networks here have: frame stack, torso, LSTM, head."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from agents.blocks import frame_stack
from agents.blocks.lstm import ResettingLSTM
from seed_rl.network import Network
from seed_rl.trajectories import TimeStep, merge_outer


class RecurrentState(NamedTuple):
    """The state of a RecurrentNetwork; a part that the network does not have is ().

    Attributes:
      frames: packed history of frames, see frame_stack.
      core: state of the LSTM.
    """

    frames: Any
    core: Any


class RecurrentNetwork(Network):
    """[Frame stack ->] torso -> with previous action and reward [-> LSTM] -> head.

    The reward is an input, too, clipped to [-1, 1].

    Args:
      torso: from observations [N, ...] to features float32 [N, F].
      head: from float32 [T, B, features] to the algorithm's outputs [T, B, ...].
      num_actions: of the environment, A.
      core: the memory; None for a network without.
      stack_size: how many frames the torso sees as channels; 0 if observations go to it as they
        are.
      frame_shape: (H, W) of one frame; used when stacking.
    """

    def __init__(
        self,
        torso: Callable[[Any], tf.Tensor],
        head: Callable[[tf.Tensor], Any],
        num_actions: int,
        core: ResettingLSTM | None = None,
        stack_size: int = 0,
        frame_shape: tuple[int, ...] = (),
    ):
        super().__init__()
        if not 0 <= stack_size <= frame_stack.MAX_STACK_SIZE:
            raise ValueError(
                f"stack_size: expected 0 to {frame_stack.MAX_STACK_SIZE}, got {stack_size}."
            )
        self._torso = torso
        self._head = head
        self._core = core
        self._num_actions = num_actions
        self._stack_size = stack_size
        self._frame_shape = frame_shape

    def initial_state(self, batch_size: int) -> RecurrentState:
        frames = (
            frame_stack.initial_history(batch_size, self._frame_shape) if self._stack_size else ()
        )
        core = self._core.initial_state(batch_size) if self._core else ()
        return RecurrentState(frames, core)

    def __call__(
        self, time_step: TimeStep, previous_action: tf.Tensor, state: RecurrentState
    ) -> tuple[Any, RecurrentState]:
        is_first = time_step.is_first()
        observation, history = time_step.observation, state.frames
        if self._stack_size:
            observation, history = frame_stack.stack_frames(
                observation, is_first, history, self._stack_size
            )
        features = tf.concat(
            [
                _merge_time(self._torso, observation),
                tf.clip_by_value(time_step.reward, -1.0, 1.0)[..., tf.newaxis],
                tf.one_hot(previous_action, self._num_actions),
            ],
            axis=-1,
        )
        core_state = state.core
        if self._core:
            features, core_state = self._core(features, is_first, core_state)
        return self._head(features), RecurrentState(history, core_state)


def _merge_time(function: Callable[[Any], tf.Tensor], inputs: Any) -> tf.Tensor:
    """Applies a function over [N, ...] to a structure of tensors [T, B, ...]."""
    outer = tf.shape(tf.nest.flatten(inputs)[0])[:2]
    merged = function(tf.nest.map_structure(merge_outer, inputs))
    return tf.reshape(merged, tf.concat([outer, tf.shape(merged)[1:]], 0))

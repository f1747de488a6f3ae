"""A long short-term memory whose state resets where episodes start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf
import tf_keras

from seed_rl.trajectories import merge_outer


class LSTMState(NamedTuple):
    """Both float32 [B, units]."""

    hidden: tf.Tensor
    cell: tf.Tensor


class ResettingLSTM(tf_keras.layers.Layer):
    """LSTM (Gers et al. 2000, forget gate bias 1) over time-major inputs with resets on the way.

    Args:
      units: size of the hidden state.
      compute_dtype: dtype of the matrix products; weights, gates and state are float32.
    """

    def __init__(self, units: int, compute_dtype: tf.DType = tf.float32, name: str = "lstm"):
        super().__init__(name=name, dtype=tf.float32)
        self.units = units
        self._product_dtype = compute_dtype

    def initial_state(self, batch_size: int) -> LSTMState:
        zeros = tf.zeros([batch_size, self.units])
        return LSTMState(zeros, zeros)

    def build(self, input_shape: tf.TensorShape) -> None:
        # Both orthogonal: with the default's smaller kernel features fade on their way through.
        self._kernel = self.add_weight(
            "kernel", [input_shape[-1], 4 * self.units], initializer="orthogonal"
        )
        self._recurrent_kernel = self.add_weight(
            "recurrent_kernel", [self.units, 4 * self.units], initializer="orthogonal"
        )
        self._bias = self.add_weight("bias", [4 * self.units], initializer=self._forget_bias)
        super().build(input_shape)

    def call(
        self, inputs: tf.Tensor, is_first: tf.Tensor, state: LSTMState
    ) -> tuple[tf.Tensor, LSTMState]:
        """Runs T steps.

        Args:
          inputs: float32 [T, B, features]; T is static, the loop is unrolled.
          is_first: bool [T, B]; the state is zeroed before these steps.
          state: the state before the first step.

        Returns:
          Hidden states float32 [T, B, units] and the state after the last step.
        """
        # One product for the whole unroll; only the recurrent half has to wait for its turn.
        dtype = self._product_dtype
        projected = _product(inputs, tf.cast(self._kernel, dtype)) + self._bias
        keep = 1.0 - tf.cast(is_first, tf.float32)[..., tf.newaxis]
        outputs, *last = _recurrence(
            projected, tf.cast(self._recurrent_kernel, dtype), keep, *state
        )
        return outputs, LSTMState(*last)

    def _forget_bias(self, shape: tf.TensorShape, dtype: tf.DType) -> tf.Tensor:
        del shape
        ones, zeros = tf.ones([self.units], dtype), tf.zeros([self.units], dtype)
        return tf.concat([zeros, ones, zeros, zeros], axis=0)


class _Step(NamedTuple):
    """What the gradient of a step needs: float32 [B, units]; of a whole unroll: [T, B, units]."""

    hidden_before: tf.Tensor
    cell_before: tf.Tensor
    enter: tf.Tensor
    forget: tf.Tensor
    candidate: tf.Tensor
    leave: tf.Tensor
    squashed: tf.Tensor  # tanh of the new cell


@tf.custom_gradient
def _recurrence(
    projected: tf.Tensor, kernel: tf.Tensor, keep: tf.Tensor, hidden: tf.Tensor, cell: tf.Tensor
) -> tuple[Any, Callable[..., tuple[tf.Tensor | None, ...]]]:
    """From the inputs' share of the gates [T, B, 4 * units] to hidden states and last state.

    Automatic differentiation would make a product as large as the kernel for every step and add
    them up, which takes longer than all the rest. Here it is one product for the unroll.
    """
    outputs, steps = [], []
    for projected_t, keep_t in zip(tf.unstack(projected), tf.unstack(keep), strict=True):
        hidden_before, cell_before = keep_t * hidden, keep_t * cell
        gates = tf.split(projected_t + _product(hidden_before, kernel), 4, axis=-1)
        enter, forget, leave = (tf.sigmoid(gates[i]) for i in (0, 1, 3))
        candidate = tf.tanh(gates[2])
        cell = forget * cell_before + enter * candidate
        squashed = tf.tanh(cell)
        hidden = leave * squashed
        outputs.append(hidden)
        steps.append(_Step(hidden_before, cell_before, enter, forget, candidate, leave, squashed))

    def gradient(*upstream: tf.Tensor) -> tuple[tf.Tensor | None, ...]:
        unroll = _Step(*(tf.stack(parts) for parts in zip(*steps, strict=True)))
        return _recurrence_gradient(unroll, kernel, keep, *upstream)

    return (tf.stack(outputs), hidden, cell), gradient


def _recurrence_gradient(
    unroll: _Step,
    kernel: tf.Tensor,
    keep: tf.Tensor,
    by_outputs: tf.Tensor,
    by_hidden: tf.Tensor,
    by_cell: tf.Tensor,
) -> tuple[tf.Tensor | None, ...]:
    """Back-propagation through time: the loss's gradients by _recurrence's arguments."""
    enter, forget, candidate, leave = unroll[2:6]
    cell_by_hidden = leave * (1 - unroll.squashed**2)
    # What a gate's input does to the cell; the last gate's, to the hidden state.
    by_gate = tf.concat(
        [
            candidate * enter * (1 - enter),
            unroll.cell_before * forget * (1 - forget),
            enter * (1 - candidate**2),
            unroll.squashed * leave * (1 - leave),
        ],
        axis=-1,
    )
    by_projected = []
    for t in reversed(range(by_outputs.shape[0])):
        by_hidden += by_outputs[t]
        by_cell += by_hidden * cell_by_hidden[t]
        by_gates = tf.concat([by_cell, by_cell, by_cell, by_hidden], axis=-1) * by_gate[t]
        by_projected.append(by_gates)
        by_hidden = keep[t] * _product(by_gates, kernel, transpose_kernel=True)
        by_cell *= keep[t] * forget[t]
    stacked = tf.stack(by_projected[::-1])
    by_kernel = tf.matmul(
        merge_outer(tf.cast(unroll.hidden_before, kernel.dtype)),
        merge_outer(tf.cast(stacked, kernel.dtype)),
        transpose_a=True,
    )
    return stacked, by_kernel, None, by_hidden, by_cell


def _product(x: tf.Tensor, kernel: tf.Tensor, transpose_kernel: bool = False) -> tf.Tensor:
    """x @ kernel in the kernel's dtype, as float32."""
    x = tf.cast(x, kernel.dtype)
    return tf.cast(tf.matmul(x, kernel, transpose_b=transpose_kernel), tf.float32)

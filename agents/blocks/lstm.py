"""A long short-term memory whose state resets where episodes start."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf
import tf_keras


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
        projected = self._product(inputs, self._kernel) + self._bias
        keep = 1.0 - tf.cast(is_first, tf.float32)[..., tf.newaxis]
        outputs = []
        for projected_t, keep_t in zip(tf.unstack(projected), tf.unstack(keep), strict=True):
            state = self._step(projected_t, LSTMState(keep_t * state.hidden, keep_t * state.cell))
            outputs.append(state.hidden)
        return tf.stack(outputs), state

    def _step(self, projected: tf.Tensor, state: LSTMState) -> LSTMState:
        gates = projected + self._product(state.hidden, self._recurrent_kernel)
        enter, forget, candidate, leave = tf.split(gates, 4, axis=-1)
        cell = tf.sigmoid(forget) * state.cell + tf.sigmoid(enter) * tf.tanh(candidate)
        return LSTMState(tf.sigmoid(leave) * tf.tanh(cell), cell)

    def _product(self, x: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        dtype = self._product_dtype
        return tf.cast(tf.matmul(tf.cast(x, dtype), tf.cast(kernel, dtype)), tf.float32)

    def _forget_bias(self, shape: tf.TensorShape, dtype: tf.DType) -> tf.Tensor:
        del shape
        ones, zeros = tf.ones([self.units], dtype), tf.zeros([self.units], dtype)
        return tf.concat([zeros, ones, zeros, zeros], axis=0)

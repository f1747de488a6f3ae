"""Tables with a row per environment, and the store that cuts trajectories into unrolls."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from seed_rl.trajectories import Unroll, merge_outer


class EnvironmentTable(tf.Module):
    """A structure of variables [num_envs, ...], read and written by environment id.

    Args:
      spec: TensorSpecs of one row.
      num_envs: rows.
      width: rows that one environment has; then ids are env_id * width + index.
    """

    def __init__(self, spec: Any, num_envs: int, width: int = 1):
        super().__init__()
        self._width = width
        self._variables = tf.nest.map_structure(
            lambda leaf: tf.Variable(
                tf.zeros([num_envs * width, *leaf.shape], leaf.dtype), trainable=False
            ),
            spec,
        )

    def read(self, ids: tf.Tensor) -> Any:
        """Rows [..., *row shape] of the ids int32 [...]."""
        return tf.nest.map_structure(lambda variable: tf.gather(variable, ids), self._variables)

    def write(self, ids: tf.Tensor, rows: Any) -> None:
        """Sets the rows of the ids int32 [N]."""
        tf.nest.map_structure(
            lambda variable, values: variable.scatter_update(tf.IndexedSlices(values, ids)),
            self._variables,
            rows,
        )

    def ids(self, env_ids: tf.Tensor, start: int, count: int) -> tf.Tensor:
        """Ids int32 [N, count] of consecutive rows of each of the environments int32 [N]."""
        return env_ids[:, tf.newaxis] * self._width + tf.range(start, start + count)

    def move_to_front(self, env_ids: tf.Tensor, count: int) -> None:
        """Copies the last `count` rows of each of the environments int32 [N] over its first."""
        rows = self.read(self.ids(env_ids, self._width - count, count))
        ids = tf.reshape(self.ids(env_ids, 0, count), [-1])
        self.write(ids, tf.nest.map_structure(merge_outer, rows))


class UnrollStore(tf.Module):
    """The unrolls under construction, one per environment.

    Consecutive unrolls of an environment share `overlap` steps; the later one's initial state is
    the state that the network had before the first of them.

    Args:
      step_spec: an Unroll of TensorSpecs of one time step (initial_state: the network state's).
      num_envs: environments, with ids below this.
      length: time steps in an unroll.
      overlap: how many of them the next unroll starts with; less than length.
    """

    def __init__(self, step_spec: Unroll, num_envs: int, length: int, overlap: int):
        super().__init__()
        if not 0 <= overlap < length:
            raise ValueError(f"overlap: expected 0 to {length - 1} (length - 1), got {overlap}.")
        self._length = length
        self._overlap = overlap
        self._steps = EnvironmentTable(step_spec._replace(initial_state=()), num_envs, width=length)
        # Unrolls begin every `stride` steps; these are the states before all that have begun.
        self._stride = length - overlap
        self._num_begun = -(-length // self._stride)
        self._states = EnvironmentTable(step_spec.initial_state, num_envs, width=self._num_begun)
        self._position = EnvironmentTable(tf.TensorSpec([], tf.int32), num_envs)

    def append(self, env_ids: tf.Tensor, is_new_run: tf.Tensor, step: Unroll) -> Unroll:
        """Adds one time step of some environments; takes out the unrolls that this completes.

        Args:
          env_ids: int32 [N], all different.
          is_new_run: bool [N], whether to drop what the environment's unroll held before.
          step: an Unroll of one time step: [N, ...], initial_state being the state before this
            step.

        Returns:
          The completed unrolls, batch-major [K, length, ...], 0 <= K <= N.
        """
        position = tf.where(is_new_run, 0, self._position.read(env_ids))
        self._steps.write(env_ids * self._length + position, step._replace(initial_state=()))
        self._keep_state(env_ids, position, step.initial_state)

        is_complete = position + 1 == self._length
        completed = tf.boolean_mask(env_ids, is_complete)
        unrolls = self._read(completed)
        self._start_next(completed)
        self._position.write(env_ids, tf.where(is_complete, self._overlap, position + 1))
        return unrolls

    def _keep_state(self, env_ids: tf.Tensor, position: tf.Tensor, state: Any) -> None:
        """Keeps the states [N, ...] before those steps with which an unroll begins."""
        begins = position % self._stride == 0
        ids = env_ids * self._num_begun + position // self._stride
        self._states.write(
            tf.boolean_mask(ids, begins),
            tf.nest.map_structure(lambda x: tf.boolean_mask(x, begins), state),
        )

    def _read(self, env_ids: tf.Tensor) -> Unroll:
        steps = self._steps.read(self._steps.ids(env_ids, 0, self._length))
        return steps._replace(initial_state=self._states.read(env_ids * self._num_begun))

    def _start_next(self, env_ids: tf.Tensor) -> None:
        """Makes the environments' next unrolls, which have begun already, the current ones."""
        if self._overlap:
            self._steps.move_to_front(env_ids, self._overlap)
            self._states.move_to_front(env_ids, self._num_begun - 1)

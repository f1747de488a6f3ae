"""The tables, and the store of unrolls against a naive one in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from seed_rl.trajectories import TimeStep, Unroll
from seed_rl.unrolls import EnvironmentTable, UnrollStore

NUM_ENVS = 5
SCALAR = tf.TensorSpec([], tf.float32)
STEP_SPEC = Unroll(
    initial_state=(tf.TensorSpec([2], tf.float32),),
    time_step=TimeStep(
        tf.TensorSpec([], tf.int32), SCALAR, SCALAR, {"image": tf.TensorSpec([2, 3], tf.uint8)}
    ),
    previous_action=tf.TensorSpec([], tf.int32),
    action=tf.TensorSpec([], tf.int32),
    policy_info=(SCALAR,),
    policy_version=tf.TensorSpec([], tf.int64),
)
APPEND_SIGNATURE = tf.nest.map_structure(
    lambda leaf: tf.TensorSpec([None, *leaf.shape], leaf.dtype),
    (tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.bool), STEP_SPEC),
)


class NaiveStore:
    """Every environment's steps in a list; an unroll is its last `length` ones, states included."""

    def __init__(self, length: int, overlap: int):
        self._length, self._overlap = length, overlap
        self._steps: dict[int, list[Unroll]] = {env_id: [] for env_id in range(NUM_ENVS)}

    def append(self, env_id: int, is_new_run: bool, step: Unroll) -> list[Unroll]:
        steps = self._steps[env_id]
        if is_new_run:
            steps.clear()
        steps.append(step)
        if len(steps) < self._length:
            return []
        timed = [each._replace(initial_state=()) for each in steps]
        unroll = tf.nest.map_structure(lambda *xs: np.stack(xs), *timed)
        self._steps[env_id] = steps[self._length - self._overlap :]
        return [unroll._replace(initial_state=steps[0].initial_state)]


def random_step(rng: np.random.Generator, count: int) -> Unroll:
    """A step for `count` environments; no two numbers of a kind are likely to be equal."""
    return tf.nest.map_structure(
        lambda leaf: (rng.random((count, *leaf.shape)) * 100).astype(leaf.dtype.as_numpy_dtype),
        STEP_SPEC,
    )


def row(structure: Any, index: int) -> Any:
    return tf.nest.map_structure(lambda x: x[index], structure)


@pytest.mark.parametrize(
    "length, overlap",
    [(1, 0), (3, 0), (2, 1), (4, 1), (6, 3), (5, 3), (5, 4), (7, 5)],
)
def test_equals_a_naive_store_on_random_sequences(length: int, overlap: int) -> None:
    """Environments come in random sets and order, and start anew at any time."""
    rng = np.random.default_rng(length)
    store, naive = UnrollStore(STEP_SPEC, NUM_ENVS, length, overlap), NaiveStore(length, overlap)
    append = tf.function(store.append, input_signature=APPEND_SIGNATURE)
    num_completed = 0
    for _ in range(60):
        env_ids = rng.permutation(NUM_ENVS)[: rng.integers(1, NUM_ENVS + 1)].astype(np.int32)
        is_new_run = rng.random(len(env_ids)) < 0.05
        step = random_step(rng, len(env_ids))
        unrolls = append(*tf.nest.map_structure(tf.constant, (env_ids, is_new_run, step)))
        expected = [
            unroll
            for i, env_id in enumerate(env_ids)
            for unroll in naive.append(env_id, is_new_run[i], row(step, i))
        ]
        assert unrolls.action.shape == (len(expected), length)
        for i, each in enumerate(expected):
            tf.nest.map_structure(np.testing.assert_array_equal, row(unrolls, i), each)
        num_completed += len(expected)
    assert num_completed > 10


def step_of(*values: float) -> Unroll:
    """A step of as many environments, all of whose numbers are those given."""
    return tf.nest.map_structure(
        lambda leaf: tf.cast(
            tf.broadcast_to(
                tf.reshape(values, [-1] + [1] * leaf.shape.rank), [len(values), *leaf.shape]
            ),
            leaf.dtype,
        ),
        STEP_SPEC,
    )


def test_several_environments_finish_at_once() -> None:
    store = UnrollStore(STEP_SPEC, NUM_ENVS, length=2, overlap=1)
    env_ids, no = tf.constant([4, 0, 2]), tf.fill([3], False)
    assert store.append(env_ids, no, step_of(1, 2, 3)).action.shape == (0, 2)
    unrolls = store.append(env_ids, no, step_of(4, 5, 6))
    np.testing.assert_array_equal(unrolls.action, [[1, 4], [2, 5], [3, 6]])
    np.testing.assert_array_equal(unrolls.initial_state[0][:, 0], [1, 2, 3])


def test_a_new_run_drops_the_unfinished_unroll_of_its_environment_only() -> None:
    store = UnrollStore(STEP_SPEC, NUM_ENVS, length=3, overlap=1)
    env_ids = tf.constant([0, 1])
    for i, is_new_run in enumerate([[True, True], [False, False], [True, False]]):
        unrolls = store.append(env_ids, tf.constant(is_new_run), step_of(10 + i, 20 + i))
    np.testing.assert_array_equal(unrolls.action, [[20, 21, 22]])
    store.append(env_ids, tf.constant([False, False]), step_of(13, 23))
    unrolls = store.append(env_ids, tf.constant([False, False]), step_of(14, 24))
    np.testing.assert_array_equal(unrolls.action, [[12, 13, 14], [22, 23, 24]])
    np.testing.assert_array_equal(unrolls.initial_state[0][:, 0], [12, 22])


@pytest.mark.parametrize("overlap", [-1, 3])
def test_an_overlap_that_cannot_be_is_refused(overlap: int) -> None:
    with pytest.raises(ValueError, match=rf"overlap: expected 0 to 2 .*got {overlap}"):
        UnrollStore(STEP_SPEC, NUM_ENVS, length=3, overlap=overlap)


def test_table_reads_what_was_written_and_zeros_before() -> None:
    table = EnvironmentTable({"a": tf.TensorSpec([2], tf.int32), "b": SCALAR}, num_envs=3)
    rows = {"a": tf.constant([[1, 2], [3, 4]]), "b": tf.constant([5.0, 6.0])}
    table.write(tf.constant([2, 0]), rows)
    read = table.read(tf.constant([[0, 1], [2, 2]]))
    np.testing.assert_array_equal(read["a"], [[[3, 4], [0, 0]], [[1, 2], [1, 2]]])
    np.testing.assert_array_equal(read["b"], [[6, 0], [5, 5]])

"""The queue of structures."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import tensorflow as tf

from seed_rl.queues import StructuredQueue

SPEC = {"a": tf.TensorSpec([2], tf.float32), "b": (tf.TensorSpec([], tf.int32), ())}


def elements(*numbers: int) -> dict:
    return {
        "a": tf.constant([[n, n] for n in numbers], tf.float32),
        "b": (tf.constant(numbers), ()),
    }


def test_first_in_first_out_with_the_structure_kept() -> None:
    queue = StructuredQueue(SPEC, capacity=5)
    queue.enqueue_many(elements(1, 2, 3))
    queue.enqueue_many(elements(4))
    assert queue.size() == 4
    taken = queue.dequeue_many(3)
    assert taken["b"][1] == ()
    np.testing.assert_array_equal(taken["b"][0], [1, 2, 3])
    np.testing.assert_array_equal(taken["a"], [[1, 1], [2, 2], [3, 3]])
    assert queue.size() == 1


def test_a_structure_of_one_leaf() -> None:
    queue = StructuredQueue((tf.TensorSpec([], tf.int32),), capacity=2)
    queue.enqueue_many((tf.constant([7, 8]),))
    (taken,) = queue.dequeue_many(2)
    np.testing.assert_array_equal(taken, [7, 8])


def test_no_elements_are_no_trouble() -> None:
    queue = StructuredQueue(SPEC, capacity=1)
    queue.enqueue_many({"a": tf.zeros([0, 2]), "b": (tf.zeros([0], tf.int32), ())})
    assert queue.size() == 0


def test_a_full_queue_holds_the_producer_until_there_is_room() -> None:
    queue = StructuredQueue(SPEC, capacity=2)
    producer = threading.Thread(target=queue.enqueue_many, args=(elements(1, 2, 3),))
    producer.start()
    producer.join(timeout=0.3)
    assert producer.is_alive()
    queue.dequeue_many(1)
    producer.join(timeout=30)
    assert not producer.is_alive()
    np.testing.assert_array_equal(queue.dequeue_many(2)["b"][0], [2, 3])


def test_closing_lets_producers_fail() -> None:
    queue = StructuredQueue(SPEC, capacity=1)
    errors = []

    def produce() -> None:
        try:
            queue.enqueue_many(elements(1, 2))
        except tf.errors.CancelledError as error:
            errors.append(error)

    producer = threading.Thread(target=produce)
    producer.start()
    producer.join(timeout=0.3)
    queue.close()
    producer.join(timeout=30)
    assert len(errors) == 1
    with pytest.raises(tf.errors.CancelledError):
        queue.enqueue_many(elements(3))

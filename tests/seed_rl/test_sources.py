"""Batches from the queue and from the replay."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from agents.r2d2.agent import R2D2
from seed_rl.inference import unroll_spec
from seed_rl.queues import StructuredQueue
from seed_rl.replay import PrioritizedReplay, ReplaySettings
from seed_rl.sources import QueueSource, ReplaySource
from seed_rl.types import ArraySpec
from tests import tiny

BATCH_SIZE = 4


class ReplaySetup(NamedTuple):
    agent: R2D2
    queue: StructuredQueue
    replay: PrioritizedReplay
    source: ReplaySource

    def offer(self, count: int) -> None:
        self.queue.enqueue_many(tiny.unrolls(self.agent, count, np.random.default_rng(0)))

    @property
    def num_inserted(self) -> int:
        return len(self.replay)


def replay_source(**settings: Any) -> ReplaySetup:
    agent = tiny.r2d2()
    spec = unroll_spec(agent, tiny.SPEC)
    specs = [ArraySpec.of(leaf.shape, leaf.dtype.as_numpy_dtype) for leaf in tf.nest.flatten(spec)]
    settings = dataclasses.replace(
        ReplaySettings(replay_buffer_size=1000, replay_buffer_min_size=6), **settings
    )
    queue, replay = StructuredQueue(spec, 1000), PrioritizedReplay(specs, settings, seed=0)
    return ReplaySetup(
        agent, queue, replay, ReplaySource(queue, replay, agent, BATCH_SIZE, settings)
    )


def test_queue_gives_each_unroll_once_in_order() -> None:
    agent = tiny.vtrace()
    queue = StructuredQueue(unroll_spec(agent, tiny.SPEC), 20)
    source = QueueSource(queue, BATCH_SIZE)
    assert source.poll() is None
    unrolls = tiny.unrolls(agent, 10, np.random.default_rng(0))
    queue.enqueue_many(unrolls)
    for start in 0, 4:
        batch = source.poll()
        assert batch is not None and len(batch.keys) == 0
        np.testing.assert_array_equal(batch.weights, np.ones(BATCH_SIZE))
        tf.nest.map_structure(
            lambda x, all_x, start=start: np.testing.assert_array_equal(
                x, all_x[start : start + 4]
            ),
            batch.unrolls,
            unrolls,
        )
    assert source.poll() is None, "two unrolls are no batch"
    assert queue.size() == 2


def test_replay_gives_no_batch_before_its_min_size() -> None:
    setup = replay_source()
    setup.offer(5)
    assert setup.source.poll() is None
    setup.offer(1)
    assert setup.source.poll() is not None
    assert setup.num_inserted == 6


@pytest.mark.parametrize("ratio", [0.5, 1.5, 8.0, 30.0])
def test_trained_over_inserted_is_the_replay_ratio(ratio: float) -> None:
    """Counted from the first batch on, however fast unrolls come."""
    setup = replay_source(replay_ratio=ratio)
    num_batches = 0
    while num_batches < 40:
        if setup.source.poll() is None:
            setup.offer(3)
        else:
            num_batches += 1
    trained, inserted = (num_batches - 1) * BATCH_SIZE, setup.num_inserted - 6
    assert abs(trained / ratio - inserted) <= 1.0


def test_a_restored_replay_of_min_size_trains_at_once() -> None:
    setup = replay_source()
    setup.offer(6)
    setup.source.poll()
    settings = ReplaySettings(replay_buffer_size=1000, replay_buffer_min_size=6)
    source = ReplaySource(setup.queue, setup.replay, setup.agent, BATCH_SIZE, settings)
    assert source.poll() is not None


def test_a_sampled_sequence_is_one_that_was_inserted() -> None:
    setup = replay_source()
    setup.offer(6)
    batch = setup.source.poll()
    assert batch is not None and batch.weights.shape == (BATCH_SIZE,)
    inserted = tiny.leaves(tiny.unrolls(setup.agent, 6, np.random.default_rng(0)))
    for leaf, all_of_it in zip(tiny.leaves(batch.unrolls), inserted, strict=True):
        np.testing.assert_array_equal(leaf, all_of_it[batch.keys])


def test_priorities_are_the_algorithm_s_initial_ones_until_updated() -> None:
    setup = replay_source(priority_exponent=1.0, importance_sampling_exponent=1.0)
    setup.offer(6)
    batch = setup.source.poll()
    assert batch is not None
    unrolls = tiny.unrolls(setup.agent, 6, np.random.default_rng(0))
    expected = setup.agent.initial_priorities(unrolls).numpy()
    weights = 1.0 / expected[batch.keys]
    np.testing.assert_allclose(batch.weights, weights / weights.max(), rtol=1e-4)

    batch = batch._replace(keys=np.arange(6))
    setup.source.update_priorities(batch, tf.constant([0.0, 0.0, 0.0, 1.0, 0.0, 0.0]))
    assert set(setup.replay.sample(100).keys) == {3}

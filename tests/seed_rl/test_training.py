"""Updates: replicas against one, clipping, the falling learning rate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from seed_rl.algorithm import Algorithm
from seed_rl.devices import training_strategy
from seed_rl.errors import UserError
from seed_rl.learner_settings import OptimizerSettings
from seed_rl.training import UpdateOutput, Updater, make_optimizer
from tests import tiny

BATCH_SIZE = 4
ONE, TWO = ("/cpu:0",), ("/cpu:0", "/cpu:1")


def make(
    make_algorithm: Callable[[], Algorithm] = tiny.vtrace,
    devices: tuple[str, ...] = ONE,
    batch_size: int = BATCH_SIZE,
    updates_in_all: int = 100,
    **settings: Any,
) -> tuple[Algorithm, Updater]:
    strategy = training_strategy(devices)
    settings = OptimizerSettings(**{"learning_rate": 0.01, **settings})
    with strategy.scope():
        algorithm = make_algorithm()
        return algorithm, Updater(algorithm, strategy, settings, batch_size, updates_in_all)


def batch(algorithm: Algorithm, size: int = BATCH_SIZE) -> Any:
    rng = np.random.default_rng(0)
    return tiny.unrolls(algorithm, size, rng), tf.constant(rng.random(size), tf.float32)


def assert_close(one: UpdateOutput, other: UpdateOutput) -> None:
    assert one.metrics.keys() == other.metrics.keys()
    for name, metric in one.metrics.items():
        if name not in PER_REPLICA:
            np.testing.assert_allclose(
                metric, other.metrics[name], rtol=1e-3, atol=1e-5, err_msg=name
            )
    for priorities, same in zip(
        tf.nest.flatten(one.priorities), tf.nest.flatten(other.priorities), strict=True
    ):
        np.testing.assert_allclose(priorities, same, rtol=1e-4)


# The mean over replicas of a maximum, or of a ratio, is not that of the whole batch.
PER_REPLICA = {"q/max", "policy/entropy"}


@pytest.mark.parametrize("make_algorithm", [tiny.vtrace, tiny.r2d2])
def test_two_replicas_update_as_one_does(make_algorithm: Callable[[], Algorithm]) -> None:
    (one, one_updater), (two, two_updater) = (make(make_algorithm, each) for each in (ONE, TWO))
    tiny.assign(two, one)
    before = [variable.numpy() for variable in one.trained_variables]
    for _ in range(3):
        assert_close(one_updater.update(*batch(one)), two_updater.update(*batch(two)))
    for variable, same, old in zip(
        one.trained_variables, two.trained_variables, before, strict=True
    ):
        np.testing.assert_allclose(variable, same.numpy(), rtol=1e-3, atol=1e-5)
        assert np.any(np.abs(variable - old) > 1e-4)


def applied_norm(algorithm: Algorithm, updater: Updater) -> float:
    """Norm of the gradient that the first update gave Adam: its first moment is 0.1 times that."""
    moments = [v.numpy() for v in updater.optimizer.variables if v.name.startswith("m/")]
    assert len(moments) == len(algorithm.trained_variables)
    return float(np.sqrt(sum(np.sum(moment**2) for moment in moments)) / 0.1)


@pytest.mark.parametrize("devices", [ONE, TWO])
def test_the_gradient_of_the_whole_batch_is_clipped(devices: tuple[str, ...]) -> None:
    algorithm, updater = make(devices=devices, clip_norm=0.01)
    output = updater.update(*batch(algorithm))
    assert output.metrics["gradient/norm"] > 0.02
    np.testing.assert_allclose(applied_norm(algorithm, updater), 0.01, rtol=1e-4)


def test_clip_norm_0_does_not_clip() -> None:
    algorithm, updater = make(clip_norm=0.0)
    unrolls, weights = batch(algorithm)
    norm = updater.update(unrolls, 1e4 * weights).metrics["gradient/norm"]
    assert norm > 100.0
    np.testing.assert_allclose(applied_norm(algorithm, updater), norm, rtol=1e-4)


def test_weights_weigh_the_losses() -> None:
    """An unroll of weight 0 might as well be another one."""
    updated = []
    for seed in 0, 1:
        algorithm, updater = make(tiny.r2d2)
        for i, variable in enumerate(algorithm.variables):
            variable.assign(tf.random.stateless_normal(variable.shape, seed=[0, i]))
        unrolls, _ = batch(algorithm)
        others = tiny.unrolls(algorithm, 2, np.random.default_rng(seed))
        unrolls = tf.nest.map_structure(lambda x, y: tf.concat([x[:2], y], 0), unrolls, others)
        updater.update(unrolls, tf.constant([1.0, 0.5, 0.0, 0.0]))
        updated.append([variable.numpy() for variable in algorithm.trained_variables])
    for one, other in zip(*updated, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def test_numpy_batches_are_as_good_as_tensors() -> None:
    """A replay gives arrays."""
    algorithm, updater = make(tiny.r2d2, TWO)
    output = updater.update(*tf.nest.map_structure(lambda x: x.numpy(), batch(algorithm)))
    assert output.priorities.shape == (BATCH_SIZE,)


def test_updates_lower_the_loss_of_a_batch_that_stays() -> None:
    algorithm, updater = make(tiny.r2d2)
    unrolls, weights = batch(algorithm)
    totals = [float(updater.update(unrolls, weights).metrics["loss/total"]) for _ in range(30)]
    assert totals[-1] < 0.9 * totals[0]


def steps_taken(updates: int, **settings: Any) -> np.ndarray:
    """Adam's steps where the gradient is always 1, which are as long as its learning rate."""
    settings = OptimizerSettings(learning_rate=0.5, adam_epsilon=0.0, **settings)
    optimizer = make_optimizer(settings, updates_in_all=4)
    variable = tf.Variable(0.0)
    values = [0.0]
    for _ in range(updates):
        optimizer.apply_gradients([(tf.constant(1.0), variable)])
        values.append(float(variable))
    return -np.diff(values)


def test_learning_rate_falls_linearly_to_0() -> None:
    np.testing.assert_allclose(
        steps_taken(6, learning_rate_decay=True), [0.5, 0.375, 0.25, 0.125, 0.0, 0.0], atol=1e-5
    )


def test_learning_rate_is_constant_without_decay() -> None:
    np.testing.assert_allclose(steps_taken(6), [0.5] * 6, rtol=1e-4)


def test_after_the_decay_an_update_changes_nothing() -> None:
    algorithm, updater = make(updates_in_all=2, learning_rate_decay=True)
    values = []
    for _ in range(4):
        updater.update(*batch(algorithm))
        values.append(np.concatenate([v.numpy().ravel() for v in algorithm.trained_variables]))
    assert np.any(values[0] != values[1])
    np.testing.assert_array_equal(values[2], values[3])


def test_a_batch_that_does_not_divide_names_the_flag() -> None:
    with pytest.raises(UserError, match=r"--batch_size: expected a multiple of 2.* got 5"):
        make(devices=TWO, batch_size=5)

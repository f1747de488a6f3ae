"""The inference devices' copies, padding, and all parts together on three devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from seed_rl.algorithm import Algorithm
from seed_rl.devices import Devices, choose_devices, training_strategy
from seed_rl.inference import CentralInference, network_policy
from seed_rl.learner_settings import DeviceSettings, OptimizerSettings
from seed_rl.network_copies import NetworkCopies, pad_rows
from seed_rl.sources import QueueSource
from seed_rl.training import Updater
from seed_rl.trajectories import TimeStep
from tests import tiny


def policy_inputs(count: int) -> Any:
    """Time steps, previous actions, states and environment ids of `count` rows."""
    rng = np.random.default_rng(count)
    agent = tiny.r2d2(burn_in=0, unroll_length=1)
    unrolls = tiny.unrolls(agent, count, rng)
    step, action = tf.nest.map_structure(
        lambda x: x[:, 0], (unrolls.time_step, unrolls.previous_action)
    )
    return step, action, unrolls.initial_state, tf.range(count)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_a_padded_policy_gives_what_the_policy_gives(count: int) -> None:
    agent = tiny.r2d2(num_training_envs=5, exploration_epsilon=0.0)
    policy = network_policy(agent, agent.network)
    sizes = []

    def recording(*inputs: Any) -> Any:
        sizes.extend(leaf.shape[0] for leaf in tf.nest.flatten(inputs))
        return policy(*inputs)

    padded = tf.function(pad_rows(recording, batch_size=5))(*policy_inputs(count))
    assert set(sizes) == {5}
    expected = policy(*policy_inputs(count))
    for leaf, same in zip(tiny.leaves(padded), tiny.leaves(expected), strict=True):
        assert leaf.shape == same.shape
        np.testing.assert_allclose(leaf, same, rtol=1e-5, atol=1e-6)


COMPILED = Devices(training_strategy(("/cpu:0",)), ("/cpu:0",), compiled=True)


def deterministic_r2d2() -> Algorithm:
    return tiny.r2d2(num_training_envs=5, exploration_epsilon=0.0)


@pytest.mark.parametrize("make_algorithm", [tiny.vtrace, deterministic_r2d2])
def test_compiled_policies_compute_the_same(make_algorithm: Callable[[], Algorithm]) -> None:
    agent = make_algorithm()
    (policy,) = NetworkCopies(agent, COMPILED, batch_size=5).policies()
    step = tf.function(policy)(*policy_inputs(3))
    expected = network_policy(agent, agent.network)(*policy_inputs(3))
    for leaf, same in zip(
        tiny.leaves((step.state, step.info)),
        tiny.leaves((expected.state, expected.info)),
        strict=True,
    ):
        np.testing.assert_allclose(leaf, same, rtol=1e-4, atol=1e-5)
    assert step.action.shape == (3,)
    assert set(step.action.numpy()) <= set(range(tiny.NUM_ACTIONS))


def test_compiled_policies_run_at_one_batch_size_only() -> None:
    shapes = set()

    class Recording(tiny.Tabular):
        def __call__(self, time_step: TimeStep, previous_action: tf.Tensor, state: Any) -> Any:
            shapes.add(tuple(time_step.observation.shape))
            return super().__call__(time_step, previous_action, state)

    agent = tiny.r2d2(lambda: Recording(np.eye(4)), num_training_envs=5, exploration_epsilon=0.0)
    (policy,) = NetworkCopies(agent, COMPILED, batch_size=5).policies()
    for count in 1, 4:
        steps = TimeStep(tf.ones(count, tf.int32), *tf.ones([2, count]), tf.range(count))
        step = tf.function(policy)(steps, tf.zeros(count, tf.int32), (), tf.range(count))
        np.testing.assert_array_equal(step.action, range(count))
    assert shapes == {(1, 5)}


def test_copies_lie_on_their_devices_and_follow_when_published() -> None:
    agent = tiny.r2d2(exploration_epsilon=0.0)
    devices = Devices(training_strategy(("/cpu:0",)), ("/cpu:1", "/cpu:2"))
    copies = NetworkCopies(agent, devices, batch_size=3)
    own = {id(variable) for variable in agent.variables}
    places = [v.device[-5:] for v in copies.variables if id(v) not in own]
    per_copy = len(agent.network.variables)
    assert places == ["CPU:1"] * per_copy + ["CPU:2"] * per_copy

    def values(policy: Any) -> np.ndarray:
        return policy(*policy_inputs(3)).info.greatest.numpy()

    before = values(network_policy(agent, agent.network))
    for variable in agent.network.variables:
        variable.assign(variable * 1.5 + 0.1)
    after = values(network_policy(agent, agent.network))
    for policy in copies.policies():
        np.testing.assert_allclose(values(policy), before, rtol=1e-5)
    copies.publish()
    for policy in copies.policies():
        np.testing.assert_allclose(values(policy), after, rtol=1e-5)
    assert np.any(np.abs(after - before) > 1e-3)


@pytest.mark.parametrize("make_algorithm", [tiny.vtrace, tiny.r2d2])
def test_two_devices_train_while_a_third_infers(make_algorithm: Callable[[], Algorithm]) -> None:
    """The learner's whole path but the wire: act, collect, update, publish, act again."""
    devices = choose_devices(
        DeviceSettings(training_devices="/cpu:0,/cpu:1", inference_devices="/cpu:2")
    )
    with devices.strategy.scope():
        algorithm = make_algorithm()
        updater = Updater(algorithm, devices.strategy, OptimizerSettings(), 4, 100)
    inference = CentralInference(algorithm, tiny.SPEC, 3, 0, queue_capacity=50)
    copies = NetworkCopies(algorithm, devices, batch_size=3)
    (policy,) = copies.policies()
    function = inference.make_function(policy)
    source = QueueSource(inference.unrolls, 4)
    rng = np.random.default_rng(0)
    num_updates = 0
    for _ in range(3):
        tiny.play(function, tiny.time_steps(rng, 12, 3))
        while (batch := source.poll()) is not None:
            output = updater.update(batch.unrolls, batch.weights)
            assert np.isfinite(output.metrics["loss/total"])
            num_updates += 1
            algorithm.after_update(num_updates)
            copies.publish()
    assert num_updates >= 4
    own = {id(variable) for variable in algorithm.variables}
    copied = [variable for variable in copies.variables if id(variable) not in own]
    for copy, trained in zip(copied, algorithm.network.variables, strict=True):
        np.testing.assert_array_equal(copy, trained.numpy())


def test_a_compiled_policy_runs_on_its_device() -> None:
    """The compiled function is called on the device, though inference calls it from the host."""
    agent = tiny.r2d2()
    devices = Devices(training_strategy(("/cpu:0",)), ("/cpu:2",), compiled=True)
    (policy,) = NetworkCopies(agent, devices, batch_size=2).policies()
    inference = CentralInference(agent, tiny.SPEC, 3, 0, 10)
    graph = inference.make_function(policy).get_concrete_function().graph
    (call,) = [op for op in graph.get_operations() if op.type.endswith("PartitionedCall")]
    assert call.device.lower().endswith("cpu:2")

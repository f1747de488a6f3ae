"""V-trace targets: by hand, against the sums of IMPALA's equation 1, and across episodes' ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from agents.vtrace.vtrace import vtrace_returns
from seed_rl.types import StepType
from tests import tiny

ALL_VALID = np.ones((2, 1), np.float32)


@pytest.fixture(params=["eager", "graph", "xla"])
def compute(request: pytest.FixtureRequest) -> Any:
    if request.param == "eager":
        return vtrace_returns
    return tf.function(vtrace_returns, jit_compile=request.param == "xla")


def two_steps(**changes: Any) -> dict[str, Any]:
    """Two transitions of one environment; the importance ratios are 2 and 1/2."""
    arguments = dict(
        log_rhos=np.log([[2.0], [0.5]]),
        rewards=[[1.0], [2.0]],
        discounts=[[0.5], [0.5]],
        values=[[10.0], [20.0]],
        bootstrap_value=[30.0],
        valid=ALL_VALID,
    )
    return {name: tf.constant(x, tf.float32) for name, x in {**arguments, **changes}.items()}


def test_numbers_by_hand(compute: Any) -> None:
    # delta_1 = 1/2 (2 + 15 - 20) = -1.5, delta_0 = 1 (1 + 10 - 10) = 1, v_0 = 10 + 1 + 1/2 (-1.5).
    returns = compute(**two_steps())
    np.testing.assert_allclose(returns.targets, [[10.25], [18.5]])
    # rho_0 (1 + 18.5 / 2 - 10) and rho_1 (2 + 30 / 2 - 20)
    np.testing.assert_allclose(returns.advantages, [[0.25], [-1.5]])


def test_lambda_shortens_the_trace() -> None:
    returns = vtrace_returns(**two_steps(), lambda_=0.5)
    np.testing.assert_allclose(returns.targets, [[10.0 + 1.0 - 0.375], [18.5]])


def test_rho_bars_are_separate() -> None:
    returns = vtrace_returns(**two_steps(), clip_rho=3.0, clip_advantage_rho=1.5)
    # delta_0 = 2 (1 + 10 - 10) = 2; the trace stays clipped at 1.
    np.testing.assert_allclose(returns.targets, [[10.0 + 2.0 - 0.75], [18.5]])
    np.testing.assert_allclose(returns.advantages, [[1.5 * 0.25], [-1.5]])


def test_on_policy_targets_are_the_discounted_returns() -> None:
    returns = vtrace_returns(**two_steps(log_rhos=[[0.0], [0.0]]))
    np.testing.assert_allclose(returns.targets, [[1 + 0.5 * (2 + 0.5 * 30)], [2 + 0.5 * 30]])


def test_truncation_bootstraps_from_the_final_observation() -> None:
    # Step 1 is LAST: the transition out of it is not experience; its observation is worth 20.
    returns = vtrace_returns(**two_steps(valid=[[1.0], [0.0]]))
    np.testing.assert_allclose(returns.targets, [[1 + 0.5 * 20], [20.0]])
    np.testing.assert_allclose(returns.advantages, [[1 + 0.5 * 20 - 10], [0.0]])


def test_termination_does_not_bootstrap() -> None:
    returns = vtrace_returns(**two_steps(valid=[[1.0], [0.0]], discounts=[[0.0], [0.5]]))
    np.testing.assert_allclose(returns.targets, [[1.0], [20.0]])


def random_arguments(rng: np.random.Generator, length: int, batch_size: int) -> dict[str, Any]:
    steps = tiny.time_steps(rng, length + 1, batch_size)
    values = rng.normal(size=(length + 1, batch_size)).astype(np.float32)
    return dict(
        log_rhos=rng.normal(size=(length, batch_size)).astype(np.float32),
        rewards=steps.reward[1:],
        discounts=np.float32(0.9) * steps.discount[1:],
        values=values[:-1],
        bootstrap_value=values[-1],
        valid=(steps.step_type[:-1] != StepType.LAST).astype(np.float32),
    )


def naive_returns(
    log_rhos: np.ndarray,
    rewards: np.ndarray,
    discounts: np.ndarray,
    values: np.ndarray,
    bootstrap_value: np.ndarray,
    valid: np.ndarray,
    lambda_: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Equation 1 as it is printed, summed for each step on its own up to its episode's end."""
    length, batch_size = rewards.shape
    all_values = np.concatenate([values, bootstrap_value[None]]).astype(np.float64)
    rhos = np.minimum(1.0, np.exp(log_rhos, dtype=np.float64))
    targets = all_values.copy()
    for b in range(batch_size):
        for start in range(length):
            weight = 1.0
            for t in range(start, length):
                if not valid[t, b]:
                    break
                next_value = all_values[t + 1, b]
                delta = rhos[t, b] * (rewards[t, b] + discounts[t, b] * next_value - values[t, b])
                targets[start, b] += weight * delta
                weight *= discounts[t, b] * lambda_ * rhos[t, b]
    advantages = valid * rhos * (rewards + discounts * targets[1:] - values)
    return targets[:-1], advantages


@pytest.mark.parametrize("lambda_", [1.0, 0.9, 0.0])
@pytest.mark.parametrize("length", [1, 12])
def test_equals_equation_1_on_random_episodes(length: int, lambda_: float) -> None:
    arguments = random_arguments(np.random.default_rng(length), length, batch_size=16)
    returns = vtrace_returns(**arguments, lambda_=lambda_)
    targets, advantages = naive_returns(**arguments, lambda_=lambda_)
    np.testing.assert_allclose(returns.targets, targets, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(returns.advantages, advantages, rtol=1e-4, atol=1e-5)


def test_nothing_crosses_from_last_to_first() -> None:
    """Other numbers from the LAST step's own action on change nothing of the episode before it."""
    rng = np.random.default_rng(0)
    arguments, other = random_arguments(rng, 8, 5), random_arguments(rng, 8, 5)
    last = 4
    for each in arguments, other:
        each["valid"][last] = 0.0
    changed = {
        name: other[name] if x.ndim == 1 else np.concatenate([x[:last], other[name][last:]])
        for name, x in arguments.items()
    }
    changed["values"][last] = arguments["values"][last]  # the final observation's, which counts
    before, after = vtrace_returns(**arguments), vtrace_returns(**changed)
    np.testing.assert_array_equal(before.targets[: last + 1], after.targets[: last + 1])
    np.testing.assert_array_equal(before.advantages[: last + 1], after.advantages[: last + 1])
    assert np.any(before.targets[last + 1 :] != after.targets[last + 1 :])


def test_targets_carry_no_gradient() -> None:
    arguments = two_steps()
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        returns = vtrace_returns(**arguments)
    assert all(gradient is None for gradient in tape.gradient(returns, arguments).values())


@pytest.mark.parametrize("name", ["rewards", "discounts", "values", "bootstrap_value", "valid"])
def test_a_wrong_shape_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        vtrace_returns(**two_steps(**{name: np.ones((3, 1))}))

"""The exported policy, loaded by plain TensorFlow in a process without this project."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from seed_rl.algorithm import Algorithm
from seed_rl.export import export_policy
from tests import tiny

LENGTH, BATCH = 8, 3
AGENTS = {"vtrace": tiny.vtrace, "r2d2": tiny.r2d2}

# Acts for LENGTH steps with both policies; steps and actions travel as .npz files.
PROGRAM = """
import sys
import numpy as np
import tensorflow as tf

steps = np.load("steps.npz")
for name in sys.argv[1:]:
    policy = tf.saved_model.load(name)
    state = policy.initial_state(steps["step_type"].shape[1])
    action, actions = np.zeros(steps["step_type"].shape[1], np.int32), []
    for step_type, reward, discount, observation in zip(*(steps[key] for key in (
            "step_type", "reward", "discount", "observation"))):
        previous = np.where(step_type == 0, 0, action).astype(np.int32)
        action, state = policy.act(step_type, reward, discount, observation, previous, state)
        action = action.numpy()
        actions.append(action)
    np.savez(name + ".npz", *[x.numpy() for x in state], actions=actions)
assert not {"seed_rl", "agents", "tf_keras", "tf_agents"} & set(sys.modules)
"""


def decided(algorithm: Algorithm) -> Algorithm:
    """Stretches logits and values so far apart that sampling has no choice left."""
    for variable in algorithm.network.variables:
        if variable.shape[-1] == tiny.NUM_ACTIONS:
            variable.assign(variable * 1e5)
    return algorithm


def act(algorithm: Algorithm, steps: Any) -> tuple[np.ndarray, list[np.ndarray]]:
    """Actions and last state of the algorithm's own policy."""
    state = algorithm.network.initial_state(BATCH)
    actions = [np.zeros(BATCH, np.int32)]
    for t in range(LENGTH):
        step = tf.nest.map_structure(lambda x, t=t: tf.constant(x[t]), steps)
        previous = tf.constant(np.where(step.step_type == 0, 0, actions[-1]), tf.int32)
        result = algorithm.act(algorithm.network, step, previous, state)
        state = result.state
        actions.append(result.action.numpy())
    return np.stack(actions[1:]), tiny.leaves(state)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder with what the foreign process answered, the steps, and the algorithms."""
    tf_keras.utils.set_random_seed(1)  # module fixtures come before each test's own seed
    folder = tmp_path_factory.mktemp("exported")
    steps = tiny.time_steps(np.random.default_rng(0), LENGTH, BATCH)
    np.savez(folder / "steps.npz", **steps._asdict())
    algorithms = {name: decided(make()) for name, make in AGENTS.items()}
    for name, algorithm in algorithms.items():
        export_policy(algorithm, tiny.SPEC, str(folder / name))
    environment = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "TF_USE_LEGACY_KERAS")
    }
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, *algorithms],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return folder, steps, algorithms


@pytest.mark.parametrize("name", AGENTS)
def test_plain_tensorflow_acts_as_the_algorithm_does(exported: Any, name: str) -> None:
    folder, steps, algorithms = exported
    actions, state = act(algorithms[name], steps)
    with np.load(folder / f"{name}.npz") as answer:
        np.testing.assert_array_equal(answer["actions"], actions)
        for i, leaf in enumerate(state):
            np.testing.assert_allclose(answer[f"arr_{i}"], leaf, rtol=1e-4, atol=1e-5)
    assert len(np.unique(actions)) > 1


def test_r2d2_is_exported_without_exploration(tmp_path: pathlib.Path) -> None:
    algorithm = tiny.r2d2(exploration_epsilon=1.0, eval_epsilon=1.0)
    export_policy(algorithm, tiny.SPEC, str(tmp_path / "policy"))
    policy = tf.saved_model.load(str(tmp_path / "policy"))
    step = tf.nest.map_structure(lambda x: x[0], tiny.time_steps(np.random.default_rng(0), 1, 1))
    inputs = (*step, np.zeros(1, np.int32), policy.initial_state(1))
    actions = {int(policy.act(*inputs)[0][0]) for _ in range(20)}
    assert len(actions) == 1


def test_a_later_export_takes_the_place_of_an_earlier_or_half_one(tmp_path: pathlib.Path) -> None:
    algorithm = tiny.r2d2()
    (tmp_path / "policy.partial").mkdir()
    (tmp_path / "policy.partial" / "half").touch()
    step = tf.nest.map_structure(lambda x: x[0], tiny.time_steps(np.random.default_rng(0), 1, 1))
    states = []
    for _ in range(2):
        export_policy(algorithm, tiny.SPEC, str(tmp_path / "policy"))
        policy = tf.saved_model.load(str(tmp_path / "policy"))
        _, state = policy.act(*step, np.zeros(1, np.int32), policy.initial_state(1))
        states.append(np.concatenate([np.ravel(leaf) for leaf in state]))
        for variable in algorithm.network.variables:
            variable.assign(variable + 0.5)
    assert np.any(states[0] != states[1])
    assert [path.name for path in tmp_path.iterdir()] == ["policy"]
    assert not (tmp_path / "policy" / "half").exists()

"""--seed decides where a run starts: weights, environments and, with one of them, actions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.end_to_end.processes import run_local, scalars

FRAMES = 300


class Beginning:
    """The first frames of one environment with V-trace on Catch, before any training."""

    def __init__(self, logdir: Path, seed: int):
        untrained = [f"--total_environment_frames={FRAMES}", "--batch_size=1000"]
        flags = [f"--seed={seed}", "--log_episode_frequency=1", *untrained]
        run_local(logdir, "catch", "vtrace", "1", "1", *flags)
        self.returns = [scalar.value for scalar in scalars(logdir)["training/return"]]
        reader = tf.train.load_checkpoint(str(logdir / "checkpoints"))
        assert reader.get_tensor("training_step/.ATTRIBUTES/VARIABLE_VALUE") == 0
        names = sorted(reader.get_variable_to_shape_map())
        self.weights = {
            name: reader.get_tensor(name)
            for name in names
            if name.startswith("algorithm/network/") and name.endswith("/VARIABLE_VALUE")
        }


@pytest.fixture(scope="module")
def beginnings(tmp_path_factory: pytest.TempPathFactory) -> list[Beginning]:
    """Of seeds 1, 1 and 2."""
    return [Beginning(tmp_path_factory.mktemp("seed"), seed) for seed in (1, 1, 2)]


def test_same_seed_same_beginning(beginnings: list[Beginning]) -> None:
    first, same, _ = beginnings
    assert len(first.returns) > FRAMES / 9 - 3  # episodes have 9 steps
    count = min(len(first.returns), len(same.returns))
    assert first.returns[:count] == same.returns[:count]
    np.testing.assert_equal(first.weights, same.weights)


def test_other_seed_other_beginning(beginnings: list[Beginning]) -> None:
    first, _, other = beginnings
    count = min(len(first.returns), len(other.returns))
    assert first.returns[:count] != other.returns[:count]
    assert first.weights.keys() == other.weights.keys()
    matrices = [name for name, weight in first.weights.items() if weight.ndim > 1]
    assert matrices  # biases begin at 0 with any seed
    for name in matrices:
        assert (first.weights[name] != other.weights[name]).any()

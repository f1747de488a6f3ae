"""The engine's stand-in is as strict as the engine: else tests with it mean little."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.dmlab.conftest import STAND_IN

LEVEL = "contributed/dmlab30/rooms_watermaze"
FORWARD = np.array([0, 0, 0, 1, 0, 0, 0], np.intc)


def make(engine: ModuleType, temp_folder: object, **changes: Any) -> Any:
    arguments = {"level": LEVEL, "observations": ["RGB_INTERLEAVED"], "config": {"width": "8"}}
    return engine.Lab(**{**arguments, "temp_folder": str(temp_folder), **changes})


@pytest.mark.parametrize(
    ("argument", "value", "error"),
    [
        ("observations", ("RGB_INTERLEAVED",), TypeError),
        ("observations", ["RGB"], ValueError),
        ("config", {"width": 96}, TypeError),
        ("config", {"width": "98"}, ValueError),
        ("renderer", "cpu", ValueError),
        ("temp_folder", None, TypeError),
        ("level", "rooms_watermaze", RuntimeError),
        ("level", "contributed/dmlab30/rooms_collect_good_objects_test", RuntimeError),
    ],
)
def test_arguments(
    argument: str, value: object, error: type, engine: ModuleType, tmp_path: object
) -> None:
    with pytest.raises(error):
        make(engine, tmp_path, **{argument: value})


@pytest.mark.parametrize("seed", [None, np.int32(1), np.int64(1), 1.0])
def test_seeds_are_python_ints(seed: object, engine: ModuleType, tmp_path: object) -> None:
    with pytest.raises(TypeError, match="seed"):
        make(engine, tmp_path).reset(seed=seed)


@pytest.mark.parametrize(
    ("action", "error"),
    [
        (FORWARD.astype(np.int64), TypeError),
        (FORWARD.tolist(), TypeError),
        (FORWARD[:6], TypeError),
        (np.zeros(14, np.intc)[::2], TypeError),
        (FORWARD * 2, AssertionError),
    ],
)
def test_actions(action: object, error: type, engine: ModuleType, tmp_path: object) -> None:
    lab = make(engine, tmp_path)
    lab.reset(seed=1)
    assert lab.step(FORWARD, num_steps=2) == 0.5
    with pytest.raises(error):
        lab.step(action)


def test_nothing_to_see_or_do_before_and_after_an_episode(
    engine: ModuleType, tmp_path: object
) -> None:
    lab = make(engine, tmp_path)
    for _ in range(2):
        assert not lab.is_running()
        with pytest.raises(RuntimeError):
            lab.observations()
        with pytest.raises(RuntimeError):
            lab.step(FORWARD)
        lab.reset(seed=1)
        lab.step(FORWARD, num_steps=engine.EPISODE_FRAMES - 1)
        assert lab.is_running()
        assert lab.observations()["RGB_INTERLEAVED"] is not lab.observations()["RGB_INTERLEAVED"]
        lab.step(FORWARD)


LIE = """
import deepmind_lab, sys
class Cache:
    def fetch(self, key, pk3_path): return True
level = "contributed/dmlab30/explore_x"
lab = deepmind_lab.Lab(level, [], level_cache=Cache(), temp_folder=sys.argv[1])
print("made", flush=True)
lab.reset(seed=1)
print("reset", flush=True)
"""


def test_false_cache_hit_ends_the_process(tmp_path: object) -> None:
    command = [sys.executable, "-c", LIE, str(tmp_path)]
    result = subprocess.run(
        command, env={"PYTHONPATH": str(STAND_IN)}, capture_output=True, text=True
    )
    assert (result.returncode, result.stdout) == (1, "made\n")

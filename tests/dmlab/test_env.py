"""The environments, on the engine's stand-in."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from dmlab.actions import ACTION_SETS
from dmlab.env import DOMAIN, DMLab, DMLabSettings, make_environments, spec
from dmlab.instructions import word_ids
from dmlab.levels import DMLAB_30, level_path
from seed_rl import multitask
from seed_rl.errors import UserError
from seed_rl.types import ArraySpec, StepType, TimeStep
from tests.dmlab.conftest import REPOSITORY, STAND_IN

FIRST, MID, LAST = StepType.FIRST, StepType.MID, StepType.LAST
FORWARD, FIRE = 0, 8  # of the default actions
SMALL = DMLabSettings(game="rooms_watermaze", width=8, height=4)
EXPLORE = DMLabSettings(game="explore_object_rewards_few", width=8, height=4)
READING = DMLabSettings(
    game="language_execute_random_task",
    width=8,
    height=4,
    instruction=True,
    max_instruction_words=6,
)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def play(settings: DMLabSettings, seeds: Sequence[int], num_steps: int, action: int) -> TimeStep:
    """Reset and steps with always the same action, as a TimeStep of arrays [T, N, ...]."""
    env = make_environments(settings, seeds)
    actions = np.full(len(seeds), action, np.int32)
    steps = [env.reset(), *(env.step(actions) for _ in range(num_steps))]
    env.close()
    return TimeStep(*(np.stack(field) for field in zip(*steps, strict=True)))


@pytest.mark.parametrize("settings", [SMALL, EXPLORE, READING])
def test_is_a_gymnasium_environment(settings: DMLabSettings) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*env.spec.*")  # it has no registered id
        warnings.filterwarnings("ignore", message=".*render modes.*")
        check_env(DMLab(settings), skip_render_check=True)


@pytest.mark.parametrize("action_set", ACTION_SETS)
def test_spec(action_set: str) -> None:
    settings = DMLabSettings(action_set=action_set, num_action_repeats=3)
    image = ArraySpec.of((72, 96, 3), np.uint8)
    assert spec(settings).observation == image
    assert spec(settings).num_actions == len(ACTION_SETS[action_set])
    assert spec(settings).frames_per_step == 3
    words = ArraySpec.of((6,), np.int32)
    small = ArraySpec.of((4, 8, 3), np.uint8)
    assert spec(READING).observation == {"image": small, "instruction": words}


@pytest.mark.parametrize("settings", [DMLabSettings(), READING])
def test_environments_fit_the_spec(settings: DMLabSettings) -> None:
    env = make_environments(settings, [1, 2])
    for step in (env.reset(), env.step(np.zeros(2, np.int32))):
        observed = step.observation
        if isinstance(observed, np.ndarray):
            seen: Any = ArraySpec.of(observed.shape[1:], observed.dtype)
        else:
            seen = {name: ArraySpec.of(x.shape[1:], x.dtype) for name, x in observed.items()}
        assert seen == spec(settings).observation
    env.close()


def test_every_action_is_taken_and_no_other(labs: list[Any]) -> None:
    for name, table in ACTION_SETS.items():
        settings = dataclasses.replace(SMALL, action_set=name, num_action_repeats=1)
        env = make_environments(settings, [0])
        env.reset()
        for action in range(len(table)):
            env.step(np.array([action], np.int32))
        assert labs[-1].num_steps() == len(table)
        with pytest.raises(ValueError, match="actions"):
            env.step(np.array([len(table)], np.int32))
        env.close()


def test_what_the_engine_gets(labs: list[Any], engine: ModuleType, tmp_path: Path) -> None:
    settings = DMLabSettings(
        width=20, height=12, renderer="hardware", dataset_path="/pictures", homepath=str(tmp_path)
    )
    DMLab(settings).close()
    assert engine.runfiles_path() == str(tmp_path)
    assert labs[0].renderer == "hardware"
    assert labs[0].config == {
        "width": "20",
        "height": "12",
        "logLevel": "WARN",
        "datasetPath": "/pictures",
    }


def test_an_episode() -> None:
    # 58 frames: 14 steps of 4, and one that is cut off after 2. Walking gives 0.25 a frame.
    steps = play(SMALL, [3, 4], 17, FORWARD)
    for n in range(2):
        assert steps.step_type[:, n].tolist() == [FIRST, *[MID] * 14, LAST, FIRST, MID]
        assert steps.reward[:, n].tolist() == [0.0, *[1.0] * 14, 0.5, 0.0, 1.0]
        # The end counts as a termination.
        assert steps.discount[:, n].tolist() == [1.0] * 15 + [0.0, 1.0, 1.0]
        frames = steps.observation[:, n, 0, 1, 0]  # where the stand-in writes them
        assert frames.tolist() == [*range(0, 57, 4), 56, 0, 4]
        np.testing.assert_array_equal(steps.observation[15, n], steps.observation[14, n])


def test_rewards_are_the_levels_own() -> None:
    assert play(SMALL, [3], 1, FIRE).reward[:, 0].tolist() == [0.0, -4.0]


def test_frames_per_step() -> None:
    settings = dataclasses.replace(SMALL, num_action_repeats=29)
    steps = play(settings, [3], 2, FORWARD)
    assert steps.step_type[:, 0].tolist() == [FIRST, MID, LAST]
    assert steps.reward[:, 0].tolist() == [0.0, 7.25, 7.25]


def test_instructions() -> None:
    steps = play(READING, range(8), 1, FORWARD)
    words = [observation["instruction"] for observation in steps.observation]
    possible = {
        tuple(word_ids(f"pick up the {color} {thing}", 6))
        for color in ("red", "green", "blue")
        for thing in ("ball", "hat")
    }
    seen = {tuple(row) for row in words[0]}
    assert len(seen) > 1
    assert seen <= possible
    np.testing.assert_array_equal(words[0], words[1])


def test_levels_without_instruction_have_only_padding() -> None:
    settings = dataclasses.replace(SMALL, instruction=True)
    assert not play(settings, [0], 0, FORWARD).observation[0]["instruction"].any()


def test_seeds_and_episodes_differ() -> None:
    observation = play(SMALL, [1, 2, 1], 32, FORWARD).observation
    np.testing.assert_array_equal(observation[:, 0], observation[:, 2])
    starts = [observation[t, n].tobytes() for t in (0, 16, 32) for n in (0, 1)]
    assert len(set(starts)) == 6


PROCESS = """
import hashlib, numpy as np
from tests.dmlab.test_env import FORWARD, SMALL, play
print(hashlib.sha256(play(SMALL, [5, 6], 20, FORWARD).observation.tobytes()).hexdigest())
"""


def test_same_seed_same_episodes_in_every_process() -> None:
    environment = {"PYTHONPATH": f"{REPOSITORY}:{STAND_IN}", "TMPDIR": tempfile.gettempdir()}
    hashes = [
        subprocess.run(
            [sys.executable, "-c", PROCESS], env=environment, capture_output=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert hashes[0] == hashes[1]
    assert len(hashes[0]) == 65


def test_each_level_is_a_task() -> None:
    settings = DMLabSettings(game="rooms_watermaze,tests/empty_room_test", width=8)
    assert DOMAIN.tasks(settings) == {
        "rooms_watermaze": DMLabSettings(game="rooms_watermaze", width=8),
        "tests/empty_room_test": DMLabSettings(game="tests/empty_room_test", width=8),
    }
    assert tuple(DOMAIN.tasks(DMLabSettings(game="dmlab30"))) == DMLAB_30


def test_evaluation_plays_by_the_rules_of_tests(labs: list[Any]) -> None:
    twin = DOMAIN.evaluation(DMLabSettings(game="rooms_collect_good_objects_train"))
    assert twin.game == "rooms_collect_good_objects_test"
    assert DOMAIN.evaluation(SMALL).game == SMALL.game
    for settings in (twin, DOMAIN.evaluation(SMALL)):
        DMLab(settings).close()
        assert labs[-1].config["allowHoldOutLevels"] == "true"
        assert labs[-1].config["mixerSeed"] == "1611489005"  # 0x600D5EED
    training, test = (play(s, [1], 0, FORWARD) for s in (SMALL, DOMAIN.evaluation(SMALL)))
    assert (training.observation != test.observation).any()
    assert "mixerSeed" not in labs[-2].config


@pytest.mark.parametrize("folder", ["", "contributed/dmlab30/"])
def test_level_for_tests_can_be_named(labs: list[Any], folder: str) -> None:
    DMLab(DMLabSettings(game=f"{folder}rooms_exploit_deferred_effects_test")).close()
    assert labs[0].config["allowHoldOutLevels"] == "true"


def test_environments_of_one_actor_play_the_levels_in_turn(labs: list[Any]) -> None:
    levels = "rooms_collect_good_objects_train", "rooms_watermaze"
    settings = dataclasses.replace(SMALL, game=",".join(levels))
    env = multitask.make_environments(DOMAIN, settings, {i: i for i in range(5)}, 4)
    env.reset()
    played = [lab._level for lab in labs]
    held_out = "rooms_collect_good_objects_test"  # environment 4 evaluates
    assert played == [level_path(x) for x in (levels[0],) * 2 + (levels[1],) * 2 + (held_out,)]
    assert env.step(np.zeros(5, np.int32)).reward.tolist() == [1.0] * 5
    env.close()


def test_maps_are_made_once(labs: list[Any], tmp_path: Path) -> None:
    settings = dataclasses.replace(EXPLORE, level_cache_dir=str(tmp_path / "cache"))
    first = play(settings, range(12), 0, FORWARD)
    assert sum(lab.maps_made for lab in labs) == 3  # as many as the stand-in's levels have
    second = play(settings, range(12), 0, FORWARD)
    assert sum(lab.maps_made for lab in labs) == 3
    np.testing.assert_array_equal(first.observation, second.observation)
    np.testing.assert_array_equal(first.observation, play(EXPLORE, range(12), 0, 0).observation)

    for entry in (tmp_path / "cache").rglob("*.pk3"):
        entry.write_bytes(entry.read_bytes()[:-100])
    third = play(settings, range(12), 0, FORWARD)
    assert sum(lab.maps_made for lab in labs) == 3 + 12 + 3
    np.testing.assert_array_equal(first.observation, third.observation)


def test_temporary_files_go_at_the_end(temporary: Path) -> None:
    env = make_environments(EXPLORE, [1, 2])
    env.reset()
    assert len(list(temporary.rglob("*.pk3"))) == 2
    env.close()
    assert not list(temporary.iterdir())


def test_level_that_the_engine_does_not_know(temporary: Path) -> None:
    with pytest.raises(UserError, match=r"^--game=not/there: expected a level .*'not/there'\.$"):
        DMLab(DMLabSettings(game="not/there"))
    assert not list(temporary.iterdir())


def test_unknown_short_name() -> None:
    for function in (spec, lambda settings: make_environments(settings, [0])):
        with pytest.raises(UserError, match=r"^--game=rooms_watermazz: .*rooms_watermaze"):
            function(DMLabSettings(game="rooms_watermazz"))


@pytest.mark.parametrize("name", ["width", "height"])
def test_sizes_that_the_engine_cannot_render(name: str) -> None:
    with pytest.raises(UserError, match=rf"^--{name}: expected a multiple of 4, got 90\.$"):
        DMLabSettings(**{name: 90})


def test_without_the_engine_the_spec_is_known_and_environments_say_what_to_do(
    monkeypatch: pytest.MonkeyPatch, temporary: Path
) -> None:
    monkeypatch.setitem(sys.modules, "deepmind_lab", None)
    assert spec(SMALL).num_actions == 9
    with pytest.raises(UserError, match=r"deepmind_lab is not installed.*docker/Dockerfile\.dmlab"):
        make_environments(SMALL, [0])
    assert not list(temporary.iterdir())


def test_settings_travel_as_json() -> None:
    assert DMLabSettings(**json.loads(json.dumps(vars(READING)))) == READING

"""Both agents on the stand-in of DeepMind Lab: a learner that has no engine, an actor that has."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from tests.dmlab.conftest import STAND_IN
from tests.end_to_end.processes import (
    REPOSITORY,
    Finished,
    Program,
    assert_refused,
    main_program,
    run,
    scalars,
    wait_until,
)

FRAMES, ACTION_REPEAT, NUM_ENVS = 4_000, 4, 6
EPISODE_STEPS = 15  # the stand-in's 58 frames
LEVELS = "language_select_described_object", "rooms_collect_good_objects_train"
SMALL = (
    f"--game={','.join(LEVELS)} --instruction --num_envs={NUM_ENVS} --env_batch_size={NUM_ENVS}"
    f" --num_eval_envs=2 --total_environment_frames={FRAMES} --width=32 --height=24"
    " --torso=shallow --lstm_size=16 --batch_size=4 --unroll_length=5 --log_batch_frequency=1"
).split()
R2D2 = ["--burn_in=3", "--replay_buffer_size=100", "--replay_buffer_min_size=10"]
EXPLORE = "--game=explore_goal_locations_small"


class Trained(NamedTuple):
    """A run that has ended."""

    logdir: Path
    temporary: Path
    learner: Finished
    actor: Finished


def actor_program(temporary: Path, command: list[str]) -> list[str]:
    """An actor's command where the engine is installed."""
    variables = [f"PYTHONPATH={REPOSITORY}{os.pathsep}{STAND_IN}", f"TMPDIR={temporary}"]
    return ["env", *variables, *command, "--run_mode=actor"]


@pytest.fixture(scope="module", params=["vtrace", "r2d2"])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    directory = tmp_path_factory.mktemp("dmlab")
    logdir, temporary = directory / "logdir", directory / "temporary"
    temporary.mkdir()
    flags = [*SMALL, *(R2D2 if request.param == "r2d2" else [])]
    flags.append(f"--server_address=unix:{directory}/learner")
    command = main_program(f"dmlab.{request.param}_main", *flags)
    with (
        Program(directory / "learner.log", *command, f"--logdir={logdir}") as learner,
        Program(directory / "actor.log", *actor_program(temporary, command)) as actor,
    ):
        return Trained(logdir, temporary, learner.finish(), actor.finish())


def test_learner_and_actor_end_when_the_frames_are_done(trained: Trained) -> None:
    assert trained.learner.code == 0, trained.learner.output
    assert trained.actor.code == 0, trained.actor.output
    assert "Training has ended." in trained.actor.output
    assert not list(trained.temporary.iterdir())


def test_it_has_trained(trained: Trained) -> None:
    by_tag = scalars(trained.logdir)
    steps = [step.value for step in by_tag["training/steps"]]
    assert steps == list(range(len(steps)))
    assert len(steps) > 4
    assert np.isfinite([loss.value for loss in by_tag["loss/total"]]).all()
    assert {length.value for length in by_tag["training/length"]} == {EPISODE_STEPS}


def test_returns_are_told_of_each_level(trained: Trained) -> None:
    by_tag = scalars(trained.logdir)
    for kind in "training", "evaluation":
        by_level = [len(by_tag[f"{kind}/return/{level}"]) for level in LEVELS]
        assert sum(by_level) == len(by_tag[f"{kind}/return"])
        assert min(by_level) > 0
        for name in "mean", "median", "mean_capped", "median_capped":
            assert by_tag[f"{kind}/human_normalized_{name}"]


def test_policy_acts_on_images_and_instructions(trained: Trained) -> None:
    policy = tf.saved_model.load(trained.logdir / "policy")
    zeros = np.zeros(2, np.int32)
    observation = {
        "image": np.zeros((2, 24, 32, 3), np.uint8),
        "instruction": np.zeros((2, 16), np.int32),
    }
    state = policy.initial_state(2)
    action, _ = policy.act(zeros, zeros * 0.0, zeros + 1.0, observation, zeros, state)
    assert set(action.numpy()) <= set(range(9))


@pytest.fixture
def learner(tmp_path: Path) -> Iterator[Program]:
    """A learner that goes on until the test ends."""
    flags = [*SMALL, EXPLORE, "--total_environment_frames=100000000"]
    flags += [f"--server_address=unix:{tmp_path}/learner", f"--level_cache_dir={tmp_path}/cache"]
    command = main_program("dmlab.vtrace_main", *flags)
    with Program(tmp_path / "learner.log", *command, f"--logdir={tmp_path}/logdir") as program:
        yield program


def test_ended_and_killed_actors_leave_maps_for_others_and_no_temporary_files(
    learner: Program, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = main_program("dmlab.vtrace_main", f"--env_batch_size={NUM_ENVS}")
    command.append(f"--server_address=unix:{tmp_path}/learner")

    with Program(tmp_path / "killed.log", *actor_program(temporary, command)) as actor:
        wait_until(lambda: list((tmp_path / "cache").rglob("*.pk3")) or not actor.is_alive)
        assert actor.is_alive, actor.output
    left = set(temporary.rglob("*.pk3"))
    assert left

    with Program(tmp_path / "ended.log", *actor_program(temporary, command)) as actor:
        wait_until(lambda: set(temporary.rglob("*.pk3")) - left or not actor.is_alive)
        finished = actor.terminate()
    assert finished.code == 128 + signal.SIGTERM, finished.output
    assert not list(temporary.iterdir())


def test_actor_without_the_engine_says_what_to_do(learner: Program, tmp_path: Path) -> None:
    flags = [f"--env_batch_size={NUM_ENVS}", f"--server_address=unix:{tmp_path}/learner"]
    command = main_program("dmlab.vtrace_main", *flags, "--run_mode=actor")
    finished = run(tmp_path / "actor.log", *command)
    assert_refused(finished, "deepmind_lab is not installed", "docker/Dockerfile.dmlab")
    assert learner.is_alive


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        ("--game=rooms_watermazz", ["--game=rooms_watermazz", "rooms_watermaze"]),
        ("--width=90", ["--width", "multiple of 4", "90"]),
        ("--game=dmlab30 --num_envs=29", ["--num_envs", "30 tasks", "29."]),
    ],
)
def test_flags_that_cannot_be_followed(flags: str, parts: list[str], tmp_path: Path) -> None:
    command = main_program("dmlab.vtrace_main", f"--logdir={tmp_path}/logdir", *flags.split())
    assert_refused(run(tmp_path / "log", *command), *parts)

"""Both agents on the real emulator: one learner process, one actor process, a small network."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from tests.end_to_end.processes import (
    Finished,
    Program,
    assert_refused,
    main_program,
    run,
    scalars,
)

FRAMES, ACTION_REPEAT, NUM_ENVS = 2_000, 4, 4
EPISODE_STEPS = 10
SMALL = (
    f"--game=Pong --num_envs={NUM_ENVS} --env_batch_size={NUM_ENVS}"
    f" --total_environment_frames={FRAMES} --max_episode_frames={EPISODE_STEPS * ACTION_REPEAT}"
    " --batch_size=4 --unroll_length=5 --lstm_size=32 --log_batch_frequency=1"
).split()
RUNS = {
    "vtrace": ["vtrace"],
    "r2d2": [
        "r2d2",
        "--torso=nature",
        "--burn_in=3",
        "--replay_buffer_size=100",
        "--replay_buffer_min_size=10",
    ],
    "vtrace on two games": [
        "vtrace",
        "--game=Pong,Breakout",
        "--full_action_space",
        "--num_envs=5",
        "--env_batch_size=5",
        "--num_eval_envs=2",
    ],
    "vtrace in bfloat16": ["vtrace", "--precision=bfloat16", "--torso=deep"],
}
every_run = pytest.mark.parametrize("trained", RUNS, indirect=True)


class Trained(NamedTuple):
    """A run that has ended."""

    directory: Path
    agent: str
    flags: list[str]
    learner: Finished
    actor: Finished

    @property
    def logdir(self) -> Path:
        return self.directory / "logdir"

    @property
    def environment_steps(self) -> int:
        """As the last checkpoint has them."""
        name = "environment_steps/.ATTRIBUTES/VARIABLE_VALUE"
        return int(tf.train.load_variable(str(self.logdir / "checkpoints"), name))


@pytest.fixture(scope="module")
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    agent, *flags = RUNS[request.param]
    directory = tmp_path_factory.mktemp("atari")
    flags = [*SMALL, *flags, f"--server_address=unix:{directory}/learner"]
    command = main_program(f"atari.{agent}_main", *flags)
    with (
        Program(directory / "learner.log", *command, f"--logdir={directory}/logdir") as learner,
        Program(directory / "actor.log", *command, "--run_mode=actor") as actor,
    ):
        return Trained(directory, agent, flags, learner.finish(), actor.finish())


@every_run
def test_learner_and_actor_end_when_the_frames_are_done(trained: Trained) -> None:
    assert trained.learner.code == 0, trained.learner.output
    assert trained.actor.code == 0, trained.actor.output
    assert "Training has ended." in trained.actor.output


@every_run
def test_it_has_trained(trained: Trained) -> None:
    by_tag = scalars(trained.logdir)
    steps = [step.value for step in by_tag["training/steps"]]
    assert steps == list(range(len(steps)))  # the first says where the run starts
    assert len(steps) > 4
    for tag in "loss/total", "gradient/norm", "training/policy_lag", "inference/batch_size":
        assert len(by_tag[tag]) == len(steps) - 1
        assert np.isfinite([scalar.value for scalar in by_tag[tag]]).all()
    assert max(norm.value for norm in by_tag["gradient/norm"]) > 0


@every_run
def test_frames_are_steps_times_action_repeat(trained: Trained) -> None:
    lengths = scalars(trained.logdir)["training/length"]
    assert {length.value for length in lengths} == {EPISODE_STEPS}
    steps_of_ended = EPISODE_STEPS * len(lengths)
    # Episodes that go on have steps, too, and the learner looks while a call is under way.
    steps_at_most = steps_of_ended + 2 * NUM_ENVS * EPISODE_STEPS
    assert steps_of_ended - NUM_ENVS <= lengths[-1].frames / ACTION_REPEAT <= steps_at_most
    assert trained.environment_steps * ACTION_REPEAT >= FRAMES


@every_run
def test_policy_is_there_and_acts(trained: Trained) -> None:
    policy = tf.saved_model.load(trained.logdir / "policy")
    zeros = np.zeros(2, np.int32)
    frames = np.zeros((2, 84, 84), np.uint8)
    state = policy.initial_state(2)
    action, next_state = policy.act(zeros, zeros * 0.0, zeros + 1.0, frames, zeros, state)
    assert action.dtype == tf.int32
    assert set(action.numpy()) <= set(range(18))
    assert [x.shape for x in next_state] == [x.shape for x in state]


@pytest.mark.parametrize("trained", ["vtrace on two games"], indirect=True)
def test_returns_are_told_of_each_game(trained: Trained) -> None:
    by_tag = scalars(trained.logdir)
    num_episodes = {tag: len(by_tag[f"training/return/{tag}"]) for tag in ("Pong", "Breakout")}
    assert sum(num_episodes.values()) == len(by_tag["training/return"])
    # Three environments are trained on: two play Pong, and all episodes have the same length.
    assert num_episodes["Pong"] > num_episodes["Breakout"] > 0
    evaluated = [len(by_tag[f"evaluation/return/{game}"]) for game in ("Pong", "Breakout")]
    assert min(evaluated) > 0
    assert sum(evaluated) == len(by_tag["evaluation/return"])
    for name in "mean", "median", "mean_capped", "median_capped":
        assert by_tag[f"training/human_normalized_{name}"]


@pytest.mark.parametrize("trained", ["r2d2"], indirect=True)
def test_checkpoint_of_another_network_is_refused(trained: Trained) -> None:
    command = main_program(f"atari.{trained.agent}_main", *trained.flags, "--lstm_size=16")
    finished = run(trained.directory / "other.log", *command, f"--logdir={trained.logdir}")
    assert_refused(finished, "--logdir or --init_checkpoint: the checkpoint ", "does not fit")

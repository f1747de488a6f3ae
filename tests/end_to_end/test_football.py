"""V-trace on the real football engine: one learner process, two actor processes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf

from tests.end_to_end.processes import Program, assert_refused, main_program, run, scalars

FLAGS = [
    "--game=academy_empty_goal_close",
    "--reward_experiment=scoring,checkpoints",
    "--num_envs=4",
    "--env_batch_size=2",
    "--total_environment_frames=1500",
    "--batch_size=4",
    "--unroll_length=5",
    "--log_batch_frequency=1",
]


def test_it_trains_and_tells_scores_apart(tmp_path: Path) -> None:
    logdir = tmp_path / "logdir"
    command = main_program(
        "football.vtrace_main", *FLAGS, f"--server_address=unix:{tmp_path}/learner"
    )
    actors = [[*command, "--run_mode=actor", f"--task={task}"] for task in range(2)]
    with (
        Program(tmp_path / "learner.log", *command, f"--logdir={logdir}") as learner,
        Program(tmp_path / "actor0.log", *actors[0]) as first,
        Program(tmp_path / "actor1.log", *actors[1]) as second,
    ):
        for program in learner, first, second:
            finished = program.finish()
            assert finished.code == 0, finished.output

    by_tag = scalars(logdir)
    assert by_tag["training/steps"][-1].value > 4
    assert np.isfinite([loss.value for loss in by_tag["loss/total"]]).all()
    scores = [score.value for score in by_tag["training/score"]]
    assert len(scores) == len(by_tag["training/return"]) > 0
    assert set(scores) <= {-1, 0, 1}
    # Where the ball starts, the first checkpoints are behind it already.
    assert any(shaped.value not in (-1, 0, 1) for shaped in by_tag["training/return"])

    policy = tf.saved_model.load(logdir / "policy")
    zeros = np.zeros(2, np.int32)
    packed = np.zeros((2, 72, 96, 1), np.uint16)
    action, _ = policy.act(zeros, zeros * 0.0, zeros + 1.0, packed, zeros, policy.initial_state(2))
    assert set(action.numpy()) <= set(range(19))


def test_unknown_scenario_is_refused(tmp_path: Path) -> None:
    command = main_program("football.vtrace_main", "--game=Pong", f"--logdir={tmp_path}/logdir")
    assert_refused(run(tmp_path / "log", *command), "--game=Pong", "11_vs_11_stochastic")

"""Checkpoints of an agent, its optimizer and the replay: what comes back, and what is refused."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from agents.r2d2.agent import R2D2
from seed_rl.checkpoints import Checkpoints
from seed_rl.devices import training_strategy
from seed_rl.errors import UserError
from seed_rl.learner_settings import OptimizerSettings
from seed_rl.replay import PrioritizedReplay, ReplaySettings
from seed_rl.training import Updater
from seed_rl.types import ArraySpec
from tests import tiny


class Run:
    """The parts of a learner that are saved; a new one is a learner that has been started again."""

    def __init__(
        self,
        directory: pathlib.Path | str,
        create_network: Any = tiny.dueling,
        settings: OptimizerSettings = OptimizerSettings(),  # noqa: B008 - frozen
    ):
        strategy = training_strategy(("/cpu:0",))
        self.agent = R2D2(create_network, 3, 0, dataclasses.replace(tiny.R2D2_SETTINGS, burn_in=0))
        self.updater = Updater(self.agent, strategy, settings, 2, 100)
        self.step = tf.Variable(0, dtype=tf.int64)
        self.environment_steps = tf.Variable(0, dtype=tf.int64)
        replay_settings = ReplaySettings(replay_buffer_size=5, replay_buffer_min_size=1)
        self.replay = PrioritizedReplay([ArraySpec.of((), np.int32)], replay_settings, seed=0)
        self.checkpoints = Checkpoints(
            str(directory),
            replay=self.replay,
            step=self.step,
            algorithm=self.agent,
            optimizer=self.updater.optimizer,
            environment_steps=self.environment_steps,
        )

    def train(self, updates: int) -> None:
        for _ in range(updates):
            unrolls = tiny.unrolls(self.agent, 2, np.random.default_rng(int(self.step)))
            self.updater.update(unrolls, tf.ones([2]))
            self.step.assign_add(1)
            self.environment_steps.assign_add(50)
            self.replay.insert([np.array([int(self.step)], np.int32)], np.ones(1))

    def everything(self) -> list[np.ndarray]:
        variables = (*self.agent.variables, *self.updater.optimizer.variables)
        return [v.numpy() for v in (*variables, self.step, self.environment_steps)]

    def replayed(self) -> set[int]:
        """The items in the replay."""
        return set(self.replay.sample(200).arrays[0].tolist())


def assert_same(one: Run, other: Run) -> None:
    for value, same in zip(one.everything(), other.everything(), strict=True):
        np.testing.assert_array_equal(value, same)


def test_nothing_is_restored_where_nothing_is(tmp_path: pathlib.Path) -> None:
    assert Run(tmp_path / "none").checkpoints.restore() is None


def test_everything_comes_back_bit_for_bit_and_training_goes_on_as_before(
    tmp_path: pathlib.Path,
) -> None:
    run = Run(tmp_path)
    run.train(3)
    path = run.checkpoints.save()
    assert path == str(tmp_path / "checkpoint-1")
    restarted = Run(tmp_path)
    assert restarted.checkpoints.restore() == path
    assert_same(run, restarted)
    assert restarted.replayed() == {1, 2, 3}
    for each in run, restarted:  # the optimizer's moments count here
        each.train(2)
    assert_same(run, restarted)
    assert int(restarted.environment_steps) == 250


def test_the_newest_of_three_is_restored(tmp_path: pathlib.Path) -> None:
    run = Run(tmp_path)
    for _ in range(4):
        run.train(1)
        run.checkpoints.save()
    assert {path.stem for path in tmp_path.glob("*.index")} == {
        f"checkpoint-{number}" for number in (2, 3, 4)
    }
    assert [path.name for path in tmp_path.glob("replay-*")] == ["replay-4"]
    restarted = Run(tmp_path)
    restarted.checkpoints.restore()
    assert int(restarted.step) == 4


def test_a_folder_that_is_not_of_this_machine() -> None:
    directory = "ram://bucket/run/checkpoints"  # reached as gs:// is, through TensorFlow
    run = Run(directory)
    for _ in range(2):
        run.train(1)
        run.checkpoints.save()
    restarted = Run(directory)
    assert restarted.checkpoints.restore() == f"{directory}/checkpoint-2"
    assert_same(run, restarted)
    assert restarted.replayed() == {1, 2}
    assert tf.io.gfile.glob(f"{directory}/replay-*") == [f"{directory}/replay-2"]


def test_what_a_killed_save_left_is_ignored(tmp_path: pathlib.Path) -> None:
    run = Run(tmp_path)
    run.train(1)
    run.checkpoints.save()
    (tmp_path / "checkpoint-2.data-00000-of-00001").write_bytes(b"half")
    (tmp_path / "checkpoint-2_temp").mkdir()
    (tmp_path / "replay-2").mkdir()
    (tmp_path / "replay-2" / "array_0.npy").write_bytes(b"half")
    restarted = Run(tmp_path)
    restarted.checkpoints.restore()
    assert_same(run, restarted)
    restarted.train(1)
    restarted.checkpoints.save()
    again = Run(tmp_path)
    again.checkpoints.restore()
    assert_same(restarted, again)
    assert again.replayed() == {1, 2}


def test_a_save_killed_after_its_replay_leaves_the_replay_before(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path)
    run.train(1)
    run.checkpoints.save()
    run.train(1)

    def die(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(tf.train.CheckpointManager, "save", die)
        with pytest.raises(KeyboardInterrupt):
            run.checkpoints.save()
    restarted = Run(tmp_path)
    restarted.checkpoints.restore()
    assert int(restarted.step) == 1
    assert restarted.replayed() == {1}


def test_another_network_is_refused_in_one_sentence(tmp_path: pathlib.Path) -> None:
    run = Run(tmp_path)
    run.checkpoints.save()
    table = Run(tmp_path, lambda: tiny.Tabular(np.zeros((3, 4))))
    with pytest.raises(
        UserError, match=r"--logdir or --init_checkpoint: .*checkpoint-1 does not fit"
    ) as e:
        table.checkpoints.restore()
    assert "\n" not in str(e.value)


def test_another_shape_is_refused_in_one_sentence(tmp_path: pathlib.Path) -> None:
    Run(tmp_path, lambda: tiny.Tabular(np.zeros((3, 4)))).checkpoints.save()
    other = Run(tmp_path, lambda: tiny.Tabular(np.zeros((5, 4))))
    with pytest.raises(UserError, match="does not fit the network") as e:
        other.checkpoints.restore()
    assert "\n" not in str(e.value)


def test_init_checkpoint_counts_only_where_logdir_has_none(tmp_path: pathlib.Path) -> None:
    first = Run(tmp_path / "first")
    first.train(2)
    path = first.checkpoints.save()
    second = Run(tmp_path / "second")
    assert second.checkpoints.restore(path) == path
    assert_same(first, second)
    second.train(1)
    own = second.checkpoints.save()
    third = Run(tmp_path / "second")
    assert third.checkpoints.restore(path) == own
    assert_same(second, third)


def test_an_init_checkpoint_that_is_none_names_the_flag(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UserError, match=r"--init_checkpoint: .*nowhere/checkpoint-1"):
        Run(tmp_path).checkpoints.restore("nowhere/checkpoint-1")


def test_saving_again_writes_over_nothing_and_keeps_what_came_since(tmp_path: pathlib.Path) -> None:
    run = Run(tmp_path)
    first = pathlib.Path(run.checkpoints.save() + ".index")
    before = first.stat().st_mtime_ns
    run.environment_steps.assign_add(7)
    run.replay.insert([np.array([77], np.int32)], np.ones(1))
    run.checkpoints.save()
    assert first.stat().st_mtime_ns == before
    restarted = Run(tmp_path)
    restarted.checkpoints.restore()
    assert int(restarted.environment_steps) == 7
    assert restarted.replayed() == {77}


def test_a_resumed_run_learns_at_the_rate_that_its_flags_name(tmp_path: pathlib.Path) -> None:
    run = Run(tmp_path)
    run.train(1)
    run.checkpoints.save()
    for settings, rate in (
        (OptimizerSettings(learning_rate=0.5), 0.5),
        (OptimizerSettings(learning_rate=0.5, learning_rate_decay=True), 0.5 * 99 / 100),
    ):
        restarted = Run(tmp_path, settings=settings)
        restarted.checkpoints.restore()
        restarted.train(1)
        np.testing.assert_allclose(restarted.updater.optimizer.learning_rate.numpy(), rate)

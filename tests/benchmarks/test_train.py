"""Short training runs, and what the benchmark makes of them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import tensorflow as tf

from atari.env import EMULATOR_THREAD
from benchmarks import train, training_run
from benchmarks.learner_costs import Costs
from benchmarks.processes import Memory
from benchmarks.training_run import Process, Scalar, Window
from seed_rl.errors import UserError

REPOSITORY = Path(__file__).resolve().parents[2]
ACTION_REPEAT = 4
ENVS, BATCH_SIZE, UNROLL_LENGTH = 4, 4, 5
SMALL = (
    f"--batch_size={BATCH_SIZE} --unroll_length={UNROLL_LENGTH} --lstm_size=16"
    " --log_batch_frequency=1"
).split()
SMALL_REPLAY = ["--burn_in=3", "--replay_buffer_size=100", "--replay_buffer_min_size=10"]


class Watched(NamedTuple):
    """A run that was watched and has ended."""

    window: Window
    scalars: dict[str, list[Scalar]]
    logdir: Path

    def counter(self, name: str) -> int:
        """As the last checkpoint has it."""
        variable = f"{name}/.ATTRIBUTES/VARIABLE_VALUE"
        return int(tf.train.load_variable(str(self.logdir / "checkpoints"), variable))


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """V-trace with two actors of two environments each."""
    logdir = tmp_path_factory.mktemp("watched")
    command = ["atari", "vtrace", "2", str(ENVS // 2), *SMALL]
    window = training_run.watch(command, logdir, 1.0, 6.0)
    return Watched(window, training_run.scalars(logdir), logdir)


def test_processes_are_the_run_s_own(watched: Watched) -> None:
    names = [process.name for process in watched.window.processes]
    assert sorted(names) == ["actor 0", "actor 1", "launcher", "learner"]
    for process in watched.window.processes:
        assert 0 < process.memory.proportional <= process.memory.resident
        assert (EMULATOR_THREAD in process.threads) == process.name.startswith("actor")
        assert ("serve inference" in process.threads) == (process.name == "learner")
        # Each thread's time is read a moment before the process's.
        assert sum(process.threads.values()) == pytest.approx(process.cpu, abs=0.05)


def test_counts_agree_with_the_checkpoint(watched: Watched) -> None:
    steps = [scalar.value for scalar in watched.scalars["training/steps"]]
    assert steps == list(range(len(steps)))
    assert watched.counter("training_step") == steps[-1]
    frames = watched.scalars["training/steps"][-1].frames
    assert frames <= watched.counter("environment_steps") * ACTION_REPEAT


def test_frames_per_update_are_those_of_a_batch(watched: Watched) -> None:
    """On policy, each step is trained on once. The rest is what lies in the queue at either end."""
    window = watched.window
    frames = BATCH_SIZE * UNROLL_LENGTH * ACTION_REPEAT
    assert window.frames / window.updates == pytest.approx(frames, rel=0.2)


def test_policy_lag_and_batch_size_are_within_their_bounds(watched: Watched) -> None:
    # A step waits for the rest of its unroll, while other unrolls fill at most as many batches as
    # there are environments; then a batch is in the queue, and one is trained on.
    assert 0 <= watched.window.policy_lag <= UNROLL_LENGTH + ENVS
    assert 1 <= watched.window.batch_size <= ENVS


def test_policy_lag_is_0_for_the_first_update(watched: Watched) -> None:
    lags = watched.scalars["training/policy_lag"]
    assert lags[0].value == 0
    assert len(lags) == len(watched.scalars["training/steps"]) - 1  # which begins with the start's


MEMORY = Memory(2, 1)
PROCESSES = [
    Process("launcher", 0.125, {"python": 0.125}, MEMORY),
    Process("learner", 1.0, {"tf_Compute": 0.75, "serve inference": 0.25}, MEMORY),
    Process("actor 0", 0.5, {"emulator": 0.375, "python": 0.125}, MEMORY),
    Process("actor 1", 0.375, {"emulator": 0.25, "python": 0.125}, MEMORY),
]


def test_split_by_hand() -> None:
    """400 frames/s are 100 steps/s, or 20 batches of 5 rows a second."""
    window = Window(frames=400, updates=2, policy_lag=0, batch_size=5, processes=PROCESSES)
    apart = train.Apart.of(window, Costs(inference=1 / 80, update=1 / 16, frames_per_step=4))
    assert apart == train.Apart(inference=0.25, training=0.125)
    parts = train.split(PROCESSES, apart)
    assert parts == train.Split(
        environment=0.625, client=0.25, inference=0.5, training=0.25, other=0.375
    )
    assert parts.total == sum(process.cpu for process in PROCESSES) == 2
    assert parts.percent() == [31.25, 12.5, 25, 12.5, 18.75]


def test_share_outside_the_emulator() -> None:
    assert train.outside_emulator(PROCESSES[2]) == 25


@pytest.fixture(scope="module")
def tables() -> list[list[dict[str, str]]]:
    """What the program prints for R2D2 with one actor: tables of rows by column.

    V-trace, which comes next, refuses the replay's flags; what R2D2 did is printed all the same.
    """
    options = f"--configurations=r2d2,vtrace_deep --actors=1 --envs_per_actor={ENVS} --seconds=5"
    result = _run(*options.split(), "--warm_up_seconds=0", "--", *SMALL, *SMALL_REPLAY)
    assert result.returncode == 1
    assert re.search(r"Error: The run ended with exit code 1; (?s:.*)--burn_in", result.stderr)
    return [_parse(table) for table in re.findall(r"(?:^\|.*\n)+", result.stdout, re.MULTILINE)]


def test_shares_of_cpu_time_add_up(tables: list[list[dict[str, str]]]) -> None:
    (row,), processes = tables
    names = "environment", "client", "inference", "training", "other"
    shares = [float(row[f"{name} %"]) for name in names]
    assert all(share > 0 for share in shares[:-1])
    assert sum(shares) == pytest.approx(100, abs=2.5)  # they are rounded
    used = sum(float(process["cores used"]) for process in processes)
    assert float(row["cores used"]) == pytest.approx(used, abs=0.02)


def test_rates_fit_each_other(tables: list[list[dict[str, str]]]) -> None:
    (row,), _ = tables
    steps, frames = _number(row["steps/s"]), _number(row["frames/s"])
    assert frames == pytest.approx(steps * ACTION_REPEAT, abs=ACTION_REPEAT)
    assert row["target"] == "600"
    assert _number(row["updates/s"]) > 0
    assert _number(row["rows/batch"]) == ENVS  # the one actor's
    assert _number(row["policy lag"]) > 0  # the replay's age
    for title in row:
        if "GFLOP/s" in title or title == "after":
            assert all(_number(speed) > 0 for speed in row[title].split(" / "))


def test_every_process_has_a_row(tables: list[list[dict[str, str]]]) -> None:
    _, rows = tables
    assert sorted(row["process"] for row in rows) == ["actor 0", "launcher", "learner"]
    for row in rows:
        assert 0 < _number(row["PSS MB"]) <= _number(row["RSS MB"])
        assert (row["target"] != "") == row["process"].startswith("actor")
        if row["process"] == "actor 0":
            assert 0 < float(row["outside emulator %"]) < 100
        else:
            assert row["outside emulator %"] == "-"


def test_a_run_that_ends_by_itself_is_told_with_its_log(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"(?s)ended with exit code 1; .*--game=Pung"):
        training_run.watch(["atari", "vtrace", "1", "--game=Pung"], tmp_path, 0.0, 1.0)


def test_unknown_configurations_are_named() -> None:
    settings = train.TrainSettings(configurations="vtrace_shallow,ppo")
    with pytest.raises(UserError, match=r"--configurations: expected some of .* got ppo\."):
        _ = settings.chosen


def test_words_that_are_no_flags_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        train.main(["train", "--batch_size=4", "vtrace"])
    assert end.value.code == 1
    assert (
        "Error: Expected flags only, the runs' behind --, got 'vtrace'." in capsys.readouterr().err
    )


def _run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.train", *options]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)


def _parse(table: str) -> list[dict[str, str]]:
    """The rows of a Markdown table."""
    titles, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()
    ]
    return [dict(zip(titles, row, strict=True)) for row in rows]


def _number(cell: str) -> float:
    return float(cell.replace(",", ""))

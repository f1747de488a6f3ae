"""Learning curves of runs with few enough episodes to work them out by hand."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import cv2
import pytest
import tensorflow as tf

from benchmarks import curve, runs
from benchmarks.runs import Episode, Run
from seed_rl.errors import UserError

REPOSITORY = Path(__file__).resolve().parents[2]
START = "# 2026-12-02T18:52:00+00:00; commit 0123abc; Z80, 1 core\n"


def write_start(
    logdir: Path, began: int, scalars: Sequence[tuple[int, int, dict[str, float]]]
) -> Path:
    """Writes what one start of a run writes: scalars by name, at times and frames."""
    (logdir / "summaries").mkdir(parents=True, exist_ok=True)
    file = logdir / "summaries" / f"events.out.tfevents.{began}.host.1.0.v2"
    with tf.io.TFRecordWriter(str(file)) as writer:
        version = tf.compat.v1.Event(wall_time=began, file_version="brain.Event:2")
        writer.write(version.SerializeToString())
        for seconds, frames, values in scalars:
            for tag, value in values.items():
                event = tf.compat.v1.Event(wall_time=seconds, step=frames)
                tensor = tf.make_tensor_proto(value, tf.float32)
                event.summary.value.add(
                    tag=tag, tensor=tensor
                ).metadata.plugin_data.plugin_name = "scalars"
                writer.write(event.SerializeToString())
    return file


def ended(episode_return: float, length: int = 9, kind: str = "training") -> dict[str, float]:
    return {f"{kind}/return": episode_return, f"{kind}/length": length}


def run_of(returns: Sequence[float], name: str = "mine") -> Run:
    """A run with an episode every 100 frames and 10 seconds."""
    episodes = [Episode(100 * i, 10.0 * i, value, 9) for i, value in enumerate(returns, start=1)]
    return Run(name, [], episodes, episodes[-1].frames, episodes[-1].seconds)


def test_episodes_come_with_frames_seconds_return_and_length(tmp_path: Path) -> None:
    scalars = [(1003, 0, {"training/steps": 0}), (1010, 40, ended(-1, 7)), (1030, 90, ended(2, 8))]
    write_start(tmp_path / "mine", 1000, [*scalars, (1050, 95, {"training/steps": 4})])
    assert runs.read(tmp_path / "mine") == Run(
        "mine", [], [Episode(40, 10.0, -1.0, 7), Episode(90, 30.0, 2.0, 8)], 95, 50.0
    )


def test_what_a_killed_start_did_after_its_checkpoint_is_dropped(tmp_path: Path) -> None:
    first = [(1010, 100, ended(1)), (1020, 200, ended(2)), (1030, 300, ended(3))]
    write_start(tmp_path, 1000, first)
    # From a checkpoint at 200 frames; its first episode ends later than that.
    again = [(2005, 200, {"training/steps": 8}), (2010, 250, ended(4)), (2020, 400, ended(5))]
    write_start(tmp_path, 2000, again)
    # And once more: that one had no time to save.
    write_start(tmp_path, 3000, [(3001, 200, {"training/steps": 8}), (3010, 260, ended(6))])
    run = runs.read(tmp_path)
    assert [episode.episode_return for episode in run.episodes] == [1, 2, 6]
    assert [episode.frames for episode in run.episodes] == [100, 200, 260]
    # 30 seconds, 20 seconds and 10 seconds, without the pauses between them.
    assert [episode.seconds for episode in run.episodes] == [10, 20, 60]
    assert (run.frames, run.seconds) == (260, 60)


def test_start_that_wrote_nothing_changes_nothing(tmp_path: Path) -> None:
    write_start(tmp_path, 1000, [(1010, 100, ended(1))])
    write_start(tmp_path, 2000, [])
    assert (runs.read(tmp_path).frames, runs.read(tmp_path).seconds) == (100, 10)


def test_file_that_ends_in_the_middle_is_read_up_to_there(tmp_path: Path) -> None:
    file = write_start(tmp_path, 1000, [(1010, 100, ended(1)), (1020, 200, ended(2))])
    file.write_bytes(file.read_bytes()[:-5])  # a part of the second episode's length
    assert [episode.frames for episode in runs.read(tmp_path).episodes] == [100]


def test_kinds_of_episodes_are_told_apart(tmp_path: Path) -> None:
    write_start(tmp_path, 1000, [(1010, 100, ended(1)), (1020, 200, ended(2, kind="evaluation"))])
    (episode,) = runs.read(tmp_path, "evaluation").episodes
    assert episode.frames == 200


def test_folder_without_episodes_is_refused(tmp_path: Path) -> None:
    write_start(tmp_path, 1000, [(1010, 100, ended(1))])
    with pytest.raises(UserError, match=r"LOGDIR: .* evaluation, got '.*'"):
        runs.read(tmp_path, "evaluation")
    with pytest.raises(UserError, match=r"got '.*nowhere'"):
        runs.read(tmp_path / "nowhere")


def test_running_mean() -> None:
    assert curve.running_mean([3, 0, 6, 9], window=3) == [None, None, 3.0, 5.0]
    assert curve.running_mean([3, 0], window=3) == [None, None]


def test_threshold_is_reached_by_the_mean_of_20_episodes() -> None:
    # With k ones among the last 20 the mean is (2 k - 20) / 20.
    run = run_of([-1] * 20 + [1] * 20)
    assert curve.first_reaching(run, 0) == run.episodes[29]
    assert curve.first_reaching(run, 0.05) == run.episodes[30]
    assert curve.first_reaching(run, 1) == run.episodes[39]
    assert curve.first_reaching(run, 1.01) is None
    assert curve.first_reaching(run_of([1] * 19), 0) is None


def test_csv_holds_every_episode(tmp_path: Path) -> None:
    curve.write_csv(tmp_path / "csv", [run_of([0.4] + [1] * 19), run_of([-21], name="other")])
    rows = read_csv(tmp_path / "csv")
    assert rows[0] == {
        "run": "mine",
        "episode": "1",
        "frames": "100",
        "seconds": "10.0",
        "return": "0.4",
        "length": "9",
        "mean_return_20": "",
    }
    assert rows[19]["mean_return_20"] == "0.97"  # 19.4 / 20
    assert rows[20]["run"] == "other" and rows[20]["return"] == "-21"


def test_long_runs_are_thinned_up_to_their_last_episodes(tmp_path: Path) -> None:
    long, short = run_of(range(30)), run_of(range(7), name="short")
    assert curve.stride([long, short], max_rows=37) == 1
    assert curve.stride([long, short], max_rows=36) == 2
    assert curve.stride([long, short], max_rows=13) == 3  # 10 + 3
    curve.write_csv(tmp_path / "csv", [long, short], every=3)
    rows = read_csv(tmp_path / "csv")
    assert [int(row["episode"]) for row in rows] == [*range(3, 31, 3), 1, 4, 7]
    assert rows[9]["mean_return_20"] == "19.50"  # of all of 10 to 29


def test_most_rows_take_less_than_200_kilobytes(tmp_path: Path) -> None:
    episode = Episode(1_000_000_000, 1_000_000.0, -1234.0, 1_000)
    run = Run("r2d2_breakout_seed_1", [], [episode] * curve.MAX_ROWS, 1, 1.0)
    curve.write_csv(tmp_path / "csv", [run], curve.stride([run]))
    assert (tmp_path / "csv").stat().st_size < 200 * 1024


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the program writes for two seeds; the second was started twice."""
    home = tmp_path_factory.mktemp("curve")
    for seed, commands in ("1", ["--seed=1"]), ("2", ["--seed=2", "--seed=2 --tensorboard"]):
        returns = {i: i + 10 * (seed == "2") for i in range(1, 41)}
        scalars = [(1000 + 90 * i, 100 * i, ended(value)) for i, value in returns.items()]
        write_start(home / seed, 1000, scalars)
        typed = "./run_local.sh catch vtrace 2 '--game=x y'"
        (home / seed / "commands.txt").write_text(
            "".join(f"{START}{typed} {options}\n" for options in commands)
        )
    program = [sys.executable, "-m", "benchmarks.curve", str(home / "1"), str(home / "2")]
    output = home / "new" / "vtrace.1_catch"
    flags = [f"--output={output}", "--threshold=18,99"]
    subprocess.run([*program, *flags], cwd=REPOSITORY, check=True)
    return output


def test_program_writes_a_picture_with_both_runs(output: Path) -> None:
    picture = cv2.imread(f"{output}.png")
    assert picture.shape == (600, 1000, 3)
    for line in (31, 119, 180), (255, 127, 14):  # matplotlib's first two colours, RGB
        assert (picture[..., ::-1] == line).all(axis=-1).sum() > 100


def test_program_writes_a_csv_with_both_runs(output: Path) -> None:
    rows = read_csv(Path(f"{output}.csv"))
    assert [(row["run"], row["episode"]) for row in rows] == [
        (run, str(number)) for run in "12" for number in range(1, 41)
    ]


def test_program_writes_a_page_with_figures_and_commands(output: Path) -> None:
    page = Path(f"{output}.md").read_text()
    assert page.startswith("# vtrace.1_catch\n")
    # 3600 seconds; the mean of 21 to 40 is 30.5; that of 9 to 28 is 18.5, that of 8 to 27 is 17.5.
    assert "| 1 | 4,000 | 1.00 | 1 | 40 | 30.50 | 2,800 frames, 0.70 h | not reached |\n" in page
    # The mean of the first 20 is 20.5.
    assert "| 2 | 4,000 | 1.00 | 1 | 40 | 40.50 | 2,000 frames, 0.50 h | not reached |\n" in page
    typed = "./run_local.sh catch vtrace 2 '--game=x y'"
    second = f"{START}{typed} --seed=2\n{START}{typed} --seed=2 --tensorboard\n"
    assert f"```\n{START}{typed} --seed=1\n```\n" in page
    assert f"```\n{second}```\n" in page
    for suffix in "png", "csv":
        assert f"(vtrace.1_catch.{suffix})" in page


def test_title_is_what_the_commands_share_and_the_legend_the_rest(output: Path) -> None:
    both = [runs.read(output.parents[1] / seed) for seed in "12"]
    shared = "./run_local.sh catch vtrace 2 '--game=x y'"
    assert curve.common_command(both) == (shared, ["--seed=1", "--seed=2"])
    assert curve.common_command(both[:1]) == (f"{shared} --seed=1", [""])
    assert curve.common_command([run_of([1])]) == ("", [""])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--output=x", "Expected LOGDIR [LOGDIR...] --output=PATH."),
        ("1", "Expected LOGDIR [LOGDIR...] --output=PATH."),
        ("1 --output=x --threshold=18,high", "--threshold: expected numbers"),
        ("1 1 --output=x", "LOGDIR: expected folders with different names, got 1, 1."),
    ],
)
def test_wrong_command_lines(arguments: str, message: str, output: Path) -> None:
    words = [str(output.parents[1] / "1") if word == "1" else word for word in arguments.split()]
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks.curve", *words],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert f"Error: {message}" in result.stderr


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))

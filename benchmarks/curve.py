"""Learning curves of runs that have ended or go on: a CSV, a picture and a page of figures.

    .venv/bin/python -m benchmarks.curve LOGDIR [LOGDIR...] --output=docs/results/vtrace_pong

writes docs/results/vtrace_pong.csv, .png and .md (--help: more flags); several runs, such as one
per seed, are shown together. A mean is that of 20 consecutive episodes, so the runs must have
written every episode (--log_episode_frequency=1, the default but for Catch).
"""

from __future__ import annotations

import csv
import dataclasses
import math
import shlex
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from absl import app

from benchmarks import runs as runs_lib
from benchmarks.runs import Episode, Run
from seed_rl.errors import USER_ERROR_MARK, UserError
from seed_rl.settings import define_flags, from_flags, setting

WINDOW = 20  # episodes in a mean
MAX_ROWS = 3_000  # of the CSV: less than 200 KiB

_COLUMNS = ("run", "episode", "frames", "seconds", "return", "length", f"mean_return_{WINDOW}")
_TITLE_CHARACTERS = 95  # of a line


@dataclasses.dataclass(frozen=True)
class CurveSettings:
    output: str = setting("", "Path of what is written, without .csv, .png and .md.")
    threshold: str = setting(
        "", "Mean returns, with commas between them: the page says when each was first reached."
    )
    kind: str = setting(
        "training",
        "Whose episodes; with R2D2 those of evaluation (--num_eval_envs) explore little.",
        choices=("training", "evaluation"),
    )

    @property
    def thresholds(self) -> list[float]:
        try:
            return [float(text) for text in self.threshold.split(",") if text]
        except ValueError:
            raise UserError(
                f"--threshold: expected numbers with commas between them, got '{self.threshold}'."
            ) from None


def running_mean(values: Sequence[float], window: int = WINDOW) -> list[float | None]:
    """The mean of each value and those before it, `window` in all; None where there are fewer."""
    means: list[float | None] = []
    for end in range(1, len(values) + 1):
        enough = end >= window
        means.append(math.fsum(values[end - window : end]) / window if enough else None)
    return means


def mean_returns(run: Run) -> list[float | None]:
    """For each of a run's episodes."""
    return running_mean([episode.episode_return for episode in run.episodes])


def first_reaching(run: Run, threshold: float) -> Episode | None:
    """The episode with which the mean return first was at least the threshold."""
    for episode, mean in zip(run.episodes, mean_returns(run), strict=True):
        if mean is not None and mean >= threshold:
            return episode
    return None


def stride(runs: Sequence[Run], max_rows: int = MAX_ROWS) -> int:
    """Every how many episodes have to be kept, that all runs together have at most `max_rows`."""
    most = max(len(run.episodes) for run in runs)
    return next(
        every
        for every in range(1, most + 1)
        if sum(math.ceil(len(run.episodes) / every) for run in runs) <= max_rows or every == most
    )


def write_csv(path: Path, runs: Sequence[Run], every: int = 1) -> None:
    """Writes every so many episodes, each run's last among them."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for run in runs:
            rows = list(_rows(run))
            writer.writerows(rows[(len(rows) - 1) % every :: every])


def _rows(run: Run) -> Iterator[tuple[str, ...]]:
    pairs = zip(run.episodes, mean_returns(run), strict=True)
    for number, (episode, mean) in enumerate(pairs, start=1):
        yield (
            run.name,
            str(number),
            str(episode.frames),
            f"{episode.seconds:.1f}",
            f"{episode.episode_return:g}",
            str(episode.length),
            "" if mean is None else f"{mean:.2f}",
        )


def common_command(runs: Sequence[Run]) -> tuple[str, list[str]]:
    """The words that the commands of all runs' first starts share, and each one's others."""
    commands = [shlex.split(run.starts[0].command) if run.starts else [] for run in runs]
    shared = [word for word in commands[0] if all(word in words for words in commands)]
    others = [shlex.join(word for word in words if word not in shared) for words in commands]
    return shlex.join(shared), others


def draw(path: Path, runs: Sequence[Run], thresholds: Sequence[float]) -> None:
    """Draws the runs' returns and running means against frames."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError(
            "The picture is drawn with matplotlib, which ./setup.sh --dev installs."
        ) from None
    figure = Figure(figsize=(10, 6), layout="constrained")
    axes = figure.subplots()
    command, others = common_command(runs)
    for i, run in enumerate(runs):
        millions = [episode.frames / 1e6 for episode in run.episodes]
        returns = [episode.episode_return for episode in run.episodes]
        means = [math.nan if mean is None else mean for mean in mean_returns(run)]
        axes.plot(millions, returns, ".", color=f"C{i}", alpha=0.15, markersize=3)
        label = f"{run.name} {others[i]}" if len(runs) > 1 else run.name
        axes.plot(millions, means, color=f"C{i}", label=label.strip())
    for threshold in thresholds:
        axes.axhline(threshold, color="grey", linestyle="--", linewidth=1)
    title = textwrap.fill(command, _TITLE_CHARACTERS) or "(the command was not recorded)"
    axes.set_title(title, family="monospace", fontsize=9)
    axes.set_xlabel("environment frames (millions)")
    axes.set_ylabel(f"return: episodes (dots), mean of {WINDOW} (lines)")
    axes.grid(alpha=0.3)
    axes.legend(loc="best", fontsize=8)
    figure.savefig(path, dpi=100)


def page(name: str, runs: Sequence[Run], settings: CurveSettings, every: int) -> str:
    """The Markdown page beside <name>.csv and <name>.png."""
    kept = "each" if every == 1 else f"one in {every}"
    return "\n".join(
        [
            f"# {name}",
            "",
            f"![return against frames]({name}.png)",
            "",
            *_table(runs, settings.thresholds),
            "",
            f"Episodes are those of {settings.kind}; a mean is that of {WINDOW} consecutive "
            "returns, undiscounted and unclipped.",
            "Hours are wall time, without pauses between a run's starts.",
            f"[{name}.csv]({name}.csv) has {kept} of the episodes that were written.",
            "How this is made and read: [README.md](README.md).",
            "",
            "## Commands",
            "",
            "Each with its time, what was checked out, and the machine.",
            "",
            *(line for run in runs for line in _commands(run)),
        ]
    )


def _table(runs: Sequence[Run], thresholds: Sequence[float]) -> list[str]:
    titles = ["run", "frames", "hours", "frames/s", "episodes", f"mean of the last {WINDOW}"]
    titles += [f"mean {threshold:g} reached at" for threshold in thresholds]
    rows = [titles, ["---", *["---:"] * (len(titles) - 1)]]
    for run in runs:
        last = mean_returns(run)[-1]
        row = [
            run.name,
            f"{run.frames:,}",
            f"{run.seconds / 3600:.2f}",
            f"{run.frames / run.seconds:,.0f}",
            f"{len(run.episodes):,}",
            "-" if last is None else f"{last:.2f}",
        ]
        rows.append(row + [_reached(first_reaching(run, each)) for each in thresholds])
    return [f"| {' | '.join(row)} |" for row in rows]


def _reached(episode: Episode | None) -> str:
    if episode is None:
        return "not reached"
    return f"{episode.frames:,} frames, {episode.seconds / 3600:.2f} h"


def _commands(run: Run) -> list[str]:
    lines = "".join(map(str, run.starts)).splitlines() or ["# not recorded"]
    return [f"`{run.name}`:", "", "```", *lines, "```", ""]


def write(logdirs: Sequence[str], settings: CurveSettings) -> None:
    """Reads the runs and writes the three files.

    Raises:
      UserError: a flag or a folder is not what it should be.
    """
    if not logdirs or not settings.output:
        raise UserError("Expected LOGDIR [LOGDIR...] --output=PATH.")
    thresholds = settings.thresholds
    runs = [runs_lib.read(Path(logdir), settings.kind) for logdir in logdirs]
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        raise UserError(f"LOGDIR: expected folders with different names, got {', '.join(names)}.")
    output = Path(settings.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    every = stride(runs)
    files = {suffix: output.with_name(output.name + suffix) for suffix in (".csv", ".png", ".md")}
    write_csv(files[".csv"], runs, every)
    draw(files[".png"], runs, thresholds)
    files[".md"].write_text(page(output.name, runs, settings, every))
    print("Wrote " + ", ".join(map(str, files.values())))


def main(argv: Sequence[str]) -> None:
    try:
        write(argv[1:], from_flags(CurveSettings))
    except UserError as error:
        print(f"{USER_ERROR_MARK}{error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    define_flags(CurveSettings)
    app.run(main)

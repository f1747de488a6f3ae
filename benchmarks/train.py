"""End-to-end speed of Atari training, where its CPU time goes, and what memory it takes.

    .venv/bin/python -m benchmarks.train [--seconds=60] [-- --any_flag_of_the_runs=value ...]

runs each configuration as `./run_local.sh atari AGENT ACTORS ENVS_PER_ACTOR` does, one after
another, and prints Markdown tables. Let nothing else run on the machine. The speed of virtual
machines drifts; a calibration (products of matrices in float32 and bfloat16, a convolution) is
taken before and after each run: compare only figures whose calibrations are alike.

The columns of CPU time add up to all that the run's processes used. "environment" is the emulator's
thread in the actors, and "client" the rest of these processes; "other" is the learner's transport
and the launcher. The learner's other threads serve inference and training alike: their time is
divided in proportion to the CPU time of an inference batch and of an update, each measured by
itself after the run, times how many of them the run had. "apart %" is that product over what was
divided: near 100 both are understood; replays, summaries and crowded caches lower it.
"policy lag" is the mean number of updates between acting and training; with a replay, data's age.

To see where the time goes, take a profile while a run goes on (PID: `pgrep -f run_mode=actor` or
`learner`, once the first update is done). perf is in Debian's linux-perf, py-spy on PyPI:
  threads   top -H -p PID
  an actor  perf record -p PID -- sleep 10; perf report --sort=comm,dso,sym
            py-spy record --native --threads --rate=50 -p PID -d 20 -o actor.svg
  learner   perf record -p PID -- sleep 10; perf report --sort=comm,sym
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from absl import app

from atari.env import EMULATOR_THREAD
from benchmarks import calibration, training_run
from benchmarks.learner_costs import Costs
from benchmarks.tables import Column, Table
from benchmarks.training_run import Process, Window
from seed_rl.errors import UserError
from seed_rl.local import operation_threads
from seed_rl.machine import machine
from seed_rl.settings import define_flags, from_flags, setting

_REPOSITORY = Path(__file__).resolve().parents[1]
_MEGA = 1e6


@dataclasses.dataclass(frozen=True)
class Configuration:
    """An agent with its network.

    Attributes:
      agent: as in run_local.sh's command line.
      flags: of the runs.
      target: steps per second to reach on 2 cores.
    """

    agent: str
    flags: tuple[str, ...]
    target: float


CONFIGURATIONS = {
    # Summaries cost a few milliseconds each; a minute needs several.
    "vtrace_shallow": Configuration(
        "vtrace", ("--torso=shallow", "--log_batch_frequency=10"), target=1_800
    ),
    "vtrace_deep": Configuration("vtrace", ("--torso=deep", "--log_batch_frequency=2"), target=500),
    "r2d2": Configuration("r2d2", ("--log_batch_frequency=5",), target=600),
}
# The server's, and those of gRPC 1.51; all others of a learner are TensorFlow's and Python's.
TRANSPORT_THREADS = (
    "serve inference",
    "nexting_thread",
    "event_engine",
    "default-executo",
    "resolver-execut",
    "timer_manager",
    "grpc_global_tim",
)
ACTOR_TARGET = "< 150 MB, < 10 % outside"


@dataclasses.dataclass(frozen=True)
class TrainSettings:
    configurations: str = setting(
        ",".join(CONFIGURATIONS), "What to run, in this order, with commas between."
    )
    actors: int = setting(4, "Actor processes.", minimum=1)
    envs_per_actor: int = setting(8, "Environments in each of them.", minimum=1)
    warm_up_seconds: int = setting(
        20, "Seconds from the first update to the window that is measured.", minimum=0
    )
    seconds: int = setting(60, "Length of that window.", minimum=1)

    @property
    def chosen(self) -> dict[str, Configuration]:
        names = self.configurations.split(",")
        if unknown := [name for name in names if name not in CONFIGURATIONS]:
            raise UserError(
                f"--configurations: expected some of {', '.join(CONFIGURATIONS)}, "
                f"got {', '.join(unknown)}."
            )
        return {name: CONFIGURATIONS[name] for name in names}


@dataclasses.dataclass(frozen=True)
class Split:
    """Where a run's CPU time went, in CPU seconds per second; see the module's docstring."""

    environment: float
    client: float
    inference: float
    training: float
    other: float

    @property
    def total(self) -> float:
        return sum(dataclasses.astuple(self))

    def percent(self) -> list[float]:
        """Of the total, in the order of the fields."""
        return [100 * part / self.total for part in dataclasses.astuple(self)]


@dataclasses.dataclass(frozen=True)
class Apart:
    """What a run's inference and training take by themselves, in CPU seconds per second."""

    inference: float
    training: float

    @property
    def total(self) -> float:
        return self.inference + self.training

    @classmethod
    def of(cls, window: Window, costs: Costs) -> Apart:
        batches = window.frames / costs.frames_per_step / window.batch_size
        return cls(batches * costs.inference, window.updates * costs.update)


def split(processes: Sequence[Process], apart: Apart) -> Split:
    """Tells apart what the processes used."""
    actors = [process for process in processes if process.name.startswith("actor")]
    environment = sum(actor.threads[EMULATOR_THREAD] for actor in actors)
    client = sum(actor.cpu for actor in actors) - environment
    shared = shared_by_inference_and_training(processes)
    total = sum(process.cpu for process in processes)
    return Split(
        environment=environment,
        client=client,
        inference=shared * apart.inference / apart.total,
        training=shared * apart.training / apart.total,
        other=total - environment - client - shared,
    )


def shared_by_inference_and_training(processes: Sequence[Process]) -> float:
    """What the learner used without its transport, in CPU seconds per second."""
    (learner,) = (process for process in processes if process.name == "learner")
    return learner.cpu - sum(learner.threads.get(name, 0.0) for name in TRANSPORT_THREADS)


def outside_emulator(actor: Process) -> float:
    """Percent of an actor's CPU time."""
    return 100 * (1 - actor.threads[EMULATOR_THREAD] / actor.cpu)


RUN_COLUMNS = (
    Column("configuration", width=14),
    Column("steps/s", ",.0f", width=7),
    Column("target", ",.0f", width=6),
    Column("frames/s", ",.0f"),
    Column("updates/s", ".2f"),
    Column("policy lag", ".2f"),
    Column("rows/batch", ".1f"),
    Column("cores used", ".2f"),
    *(Column(f"{field.name} %", ".0f") for field in dataclasses.fields(Split)),
    Column("apart %", ".0f"),
    Column(f"before: {calibration.COLUMN}"),
    Column("after"),
)
PROCESS_COLUMNS = (
    Column("configuration", width=14),
    Column("process", width=8),
    Column("RSS MB", ",.0f", width=7),
    Column("PSS MB", ",.0f", width=7),
    Column("cores used", ".2f"),
    Column("outside emulator %", ".1f"),
    Column("target", width=len(ACTOR_TARGET)),
)


def measure(
    configuration: Configuration, settings: TrainSettings, flags: Sequence[str]
) -> tuple[Window, Costs]:
    """Runs a configuration, and then the parts of its learner by themselves."""
    flags = [*configuration.flags, *flags]
    counts = [str(settings.actors), str(settings.envs_per_actor)]
    with tempfile.TemporaryDirectory(prefix="seed_rl_benchmark_") as logdir:
        window = training_run.watch(
            ["atari", configuration.agent, *counts, *flags],
            Path(logdir),
            settings.warm_up_seconds,
            settings.seconds,
        )
    flags.append(f"--num_envs={settings.actors * settings.envs_per_actor}")
    return window, _costs(configuration.agent, round(window.batch_size), flags)


def _costs(agent: str, rows: int, flags: Sequence[str]) -> Costs:
    """In a process of its own: TensorFlow keeps threads and flags for as long as a process."""
    options = [f"--intra_op_threads={operation_threads()}", *flags]  # those of a local run
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks.learner_costs", "atari", agent, str(rows), *options],
        env={**os.environ, "PYTHONPATH": str(_REPOSITORY)},
        capture_output=True,
        text=True,
    )
    if result.returncode != 0:
        raise UserError(f"The learner's parts could not be measured:\n{result.stderr}")
    return Costs(**json.loads(result.stdout.splitlines()[-1]))


def benchmark(settings: TrainSettings, flags: Sequence[str]) -> None:
    """Prints the tables.

    Args:
      settings: what to run and for how long.
      flags: of the runs, besides.
    """
    print(f"{machine()}; {settings.seconds} s each; flags: {' '.join(flags) or 'none'}\n")
    processes: list[tuple[str, Process]] = []
    table = Table(RUN_COLUMNS)
    try:
        for name, configuration in settings.chosen.items():
            before = calibration.measure()
            window, costs = measure(configuration, settings, flags)
            after = calibration.measure()
            table.add(name, *run_cells(configuration, window, costs), str(before), str(after))
            processes += [(name, process) for process in window.processes]
    finally:  # also of those before one that failed
        print()
        print_processes(processes)


def run_cells(configuration: Configuration, window: Window, costs: Costs) -> list[float]:
    """A run's line without its name and its calibrations."""
    apart = Apart.of(window, costs)
    parts = split(window.processes, apart)
    return [
        window.frames / costs.frames_per_step,
        configuration.target,
        window.frames,
        window.updates,
        window.policy_lag,
        window.batch_size,
        parts.total,
        *parts.percent(),
        100 * apart.total / shared_by_inference_and_training(window.processes),
    ]


def print_processes(processes: Sequence[tuple[str, Process]]) -> None:
    """Prints the table of processes, each with its configuration's name."""
    table = Table(PROCESS_COLUMNS)
    for name, process in processes:
        is_actor = process.name.startswith("actor")
        table.add(
            name,
            process.name,
            process.memory.resident / _MEGA,
            process.memory.proportional / _MEGA,
            process.cpu,
            outside_emulator(process) if is_actor else None,
            ACTOR_TARGET if is_actor else "",
        )


def main(argv: Sequence[str]) -> None:
    flags = argv[1:]
    try:
        if words := [word for word in flags if not word.startswith("-")]:
            raise UserError(f"Expected flags only, the runs' behind --, got {words[0]!r}.")
        benchmark(from_flags(TrainSettings), flags)
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    define_flags(TrainSettings)
    app.run(main)

"""How many environments the learner's inference serves, and what stops it.

    .venv/bin/python -m benchmarks.scale [--envs=8,64,512,4096] [-- --any_flag_of_the_learner=value]

Serves the real central inference (by default V-trace's on Atari) through the real server, from 8
to 4,096 synthetic environments: actors of --env_batch_size environments each, which take --step_ms
for a step of all of them, as if they had cores of their own, and send random frames. There is no
training: unrolls are taken out of the queue and dropped. For each number of environments a fresh
learner starts. Let nothing else run on the machine; its speed drifts, so a calibration stands in
each line.

"stepping %" is the share of their time that the environments step, and do not wait for actions.
"function busy %" is the share of time that the inference function runs, one batch at a time.

To see where the time goes, take a profile while a line is measured (--seconds=60; the pid: the
multiprocessing child that `top` shows at work):
  perf record --call-graph=dwarf -p PID -- sleep 5 && perf report --sort=comm,dso,sym
(perf: apt-get install linux-perf).
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from collections.abc import Sequence

import numpy as np
from absl import app

from benchmarks import calibration, inference_server, load, processes
from benchmarks.inference_server import Work
from benchmarks.load import Calls, Load, Measurement
from benchmarks.server_process import ServerProcess
from benchmarks.tables import Column, Table
from seed_rl.errors import UserError
from seed_rl.machine import cores, machine
from seed_rl.settings import define_flags, from_flags, setting
from seed_rl.types import StepType, TimeStep

FRAME = (84, 84)
_MEGA = 1e6
_SATURATED = 0.8  # of the most rows per second of any line
_MOSTLY_STEPPING = 0.5  # of their time
_AT_LIMIT = 0.9  # of the cores, or of the time


@dataclasses.dataclass(frozen=True)
class ScaleSettings:
    envs: str = setting(
        "8,16,32,64,128,256,512,1024,2048,4096",
        "Environments: numbers with commas between, multiples of --env_batch_size.",
    )
    env_batch_size: int = setting(8, "Environments of an actor, which come in one call.", minimum=1)
    step_ms: float = setting(
        20.0, "Milliseconds that an actor's environments take for a step.", minimum=0.0
    )
    seconds: float = setting(5.0, "Seconds that each line's measurement takes.", minimum=0.01)
    warm_up_seconds: float = setting(3.0, "Seconds of calls before each measurement.", minimum=0.0)
    environment: str = setting("atari", "Whose network is served; frames are 84x84 bytes.")
    agent: str = setting("vtrace", "Whose behaviour policy is served.")

    @property
    def env_counts(self) -> list[int]:
        counts = self.envs.split(",")
        if not all(
            count.isdecimal() and int(count) and int(count) % self.env_batch_size == 0
            for count in counts
        ):
            raise UserError(
                f"--envs: expected multiples of the {self.env_batch_size} of --env_batch_size "
                f"with commas between, got {self.envs!r}."
            )
        return [int(count) for count in counts]

    def load(self) -> Load:
        return Load("c++", self.seconds, self.warm_up_seconds, self.step_ms / 1e3)


@dataclasses.dataclass(frozen=True)
class Line:
    """What was measured with a number of environments.

    Attributes:
      num_envs: how many.
      rows_per_second: environments' steps that were answered.
      stepping: share of their time that the environments step.
      p50_ms, p99_ms: latency of a call.
      rows_per_batch, largest_batch: of the inference batches.
      busy: share of time that the inference function runs.
      learner_cores, load_cores: CPU seconds per second.
      learner_bytes: resident memory of the learner at the end.
    """

    num_envs: int
    rows_per_second: float
    stepping: float
    p50_ms: float | None
    p99_ms: float | None
    rows_per_batch: float
    largest_batch: int
    busy: float
    learner_cores: float
    load_cores: float
    learner_bytes: int


COLUMNS = (
    Column("environments", ",d"),
    Column("rows/s", ",.0f", width=7),
    Column("stepping %", ".0f"),
    Column("p50 ms", ",.1f", width=7),
    Column("p99 ms", ",.1f", width=7),
    Column("rows/batch", ",.1f"),
    Column("largest batch", ",d"),
    Column("function busy %", ".0f"),
    Column("learner cores", ".2f"),
    Column("load cores", ".2f"),
    Column("learner MB", ",.0f"),
    Column(calibration.COLUMN),
)


def benchmark(settings: ScaleSettings, flags: Sequence[str]) -> None:
    """Prints the table, and what it says.

    Args:
      settings: what to measure.
      flags: of the learner, besides.
    """
    counts = settings.env_counts
    calibration.measure(0.0)  # lets TensorFlow print what it prints when it starts
    print(
        f"{machine()}; {settings.agent} on {settings.environment}; steps of "
        f"{settings.step_ms:g} ms, {settings.env_batch_size} environments in a call; "
        f"{settings.seconds:g} s each; flags: {' '.join(flags) or 'none'}\n"
    )
    table = Table(COLUMNS)
    lines = []
    for num_envs in counts:
        speed = str(calibration.measure())
        line = measure(settings, num_envs, flags)
        lines.append(line)
        table.add(
            line.num_envs,
            line.rows_per_second,
            100 * line.stepping,
            line.p50_ms,
            line.p99_ms,
            line.rows_per_batch,
            line.largest_batch,
            100 * line.busy,
            line.learner_cores,
            line.load_cores,
            line.learner_bytes / _MEGA,
            speed,
        )
    print(f"\n{conclusion(lines, cores())}")


def measure(settings: ScaleSettings, num_envs: int, flags: Sequence[str]) -> Line:
    """Starts a learner for so many environments and lets them step."""
    return line(settings, num_envs, *run(settings, num_envs, flags))


def run(
    settings: ScaleSettings, num_envs: int, flags: Sequence[str]
) -> tuple[Measurement, Work, int]:
    """What came of the load, what the learner did meanwhile, and its memory in the end (bytes)."""
    with tempfile.TemporaryDirectory(prefix="seed_rl_") as directory:
        options = [
            f"--server_address=unix:{directory}/learner",
            f"--num_envs={num_envs}",
            f"--env_batch_size={settings.env_batch_size}",
            *flags,
        ]
        with ServerProcess(
            inference_server.serve, settings.environment, settings.agent, options
        ) as server:
            address = server.first_message
            arguments = actors_arguments(num_envs, settings.env_batch_size)
            calls = Calls(address, "inference", arguments)
            works: list[Work] = []
            measured = load.measure(
                address, calls, settings.load(), server.pid, lambda: works.append(server.ask(None))
            )
            return measured, works[-1], processes.memory(server.pid).resident


def actors_arguments(num_envs: int, env_batch_size: int) -> list[tuple]:
    """What each actor sends: env_ids, run_ids, and a TimeStep in the middle of an episode."""
    rng = np.random.default_rng(0)
    frames = rng.integers(256, size=(env_batch_size, *FRAME), dtype=np.uint8)
    time_step = TimeStep(
        step_type=np.full(env_batch_size, StepType.MID, np.int32),
        reward=np.zeros(env_batch_size, np.float32),
        discount=np.ones(env_batch_size, np.float32),
        observation=frames,
    )
    run_ids = np.ones(env_batch_size, np.int64)
    env_ids = np.arange(num_envs, dtype=np.int32).reshape(-1, env_batch_size)
    return [(ids, run_ids, time_step) for ids in env_ids]


def line(
    settings: ScaleSettings, num_envs: int, measured: Measurement, work: Work, memory: int
) -> Line:
    """What stands in a line of the table."""
    rows_per_second = measured.calls_per_second * settings.env_batch_size
    return Line(
        num_envs=num_envs,
        rows_per_second=rows_per_second,
        stepping=rows_per_second * settings.step_ms / 1e3 / num_envs,
        p50_ms=measured.latency_ms(50),
        p99_ms=measured.latency_ms(99),
        rows_per_batch=work.rows / max(1, work.batches),
        largest_batch=work.largest,
        busy=work.busy_seconds / measured.seconds,
        learner_cores=measured.server_cores,
        load_cores=measured.client_cores,
        learner_bytes=memory,
    )


def conclusion(lines: Sequence[Line], cores: int) -> str:
    """Where rows per second stop to grow with the environments, and why."""
    most = max(line.rows_per_second for line in lines)
    saturated = next(line for line in lines if line.rows_per_second >= _SATURATED * most)
    last = lines[-1]
    if last.stepping >= _MOSTLY_STEPPING:
        return (
            f"Does not saturate: {last.num_envs:,} environments step {100 * last.stepping:.0f}% of "
            f"their time."
        )
    return (
        f"Saturates at {saturated.num_envs:,} environments with {saturated.rows_per_second:,.0f} "
        f"rows/s, {saturated.rows_per_batch:,.0f} in a batch: {limit(saturated, cores)}. More "
        f"environments only wait longer: {last.num_envs:,} of them step "
        f"{100 * last.stepping:.1f}% of their time."
    )


def limit(line: Line, cores: int) -> str:
    """What keeps a saturated learner from answering more."""
    used = f"learner {line.learner_cores:.2f}, load {line.load_cores:.2f}, of {cores} cores"
    if line.learner_cores + line.load_cores >= _AT_LIMIT * cores:
        return f"the cores are full ({used})"
    if line.busy >= _AT_LIMIT:
        return (
            f"the inference function runs {100 * line.busy:.0f}% of the time, one batch after the "
            f"other, and does not use all cores ({used})"
        )
    return (
        f"neither the cores ({used}) nor the inference function (busy {100 * line.busy:.0f}% of "
        "the time) are at their limit, so calls wait for each other, or other programs run"
    )


def main(argv: Sequence[str]) -> None:
    flags = argv[1:]
    try:
        if words := [word for word in flags if not word.startswith("-")]:
            raise UserError(f"Expected flags only, the learner's behind --, got {words[0]!r}.")
        benchmark(from_flags(ScaleSettings), flags)
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    define_flags(ScaleSettings)
    app.run(main)

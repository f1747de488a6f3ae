"""Speed of the transport, beside servers written with grpcio alone around the same tf.function.

    .venv/bin/python -m benchmarks.rpc [--clients=1,4,16,64] [--load=c++] [--rounds=5]

Every call brings one 84x84 frame (or --rows_per_call of them). "batched" joins the rows of several
clients in one call of the function, "single" does not. Let nothing else run on the machine.

The speed of virtual machines drifts, within seconds as well. So the servers take turns, --rounds
times, and "seed_rl is times as fast" is the median of the rounds' ratios; the other figures are
those of all rounds together. A calibration stands in each line: compare figures of different
lines only if theirs are alike.

Load and server share the cores. The load "c++" is cheap, so that the server sets the pace;
"python" is what actors use, one process for each client, and where there are few cores it sets
the pace itself. "server us/row" is the CPU time of the server alone, which hardly depends on that.

To see where a server's time goes, take a profile during a long run (its pid: the multiprocessing
child that `top` shows at work):
  seed_rl         perf record --call-graph=dwarf -p PID -- sleep 5 && perf report --sort=dso,sym
                  (perf: apt-get install linux-perf)
  grpcio servers  py-spy record --threads -p PID -d 10 -o server.svg   (pip install py-spy)
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from absl import app

from benchmarks import calibration, load, rpc_servers
from benchmarks.load import Calls, Load, Measurement
from benchmarks.rpc_servers import BATCHED, FRAME, SEED_RL, SINGLE
from benchmarks.server_process import ServerProcess
from benchmarks.tables import Column, Table
from seed_rl.errors import UserError
from seed_rl.machine import machine
from seed_rl.settings import define_flags, from_flags, setting

ADDRESSES = ("unix", "tcp")
TARGET = 3.0  # times the rows per second of a grpcio server with the most clients


@dataclasses.dataclass(frozen=True)
class RpcSettings:
    clients: str = setting("1,4,16,64", "Clients that call at once: counts with commas between.")
    load: str = setting("c++", f"What calls: some of {', '.join(load.KINDS)}, with commas between.")
    rounds: int = setting(5, "How often the servers take turns for each setting.", minimum=1)
    seconds: float = setting(1.0, "Seconds that a server is measured in a round.", minimum=0.01)
    warm_up_seconds: float = setting(0.3, "Seconds of calls before each measurement.", minimum=0.0)
    rows_per_call: int = setting(1, "Frames in each call.", minimum=1)
    max_batch_size: int = setting(
        32, "Rows that run together at most where calls are batched.", minimum=1
    )

    def __post_init__(self) -> None:
        if self.rows_per_call > self.max_batch_size:
            raise UserError(
                f"--rows_per_call: expected at most the {self.max_batch_size} of "
                f"--max_batch_size, got {self.rows_per_call}."
            )

    @property
    def client_counts(self) -> list[int]:
        counts = self.clients.split(",")
        if not all(count.isdecimal() and int(count) for count in counts):
            raise UserError(
                f"--clients: expected counts with commas between, got {self.clients!r}."
            )
        return [int(count) for count in counts]

    @property
    def loads(self) -> list[Load]:
        kinds = self.load.split(",")
        if unknown := [kind for kind in kinds if kind not in load.KINDS]:
            raise UserError(
                f"--load: expected some of {', '.join(load.KINDS)}, got {', '.join(unknown)}."
            )
        return [Load(kind, self.seconds, self.warm_up_seconds) for kind in kinds]


COLUMNS = (
    Column("load", width=6),
    Column("address", width=4),
    Column("method", width=7),
    Column("clients", "d"),
    Column("server", width=14),
    Column("calls/s", ",.0f", width=7),
    Column("rows/s", ",.0f", width=7),
    Column("p50 ms", ".2f"),
    Column("p99 ms", ".2f"),
    Column("server us/row", ".0f"),
    Column("load us/row", ".0f"),
    Column("seed_rl is times as fast", ".1f"),
    Column(calibration.COLUMN),
)


@dataclasses.dataclass(frozen=True)
class Setting:
    """What the servers are compared in."""

    load: Load
    address: str
    method: str
    num_clients: int

    def __str__(self) -> str:
        return f"{self.num_clients} clients ({self.load.kind} load, {self.address}, {self.method})"


def benchmark(settings: RpcSettings) -> None:
    """Prints the table, and what it says of the target."""
    each = [
        Setting(load, address, method, count)
        for load in settings.loads
        for address in ADDRESSES
        for method in (BATCHED, SINGLE)
        for count in settings.client_counts
    ]
    conclusions = []
    with servers(settings.max_batch_size) as running:
        print(
            f"{machine()}; {settings.rounds} rounds of {settings.seconds:g} s each, "
            f"{settings.rows_per_call} frame(s) in a call, batches of at most "
            f"{settings.max_batch_size}\n"
        )
        table = Table(COLUMNS)
        for each_setting in each:
            speed = str(calibration.measure())
            rounds = [
                compare(running, each_setting, settings.rows_per_call)
                for _ in range(settings.rounds)
            ]
            ratios = compared_to_seed_rl(rounds)
            for kind in rpc_servers.KINDS:
                result = load.together([measured[kind] for measured in rounds])
                table.add(
                    *(each_setting.load.kind, each_setting.address, each_setting.method),
                    each_setting.num_clients,
                    kind,
                    *figures(result, settings.rows_per_call),
                    ratios.get(kind),
                    speed,
                )
            if each_setting.num_clients == max(settings.client_counts):
                conclusions.append(conclusion(each_setting, ratios))
    print(f"\nTo reach: {TARGET:g} times the rows/s of a server written with grpcio alone.")
    print("\n".join(conclusions))


@dataclasses.dataclass(frozen=True)
class RunningServer:
    process: ServerProcess
    addresses: Mapping[str, str]


@contextlib.contextmanager
def servers(max_batch_size: int) -> Iterator[dict[str, RunningServer]]:
    """All kinds of servers, each in a process of its own, at one address of each kind."""
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="seed_rl_"))
        running = {}
        for i, kind in enumerate(rpc_servers.KINDS):
            addresses = [f"unix:{directory}/{i}", "localhost:0"]
            process = ServerProcess(rpc_servers.serve, kind, addresses, max_batch_size)
            stack.callback(process.stop)
            running[kind] = RunningServer(
                process, dict(zip(ADDRESSES, process.first_message, strict=True))
            )
        yield running


def compare(
    running: Mapping[str, RunningServer], setting: Setting, rows_per_call: int
) -> dict[str, Measurement]:
    """Measures one server after the other, for one round; by kind.

    Raises:
      RuntimeError: an answer is wrong.
    """
    frames = client_frames(setting.num_clients, rows_per_call)
    expected = [each.sum(axis=(1, 2), dtype=np.int32) for each in frames]
    measured = {}
    for kind, server in running.items():
        address = server.addresses[setting.address]
        calls = Calls(address, setting.method, [(each,) for each in frames])
        result = load.measure(address, calls, setting.load, server.process.pid)
        if result.changed or not np.array_equal(result.replies, expected):
            raise RuntimeError(f"the server '{kind}' has given a client another one's answer")
        measured[kind] = result
    return measured


def client_frames(num_clients: int, rows_per_call: int) -> list[np.ndarray]:
    """What each client sends: uint8 [rows_per_call, 84, 84], no two alike."""
    rng = np.random.default_rng(0)
    shape = (num_clients, rows_per_call, *FRAME)
    return list(rng.integers(256, size=shape, dtype=np.uint8))


def figures(result: Measurement, rows_per_call: int) -> list[float | None]:
    """What stands in a line: calls/s, rows/s, p50, p99, CPU time of server and load per row."""
    rows_per_second = result.calls_per_second * rows_per_call
    if not rows_per_second:
        return [0.0, 0.0, None, None, None, None]
    return [
        result.calls_per_second,
        rows_per_second,
        result.latency_ms(50),
        result.latency_ms(99),
        1e6 * result.server_cores / rows_per_second,
        1e6 * result.client_cores / rows_per_second,
    ]


def compared_to_seed_rl(rounds: Sequence[Mapping[str, Measurement]]) -> dict[str, float]:
    """How many times the calls per second of each other server ours answers: median of rounds."""
    return {
        kind: statistics.median(
            measured[SEED_RL].calls_per_second / measured[kind].calls_per_second
            if measured[kind].calls_per_second
            else math.inf
            for measured in rounds
        )
        for kind in rounds[0]
        if kind != SEED_RL
    }


def conclusion(setting: Setting, ratios: Mapping[str, float]) -> str:
    """What a setting says of the target, in a line."""
    parts = [f"{ratio:.2f} times {kind}" for kind, ratio in ratios.items()]
    reached = min(ratios.values()) >= TARGET
    return f"- {setting}: {', '.join(parts)}: {'reached' if reached else 'not reached'}"


def main(argv: Sequence[str]) -> None:
    try:
        if len(argv) > 1:
            raise UserError(f"Expected flags only, got {argv[1]!r}.")
        benchmark(from_flags(RpcSettings))
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    define_flags(RpcSettings)
    app.run(main)

"""Puts load on a server and measures how it stands it.

The load comes from processes that know nothing of what they send: they are given one serialized
CallRequest for each client and call with it over and over.

- "c++": one process for all clients, load_client.cc. Cheap enough that what is measured is the
  server, even where both share few cores.
- "python": a process with a seed_rl.grpc.client.Client for each client, as actors are.

Both are started as `PROGRAM ADDRESS CLIENTS STEP_US WARM_UP_US MEASURE_US` with the requests (each
behind its size, 4 bytes) and then one byte to start in standard input, and print the lines
"connected", "measuring" and "measured NANOSECONDS". Then each client has a line: its first reply
(hexadecimal), how many it got in all, how many of them differed from the first, and the latencies
(nanoseconds) of the calls that ended while it measured.
"""

from __future__ import annotations

import dataclasses
import hashlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import processes
from seed_rl.errors import UserError
from seed_rl.grpc.client import Client
from seed_rl.grpc.codec import MethodCodec
from seed_rl.grpc.messages import service_pb2

KINDS = ("c++", "python")
_SOURCE = Path(__file__).with_name("load_client.cc")
_BUILD_DIR = Path(__file__).with_name("build")
_PYTHON_CLIENT = (sys.executable, "-m", "benchmarks.python_client")
_NANOSECONDS = 1e-9


class Calls:
    """What the clients of a load call: each the same method, with arguments of its own.

    Args:
      address: of the server, which says how the arguments are encoded.
      method: its name.
      arguments: of each client.
    """

    def __init__(self, address: str, method: str, arguments: Sequence[tuple[Any, ...]]):
        with Client(address) as client:
            self._codec = MethodCodec(client.methods[method])
        self.requests = [self._codec.encode(each)[0].SerializeToString() for each in arguments]

    def decode(self, reply: bytes) -> Any:
        """The results in a reply, as arrays."""
        return self._codec.decode(service_pb2.CallReply.FromString(reply), drop_rows=False)


@dataclasses.dataclass(frozen=True)
class Load:
    """How to call.

    Attributes:
      kind: one of KINDS.
      seconds, warm_up_seconds: for how long to measure, and to call before that.
      step_seconds: how long a client waits between a reply and its next call ("c++" only).
    """

    kind: str
    seconds: float
    warm_up_seconds: float
    step_seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class Measurement:
    """What came of a load.

    Attributes:
      seconds: for how long was measured.
      latencies: float64 seconds, of all calls that ended in that time, in no order.
      replies: results in each client's first reply.
      answered: calls that were answered in all, also before and after.
      changed: how many of them were answered otherwise than the same client's first one.
      server_cores, client_cores: CPU seconds per second that the server and the load used.
    """

    seconds: float
    latencies: np.ndarray
    replies: list[Any]
    answered: int
    changed: int
    server_cores: float
    client_cores: float

    @property
    def calls_per_second(self) -> float:
        return len(self.latencies) / self.seconds

    def latency_ms(self, percent: float) -> float | None:
        """The latency within which so many percent of the calls are answered; None without any."""
        return percentile(self.latencies, percent) * 1e3 if len(self.latencies) else None


def together(parts: Sequence[Measurement]) -> Measurement:
    """Several measurements of the same load as one; all of them have the same length."""
    return Measurement(
        seconds=sum(part.seconds for part in parts),
        latencies=np.concatenate([part.latencies for part in parts]),
        replies=parts[0].replies,
        answered=sum(part.answered for part in parts),
        changed=sum(part.changed for part in parts),
        server_cores=statistics.mean(part.server_cores for part in parts),
        client_cores=statistics.mean(part.client_cores for part in parts),
    )


def percentile(values: np.ndarray, percent: float) -> float:
    """The least of the values that at least `percent` percent of them do not exceed."""
    return float(np.percentile(values, percent, method="inverted_cdf"))


def measure(
    address: str,
    calls: Calls,
    load: Load,
    server_pid: int,
    at_edges: Callable[[], Any] = lambda: None,
) -> Measurement:
    """Calls a server from as many clients as there are requests, all connected at once.

    Args:
      address: of the server.
      calls: what to call.
      load: how.
      server_pid: whose CPU time is the server's.
      at_edges: called when the measurement begins, and again when it ends.

    Raises:
      RuntimeError: the load failed; what it printed says why.
      UserError: the load cannot be built.
    """
    generators: list[_Generator] = []
    try:
        for program, requests in _programs(calls.requests, load.kind):
            generators.append(_Generator(program, address, requests, load))
        return _measure(generators, calls, server_pid, at_edges)
    finally:
        for generator in generators:
            generator.close()


def _measure(
    generators: Sequence[_Generator],
    calls: Calls,
    server_pid: int,
    at_edges: Callable[[], Any],
) -> Measurement:
    def cpu_seconds() -> tuple[float, float, float]:
        server = processes.cpu_time(server_pid).total
        clients = sum(processes.cpu_time(generator.pid).total for generator in generators)
        return time.monotonic(), server, clients

    for generator in generators:
        generator.wait_for("connected")
    for generator in generators:
        generator.start()
    for generator in generators:
        generator.wait_for("measuring")
    at_edges()
    before = cpu_seconds()
    # Of many processes the first one that is done ends the time in which all of them called.
    windows = [generators[0].wait_for("measured")]
    elapsed, server, clients = np.subtract(cpu_seconds(), before)
    at_edges()
    windows += [generator.wait_for("measured") for generator in generators[1:]]
    lines = [line.split() for generator in generators for line in generator.results()]
    return Measurement(
        seconds=float(np.mean([int(window) for window in windows])) * _NANOSECONDS,
        latencies=np.array([int(x) for line in lines for x in line[3:]]) * _NANOSECONDS,
        replies=[calls.decode(bytes.fromhex(line[0])) for line in lines],
        answered=sum(int(line[1]) for line in lines),
        changed=sum(int(line[2]) for line in lines),
        server_cores=server / elapsed,
        client_cores=clients / elapsed,
    )


def _programs(requests: Sequence[bytes], kind: str) -> list[tuple[Sequence[str], Sequence[bytes]]]:
    """The processes of a load: what to run, and the requests of its clients."""
    if kind == "c++":
        return [((str(build_client()),), requests)]
    return [(_PYTHON_CLIENT, [request]) for request in requests]


class _Generator:
    """A process that makes load."""

    def __init__(self, program: Sequence[str], address: str, requests: Sequence[bytes], load: Load):
        durations = (load.step_seconds, load.warm_up_seconds, load.seconds)
        numbers = (len(requests), *(round(seconds * 1e6) for seconds in durations))
        self._command = [*program, address, *map(str, numbers)]
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._write(b"".join(struct.pack("=I", len(each)) + each for each in requests))

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self) -> None:
        self._write(b"\n")

    def wait_for(self, word: str) -> str:
        """Reads the line that begins with `word`; returns the rest of it."""
        assert self._process.stdout is not None
        first, _, rest = self._process.stdout.readline().decode().strip().partition(" ")
        if first != word:
            self._fail()
        return rest

    def results(self) -> list[str]:
        """The clients' lines."""
        assert self._process.stdout is not None
        lines = self._process.stdout.read().decode().splitlines()
        if self._process.wait() != 0:
            self._fail()
        return lines

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except BrokenPipeError:
            self._fail()

    def _fail(self) -> None:
        code = self._process.wait()
        raise RuntimeError(f"'{' '.join(self._command)}' ended with exit code {code}")


def build_client(build_dir: Path = _BUILD_DIR) -> Path:
    """Compiles load_client.cc unless that was done already; returns the program.

    Raises:
      UserError: it cannot be compiled here.
    """
    version = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]
    program = build_dir / f"load_client-{version}"
    if program.exists():
        return program
    print("Compiling the load (half a minute).", file=sys.stderr, flush=True)
    build_dir.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build_dir) as directory:
        built = Path(directory, "load_client")
        flags = _run(["pkg-config", "--cflags", "--libs", "grpc++"]).split()
        options = ["-O2", "-std=c++17", "-Wall", "-Wl,--as-needed", "-o", str(built)]
        _run(["g++", str(_SOURCE), *options, *flags])
        built.rename(program)  # whole or not at all
    return program


def _run(command: list[str]) -> str:
    try:
        return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise UserError(
            f"--load: expected the tools of ./setup.sh to compile the load with, got: {error}"
        ) from error

"""The launcher as users start it: real processes around a domain with nothing to learn."""

import contextlib
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from seed_rl import local, starts
from seed_rl.local import operation_threads

REPOSITORY = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 60.0

# Learner and actors that note their process ids in <logdir>/<role>.pids and wait for their end.
ECHO_MAIN = """
import argparse, os, pathlib, signal, socket, subprocess, sys, time

parser = argparse.ArgumentParser(allow_abbrev=False)
numbers = ("num_envs", "env_batch_size", "task", "intra_op_threads")
for name in ("run_mode", "server_address", *numbers):
    parser.add_argument("--" + name)
parser.add_argument("--logdir", type=pathlib.Path)
parser.add_argument("--game")
parser.add_argument("--learner_exits_with", type=int)
parser.add_argument("--complaint")
parser.add_argument("--actors_complain", action="store_true")
parser.add_argument("--stubborn", action="store_true", help="do not end when asked to")
arguments = parser.parse_args()


def note(role, text):
    with open(arguments.logdir / role, "a") as file:
        file.write(f"{text}\\n")


def actor():
    if arguments.actors_complain:
        sys.exit(f"Error: {arguments.complaint}")
    note("offspring.pids", subprocess.Popen(["sleep", "1000"]).pid)
    note(f"actor_{arguments.task}.pids", os.getpid())
    signal.pause()


def save_and_exit(*_):
    note("checkpoint", "saved")
    sys.exit()


def learner():
    signal.signal(signal.SIGTERM, signal.SIG_IGN if arguments.stubborn else save_and_exit)
    server = socket.socket(socket.AF_UNIX)
    server.bind(arguments.server_address.removeprefix("unix:"))
    note("arguments", " ".join(sys.argv[1:]))
    print("training", flush=True)
    note("learner.pids", os.getpid())
    while arguments.learner_exits_with is None or not (arguments.logdir / "actor_0.pids").exists():
        time.sleep(0.05)
    if arguments.complaint:
        print(f"Error: {arguments.complaint}\\n" + "noise of a library\\n" * 30, file=sys.stderr)
    print("the learner's last words", file=sys.stderr)
    sys.exit(arguments.learner_exits_with)


actor() if arguments.run_mode == "actor" else learner()
"""


class Launcher:
    """A launcher with one learner and two actors, in a directory that holds the domain `toy`."""

    def __init__(self, home: Path, *options: str):
        self.logdir = home / "log dir"
        self.process = subprocess.Popen(
            command(
                "toy", "echo", "2", "3", "--notensorboard", f"--logdir={self.logdir}", *options
            ),
            cwd=home,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_until_running(self) -> None:
        wait_for(lambda: all(self.pids(role) for role in ("learner", "actor_0", "actor_1")))

    def pids(self, role: str) -> list[int]:
        """The process ids that the role had, oldest first."""
        file = self.logdir / f"{role}.pids"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def children(self) -> list[int]:
        pid = self.process.pid
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]

    @property
    def scratch(self) -> Path:
        """Where the learner's socket is."""
        (path,) = re.findall(r"--server_address=unix:(\S+)", self.arguments)
        return Path(path).parent

    @property
    def arguments(self) -> str:
        """The learner's."""
        return (self.logdir / "arguments").read_text().rstrip()

    def survivors(self) -> list[int]:
        every = [pid for file in self.logdir.glob("*.pids") for pid in self.pids(file.stem)]
        return [pid for pid in every if is_alive(pid)]

    def finish(self) -> tuple[int, str, str]:
        """Waits for the end; returns exit code, output and errors."""
        output, errors = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, output, errors


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "seed_rl.local", *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(REPOSITORY)}


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.05)


def read_to_end(terminal: int) -> str:
    """What processes write to a terminal until the last of them has closed it."""
    output = b""
    with contextlib.suppress(OSError):  # how a terminal says that nobody is left
        while chunk := os.read(terminal, 4096):
            output += chunk
    os.close(terminal)
    return output.decode()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url) as reply:
            return reply.status == 200
    except OSError:
        return False


def program(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    domain = tmp_path / "toy"
    domain.mkdir()
    (domain / "echo_main.py").write_text(ECHO_MAIN)
    return tmp_path


@pytest.fixture
def launch(home: Path) -> Iterator[Callable[..., Launcher]]:
    launchers: list[Launcher] = []

    def start(*options: str) -> Launcher:
        launchers.append(Launcher(home, *options))
        return launchers[-1]

    yield start
    for launcher in launchers:
        launcher.process.terminate()
        launcher.finish()
        for pid in launcher.survivors():
            os.kill(pid, signal.SIGKILL)


def refusal(home: Path, *arguments: str) -> str:
    """What the launcher says to a command line that it does not take."""
    result = subprocess.run(
        command(*arguments),
        cwd=home,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    return result.stderr


def test_stop_signal_saves_a_checkpoint_and_ends_all(launch):
    launcher = launch("--game=Pong")
    launcher.wait_until_running()
    launcher.process.send_signal(signal.SIGINT)
    code, output, errors = launcher.finish()
    assert code == 0
    assert (launcher.logdir / "checkpoint").read_text() == "saved\n"
    assert launcher.survivors() == []
    assert errors == ""
    assert "training\n" in output
    assert "Logs: log dir/logs\n" in output
    assert not launcher.scratch.exists()
    assert "\r" not in output and "\x1b" not in output


def test_users_flags_go_to_the_learner_behind_the_launchers_own(launch):
    launcher = launch("--game", "Pong", "--env_batch_size=5")
    launcher.wait_until_running()
    assert "--run_mode=learner" in launcher.arguments
    assert " --env_batch_size=3 " in launcher.arguments and " --num_envs=6 " in launcher.arguments
    assert f"--intra_op_threads={operation_threads()} " in launcher.arguments
    assert launcher.arguments.endswith(" --game Pong --env_batch_size=5")
    assert "tensorboard" not in launcher.arguments


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 1), (3, 1), (16, 8)])
def test_half_the_cores_are_for_an_operation_of_the_learner(cores, threads, monkeypatch):
    monkeypatch.setattr(local, "cores", lambda: cores)
    assert operation_threads() == threads


def test_relative_logdir_is_the_callers(launch, home):
    launcher = launch("--logdir=mine")
    wait_for(lambda: (home / "mine" / "learner.pids").exists())
    assert (home / "mine" / "logs" / "learner.log").exists()
    launcher.process.terminate()
    assert launcher.finish()[0] == 0


def test_ctrl_c_of_a_terminal_reaches_the_learner_once(home):
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(home)
        os.execve(sys.executable, command("toy", "echo", "1", "--logdir=run"), environment())
    wait_for(lambda: (home / "run" / "actor_0.pids").exists())
    os.write(terminal, b"\x03")
    output = read_to_end(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert (home / "run" / "checkpoint").read_text() == "saved\n"
    assert "TensorBoard: http://localhost:" in output
    assert "Stopping: the learner saves a checkpoint" in output


def test_tensorboard_finds_a_free_port_and_ends_with_the_run(launch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        launcher = launch("--tensorboard", f"--tensorboard_port={port}")
        lines = iter(launcher.process.stdout.readline, "")
        url = next(line.split()[1] for line in lines if line.startswith("TensorBoard: "))
    assert url.startswith("http://localhost:") and not url.endswith(f":{port}")
    wait_for(lambda: answers(url))
    launcher.process.terminate()
    assert launcher.finish()[0] == 0
    assert not answers(url)


def test_end_of_tensorboard_is_told_and_ends_nothing_else(launch):
    launcher = launch("--tensorboard")
    launcher.wait_until_running()
    (tensorboard,) = (pid for pid in launcher.children() if "tensorboard.main" in program(pid))
    os.kill(tensorboard, signal.SIGKILL)
    lines = iter(launcher.process.stdout.readline, "")
    assert any(line.startswith("TensorBoard was ended by SIGKILL; its log: ") for line in lines)
    assert launcher.process.poll() is None


def test_second_stop_signal_kills(launch):
    launcher = launch("--stubborn")
    launcher.wait_until_running()
    launcher.process.send_signal(signal.SIGINT)
    assert any("Stopping" in line for line in launcher.process.stdout)
    launcher.process.send_signal(signal.SIGINT)
    code, _, errors = launcher.finish()
    assert code == 128 + signal.SIGKILL
    assert errors == ""  # the user knows why
    assert launcher.survivors() == []


def test_dead_actor_is_restarted(launch):
    launcher = launch()
    launcher.wait_until_running()
    os.kill(launcher.pids("actor_1")[0], signal.SIGKILL)
    wait_for(lambda: len(launcher.pids("actor_1")) == 2)
    launcher.process.terminate()
    code, output, _ = launcher.finish()
    assert code == 0
    assert "actor_01 was ended by SIGKILL and was started again" in output
    assert len(launcher.pids("actor_0")) == 1
    assert launcher.survivors() == []


@pytest.mark.parametrize("code", [0, 7])
def test_end_of_the_learner_ends_the_run_with_its_code(launch, code):
    launcher = launch(f"--learner_exits_with={code}")
    returned, _, errors = launcher.finish()
    assert returned == code
    assert ("the learner's last words" in errors) == (code != 0)
    assert launcher.survivors() == []


def test_users_mistake_is_told_without_what_libraries_print(launch, home):
    for complaint in "--x: first.", "--x: second.":
        launcher = launch("--learner_exits_with=1", f"--complaint={complaint}")
        code, _, errors = launcher.finish()
        assert code == 1
        assert errors == f"From log dir/logs/learner.log:\n  Error: {complaint}\n"


def test_mistake_that_only_actors_find_ends_the_run_with_its_sentence(launch):
    launcher = launch("--actors_complain", "--complaint=--engine: missing.")
    code, output, errors = launcher.finish()
    assert code == 1
    assert re.fullmatch(
        r"From log dir/logs/actor_0[01].log:\n  Error: --engine: missing.\n", errors
    )
    assert "was started again" not in output
    assert (launcher.logdir / "checkpoint").exists()  # the learner was asked, not killed
    assert launcher.survivors() == []


def test_killed_learner_takes_its_actors_with_it(launch):
    launcher = launch()
    launcher.wait_until_running()
    os.kill(launcher.pids("learner")[0], signal.SIGKILL)
    code, output, errors = launcher.finish()
    assert code == 128 + signal.SIGKILL
    assert "The learner was ended by SIGKILL." in output
    assert "log dir/logs/learner.log" in errors
    assert launcher.survivors() == []


def test_nothing_survives_a_killed_launcher(launch):
    launcher = launch()
    launcher.wait_until_running()
    every = [launcher.pids(role)[0] for role in ("learner", "actor_0", "actor_1")]
    launcher.process.kill()
    wait_for(lambda: not any(map(is_alive, every)))
    shutil.rmtree(launcher.scratch)


def test_unknown_flag_is_the_learners_error_and_starts_no_actor(launch):
    launcher = launch("--gane=Pong")
    code, output, errors = launcher.finish()
    assert code == 2
    assert "unrecognized arguments: --gane=Pong" in errors
    assert "actor" not in output
    assert not list(launcher.logdir.glob("logs/actor*"))


def test_logdir_of_a_living_run_is_refused(launch, home):
    launcher = launch()
    launcher.wait_until_running()
    message = refusal(home, "toy", "echo", "1", f"--logdir={launcher.logdir}")
    assert f"process {launcher.process.pid}" in message
    assert launcher.process.poll() is None


def test_run_can_go_on_in_its_logdir(launch):
    for count in (1, 2):
        launcher = launch()
        wait_for(lambda: len(launcher.pids("actor_1")) == count)  # noqa: B023
        launcher.process.terminate()
        assert launcher.finish()[0] == 0


def test_every_start_is_written_down_as_it_was_typed(launch):
    every_options = ((), ("--game", "Pong"), ("--gane=x",))  # the last is refused
    for number, options in enumerate(every_options, start=1):
        launcher = launch(*options)
        wait_for(lambda: len(starts.read(launcher.logdir)) == number)  # noqa: B023
        launcher.process.terminate()
        launcher.finish()
    typed = "./run_local.sh toy echo 2 3 --notensorboard"
    assert [start.command for start in starts.read(launcher.logdir)] == [
        f"{typed} '--logdir={launcher.logdir}'{options}"
        for options in ("", " --game Pong", " --gane=x")
    ]


def test_stop_script_stops_the_named_run_only(launch, home):
    def stop() -> subprocess.CompletedProcess:
        script = [REPOSITORY / "stop_local.sh", f"--logdir={launcher.logdir.name}"]
        return subprocess.run(script, cwd=home, capture_output=True, text=True, timeout=90)

    launcher, other = launch(), launch("--logdir=other")
    launcher.wait_until_running()
    wait_for(lambda: (home / "other" / "learner.pids").exists())
    stopped = stop()
    assert stopped.returncode == 0
    assert "stopped: 1" in stopped.stdout
    assert launcher.finish()[0] == 0
    assert launcher.survivors() == []
    assert other.process.poll() is None

    assert stop().returncode == 1  # its lock file is still there, its process is not
    assert stop().stdout == "no run to stop\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Expected run_local.sh ENVIRONMENT AGENT NUM_ACTORS"),
        (("toy", "echo"), "got: toy echo"),
        (("toy", "echo", "1", "2", "3"), "got: toy echo 1 2 3"),
        (("toy", "ehco", "1"), "got 'toy ehco'; there are: "),
        (("toy", "ehco", "1"), "toy echo"),
        (
            ("toy", "echo", "none"),
            "NUM_ACTORS: expected a whole number from 1 to 999999, got 'none'.",
        ),
        (
            ("toy", "echo", "1", "0"),
            "ENVS_PER_ACTOR: expected a whole number from 1 to 999999, got '0'.",
        ),
        (("toy", "echo", "1", "--tensorboard_port=x"), "tensorboard_port"),
        (("toy", "echo", "1", "--flagfile=missing.flags"), "missing.flags"),
        (("toy", "echo", "1", "--logdir=gs://bucket/run"), "--logdir: expected a directory"),
        (("toy", "echo", "1", "--logdir=toy/echo_main.py/run"), "--logdir: cannot make"),
    ],
)
def test_wrong_command_lines(home, arguments, message):
    assert message in refusal(home, *arguments)


def test_help_is_the_main_modules(home):
    result = subprocess.run(
        command("toy/", "echo", "--help"),
        cwd=home,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0
    assert "--learner_exits_with" in result.stdout


@pytest.mark.skipif(
    not (REPOSITORY / ".venv" / "seed_rl.stamp").exists(), reason="needs what ./setup.sh makes"
)
def test_run_script_finds_domains_and_logdir_where_it_is_called(home):
    script = [REPOSITORY / "run_local.sh", "toy", "echo", "1", "--notensorboard", "--logdir=run"]
    result = subprocess.run(
        [*script, "--learner_exits_with=7"], cwd=home, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 7
    assert (home / "run" / "logs" / "actor_00.log").exists()

"""Signals and mistakes on machines of actors and of the learner; real clusters are in
tests/end_to_end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

# A domain whose learner and actors only say so, and do what their flags tell.
MAIN = """
import os, signal, sys, time
if "--run_mode=learner" in sys.argv:
    signal.signal(signal.SIGTERM, lambda *_: (print("saved", flush=True), sys.exit(0)))
print("runs", *sys.argv[1:], flush=True)
if "--mistake" in sys.argv:
    sys.exit("Error: --mistake: expected none, got one.")
if "--crash" in sys.argv and not os.path.exists("crashed"):
    open("crashed", "w").close()
    sys.exit(70)
time.sleep(100)
"""


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "wait_main.py").write_text(MAIN)
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def start(
    machines: list[subprocess.Popen[str]], folder: Path, role: str, *flags: str, count: int = 2
) -> subprocess.Popen[str]:
    variables = {"SEED_RL_ROLE": role, "SEED_RL_LEARNER_ADDRESS": "localhost:1"}
    machines.append(
        subprocess.Popen(
            [sys.executable, "-u", "-m", "gcp.run", "toy", "wait", str(count), "3", *flags],
            cwd=folder,
            env={**os.environ, **variables, "PYTHONPATH": f"{REPOSITORY}:{folder}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    )
    return machines[-1]


def wait_for(process: subprocess.Popen[str], text: str) -> str:
    assert process.stdout
    for line in process.stdout:
        if text in line:
            return line
    raise AssertionError(f"ended without '{text}'")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_learner_saves_whatever_signal_comes(machines, tmp_path, number) -> None:
    process = start(machines, tmp_path, "learner", "--num_actor_machines=4")
    assert "--num_envs=24 " in wait_for(process, "runs")
    process.send_signal(number)
    assert "saved" in wait_for(process, "saved")
    assert process.wait(60) == 128 + number


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_machine_of_actors(machines, tmp_path, number) -> None:
    process = start(machines, tmp_path, "actor", "--actor_machine=3")
    assert "--task=6" in wait_for(process, "runs")
    process.send_signal(number)
    assert process.wait(60) == 128 + number


def test_a_mistake_ends_a_machine_of_actors(machines, tmp_path) -> None:
    process = start(machines, tmp_path, "actor", "--mistake")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Error: --mistake: expected none, got one." in output


def test_actors_are_started_again_though_nobody_reads_what_they_print(machines, tmp_path) -> None:
    process = start(machines, tmp_path, "actor", "--crash", count=1)
    assert process.stdout
    process.stdout.close()
    crashed = tmp_path / "crashed"
    deadline = 600
    while not crashed.exists() and deadline:
        deadline -= 1
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.1)
    assert crashed.exists()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2.0)

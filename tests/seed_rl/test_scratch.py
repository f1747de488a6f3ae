"""Folders for temporary files, with real processes that end in every way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from seed_rl import scratch

REPOSITORY = Path(__file__).resolve().parents[2]

# Leaves a file as an engine would, says so, and waits; or ends on its own.
PROCESS = """
import os, sys, tempfile, time
from seed_rl import actor, scratch

with scratch.temporary_folder() as folder:
    actor.exit_on_signals(clean_up=lambda: scratch.remove(folder))
    made = tempfile.mkdtemp()
    open(made + "/file", "w").close()
    print(made, flush=True)
    ending = sys.argv[1]
    if ending == "signal":
        time.sleep(1_000)
    elif ending == "error":
        raise ZeroDivisionError
    elif ending == "exit":
        sys.exit(3)
    elif ending == "engine":
        os._exit(1)
"""


def start(shared: Path, ending: str = "signal") -> tuple[subprocess.Popen[str], Path]:
    """A process and the folder that it made for a file of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROCESS, ending],
        env={**os.environ, "TMPDIR": str(shared), "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout
    made = Path(process.stdout.readline().strip())
    assert made.is_relative_to(shared)
    return process, made


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    process, made = start(tmp_path)
    yield process, made
    process.kill()
    process.wait()


@pytest.mark.parametrize("ending", ["end of the block", "error", "exit"])
def test_folder_goes_when_a_process_ends(ending: str, tmp_path: Path) -> None:
    process, _ = start(tmp_path, ending)
    assert process.wait(60) == {"end of the block": 0, "error": 1, "exit": 3}[ending]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_folder_goes_when_a_signal_ends_a_process(
    number: signal.Signals, running: tuple[subprocess.Popen[str], Path], tmp_path: Path
) -> None:
    process, made = running
    assert (made / "file").exists()
    process.send_signal(number)
    assert process.wait(60) == 128 + number
    assert not list(tmp_path.iterdir())


def test_next_process_removes_what_a_killed_one_left(
    running: tuple[subprocess.Popen[str], Path], tmp_path: Path
) -> None:
    process, made = running
    process.kill()
    process.wait()
    assert (made / "file").exists()
    start(tmp_path, "end of the block")[0].wait(60)
    assert not list(tmp_path.iterdir())


def test_next_process_removes_what_an_engine_left_that_ended_its_process(tmp_path: Path) -> None:
    process, made = start(tmp_path, "engine")
    assert process.wait(60) == 1
    assert (made / "file").exists()
    start(tmp_path, "end of the block")[0].wait(60)
    assert not list(tmp_path.iterdir())


def test_folders_of_running_processes_stay(
    running: tuple[subprocess.Popen[str], Path], tmp_path: Path
) -> None:
    _, made = running
    start(tmp_path, "end of the block")[0].wait(60)
    assert (made / "file").exists()


def test_files_of_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    target = tmp_path / "target"
    target.mkdir()
    (tmp_path / "seed_rl_scratch_link").symlink_to(target)
    (tmp_path / "seed_rl_scratch_file").write_text("mine")
    (tmp_path / "other").mkdir()
    with scratch.temporary_folder():
        pass
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"target", "seed_rl_scratch_link", "seed_rl_scratch_file", "other"}


def test_temporary_files_go_there_during_the_block_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with scratch.temporary_folder() as folder:
        assert folder.parent == tmp_path
        assert tempfile.gettempdir() == str(folder)
    assert tempfile.gettempdir() == str(tmp_path)
    assert not folder.exists()

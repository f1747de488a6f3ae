"""What a run writes down on how it was started, with a real git repository."""

from __future__ import annotations

import datetime
import os
import re
import subprocess
from pathlib import Path

import pytest

from seed_rl import starts
from seed_rl.machine import machine


def git(directory: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    command = ["git", "-C", str(directory), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """With one commit of one file."""
    directory = tmp_path / "repository"
    directory.mkdir()
    git(directory, "init")
    (directory / "tracked").write_text("old\n")
    git(directory, "add", "tracked")
    git(directory, "commit", "--message=one")
    return directory


def test_commit_of_a_clean_tree(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    assert len(head) == 40
    assert starts.commit(repository) == f"commit {head}"


def test_changed_files_are_told_untracked_ones_are_not(repository: Path) -> None:
    (repository / "untracked").touch()
    assert not starts.commit(repository).endswith("changes")
    (repository / "tracked").write_text("new\n")
    assert starts.commit(repository).endswith(" with changes")


def test_folder_without_git_has_no_commit(tmp_path: Path) -> None:
    assert starts.commit(tmp_path) == "commit unknown"


def test_folder_in_somebody_elses_checkout_has_no_commit(repository: Path) -> None:
    (repository / "unpacked").mkdir()
    assert starts.commit(repository / "unpacked") == "commit unknown"


def test_machine_without_git_has_no_commit(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(repository))
    assert starts.commit(repository) == "commit unknown"


def test_started_from_a_git_hook_it_is_still_this_repository(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = starts.commit(repository)
    git(tmp_path, "init", "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    assert starts.commit(repository) == expected


def test_starts_are_read_as_they_were_recorded(repository: Path, tmp_path: Path) -> None:
    before = datetime.datetime.now().astimezone().replace(microsecond=0)
    starts.record(tmp_path, repository, ["./run_local.sh", "atari", "--logdir=my run"])
    starts.record(tmp_path, tmp_path, ["./run_local.sh", "two\nlines"])
    first, second = starts.read(tmp_path)
    assert before <= datetime.datetime.fromisoformat(first.time)
    assert first.commit == starts.commit(repository)
    assert first.machine == machine()
    assert first.command == "./run_local.sh atari '--logdir=my run'"
    assert second.commit == "commit unknown"
    assert second.command == "./run_local.sh 'two\nlines'"


def test_logdir_without_the_file_has_no_starts(tmp_path: Path) -> None:
    assert starts.read(tmp_path) == []


def test_machine_names_the_processor_and_the_cores_that_are_ours() -> None:
    cores = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(cores)})
        assert re.fullmatch(r"\S.*, 1 core", machine())
    finally:
        os.sched_setaffinity(0, cores)

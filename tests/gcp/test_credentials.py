"""Tokens and certificates as the launch scripts make them, and as machines fetch them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from gcp import credentials
from seed_rl import security
from seed_rl.errors import UserError
from seed_rl.grpc.client import Client
from seed_rl.grpc.errors import ConnectionTimeoutError
from seed_rl.grpc.server import Server
from seed_rl.security import SecuritySettings
from tests.cloud_storage import serving


@pytest.fixture
def made(tmp_path: Path) -> Path:
    credentials.make(tmp_path / "made")
    return tmp_path / "made"


def test_they_are_private_and_each_time_others(made: Path, tmp_path: Path) -> None:
    credentials.make(tmp_path / "others")
    for name in credentials.FILES:
        assert (made / name).read_bytes() != (tmp_path / "others" / name).read_bytes()
    for name in credentials.TOKEN, credentials.KEY:
        assert stat.S_IMODE((made / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(made.stat().st_mode) == 0o700


def test_those_that_are_there_stay(made: Path) -> None:
    token = (made / credentials.TOKEN).read_bytes()
    with pytest.raises(UserError, match=r"FOLDER: expected one without token, cert.pem, key.pem"):
        credentials.make(made)
    assert (made / credentials.TOKEN).read_bytes() == token


def test_machines_fetch_them_from_a_bucket(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving("jobs", monkeypatch) as bucket:
        bucket.objects = {f"a run/x/{n}": (made / n).read_bytes() for n in credentials.FILES}
        for role, names in ("actor", {"token", "cert.pem"}), ("learner", set(credentials.FILES)):
            target = tmp_path / role
            target.mkdir()
            assert credentials.fetch("gs://jobs/a run/x/", target, role) == target
            assert {file.name for file in target.iterdir()} == names
            for name in names:
                assert (target / name).read_bytes() == (made / name).read_bytes()


def test_a_folder_of_this_machine_is_taken_as_it_is(made: Path, tmp_path: Path) -> None:
    assert credentials.fetch(str(made), tmp_path, "learner") == made


def test_a_bucket_without_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        serving("jobs", monkeypatch),
        pytest.raises(UserError, match=r"--credentials: expected .* got gs://jobs/x"),
    ):
        credentials.fetch("gs://jobs/x", tmp_path, "actor")


@pytest.mark.parametrize("trusted", ["made", "others"])
def test_actors_take_the_learner_that_has_them_and_no_other(
    made: Path, tmp_path: Path, trusted: str
) -> None:
    credentials.make(tmp_path / "others")
    learner = security.of_learner(_settings(credentials.flags(made, "learner")))
    actor = security.of_actor(_settings(credentials.flags(tmp_path / trusted, "actor")))
    assert learner.key and not actor.key
    with Server(["127.0.0.1:0"], security=learner) as server:
        server.start()
        if trusted == "made":
            Client(server.addresses[0], 30.0, actor).close()
        else:
            with pytest.raises(ConnectionTimeoutError, match=r"(?i)certificate"):
                Client(server.addresses[0], 1.0, actor)


def _settings(flags: list[str]) -> SecuritySettings:
    return SecuritySettings(**dict(flag.removeprefix("--").split("=", 1) for flag in flags))

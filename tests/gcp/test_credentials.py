"""Tokens and certificates as the launch scripts make them, and as machines fetch them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from gcp import credentials
from seed_rl.errors import UserError
from seed_rl.grpc.security import Security
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
        assert credentials.fetch("gs://jobs/a run/x/", tmp_path) == tmp_path
    for name in credentials.FILES:
        assert (tmp_path / name).read_bytes() == (made / name).read_bytes()


def test_a_folder_of_this_machine_is_taken_as_it_is(made: Path, tmp_path: Path) -> None:
    assert credentials.fetch(str(made), tmp_path) == made


def test_a_bucket_without_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        serving("jobs", monkeypatch),
        pytest.raises(UserError, match=r"--credentials: expected .* got gs://jobs/x"),
    ):
        credentials.fetch("gs://jobs/x", tmp_path)


def test_the_certificate_names_the_learner(made: Path) -> None:
    flags = dict(flag.removeprefix("--").split("=", 1) for flag in credentials.flags(made))
    certificate = Path(flags["tls_cert"]).read_bytes()
    assert Security(certificate).encrypts
    from cryptography import x509

    names = x509.load_pem_x509_certificate(certificate).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert names.value.get_values_for_type(x509.DNSName) == [flags["tls_server_name"]]

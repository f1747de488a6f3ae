"""The flags of the network's security."""

from __future__ import annotations

import pathlib

import pytest
import trustme

from seed_rl import security
from seed_rl.errors import UserError
from seed_rl.security import SecuritySettings

CERTIFICATE, OTHER = (trustme.CA().issue_cert("learner") for _ in range(2))


@pytest.fixture
def files(tmp_path: pathlib.Path) -> pathlib.Path:
    """Files of one certificate, of another's key, of tokens, and of no certificate."""
    (tmp_path / "cert").write_bytes(CERTIFICATE.cert_chain_pems[0].bytes())
    (tmp_path / "key").write_bytes(CERTIFICATE.private_key_pem.bytes())
    (tmp_path / "other key").write_bytes(OTHER.private_key_pem.bytes())
    (tmp_path / "token").write_text("sixteen-letters!\n")
    (tmp_path / "long").write_text("letters" * 1_000)
    (tmp_path / "short").write_text("fifteen-letters")
    (tmp_path / "lines").write_text("sixteen-letters!\nsixteen-letters!\n")
    (tmp_path / "accents").write_text("sixteen-lettrés!\n")
    (tmp_path / "empty").write_text("")
    (tmp_path / "folder").mkdir()
    return tmp_path


def settings(files: pathlib.Path, **names: str) -> SecuritySettings:
    return SecuritySettings(**{flag: str(files / name) for flag, name in names.items()})


def test_files_are_read(files: pathlib.Path) -> None:
    given = settings(files, tls_cert="cert", tls_key="key", tls_ca="cert", auth_token_file="token")
    for load in security.of_learner, security.of_actor:
        loaded = load(given)
        assert loaded.certificate == loaded.ca == CERTIFICATE.cert_chain_pems[0].bytes()
        assert loaded.key == CERTIFICATE.private_key_pem.bytes()
        assert loaded.token == "sixteen-letters!"


@pytest.mark.parametrize(
    "names, message",
    [
        ({"tls_cert": "cert", "tls_key": "other key"}, "--tls_key: .*cert.* in PEM form"),
        ({"tls_cert": "token", "tls_key": "key"}, "--tls_cert: .* in PEM form, got .*token"),
        ({"tls_cert": "cert", "tls_key": "token"}, "--tls_key: .*in PEM form, .*token"),
        ({"tls_cert": "missing", "tls_key": "key"}, "--tls_cert: .*missing .No such file"),
        ({"tls_cert": "folder", "tls_key": "key"}, "--tls_cert: .*folder .Is a directory"),
        ({"tls_cert": "cert", "tls_key": "key", "tls_ca": "empty"}, "--tls_ca: .* PEM form"),
        ({"tls_key": "key"}, "--tls_cert: expected one beside --tls_key="),
        ({"auth_token_file": "missing"}, "--auth_token_file: .*missing .No such file"),
        ({"auth_token_file": "short"}, "--auth_token_file: .* 16 to 4096 .* in .*short"),
        ({"auth_token_file": "long"}, "--auth_token_file: .* 16 to 4096 .* in .*long"),
        ({"auth_token_file": "lines"}, "--auth_token_file: expected one line"),
        ({"auth_token_file": "accents"}, "--auth_token_file: .*ASCII"),
        ({"auth_token_file": "empty"}, "--auth_token_file: expected one line"),
    ],
)
def test_files_that_cannot_be_used(
    files: pathlib.Path, names: dict[str, str], message: str
) -> None:
    for load in security.of_learner, security.of_actor:
        with pytest.raises(UserError, match=message) as refused:
            load(settings(files, **names))
        assert "letters" not in str(refused.value)  # of the token


def test_a_learner_needs_a_key_and_a_certificate_of_its_own(files: pathlib.Path) -> None:
    with pytest.raises(UserError, match="--tls_key: expected the key of --tls_cert="):
        security.of_learner(settings(files, tls_cert="cert"))
    with pytest.raises(UserError, match="--tls_cert: expected one beside the learner's --tls_ca="):
        security.of_learner(settings(files, tls_ca="cert"))


def test_an_actor_may_know_no_more_than_whom_to_trust(files: pathlib.Path) -> None:
    assert security.of_actor(settings(files, tls_ca="cert")).ca
    assert security.of_actor(settings(files, tls_cert="cert")).certificate
    with pytest.raises(UserError, match="--tls_key"):
        security.of_actor(settings(files, tls_ca="cert", tls_cert="cert"))


@pytest.mark.parametrize("address", ["0.0.0.0:1", "[::]:1", "learner.example:1", "10.0.0.1:1"])
def test_an_address_beyond_this_machine(files: pathlib.Path, address: str) -> None:
    with pytest.raises(UserError, match=r"--server_address: .*--tls_cert.*--insecure_network"):
        security.check_address(address, settings(files, auth_token_file="token"))
    security.check_address(address, SecuritySettings(insecure_network=True))
    security.check_address(address, settings(files, tls_cert="cert", tls_key="key"))
    security.check_address(address, settings(files, tls_ca="cert"))


@pytest.mark.parametrize("address", ["unix:/tmp/x", "127.0.0.1:1", "localhost:1", "[::1]:1"])
def test_an_address_of_this_machine(address: str) -> None:
    security.check_address(address, SecuritySettings())

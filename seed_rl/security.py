"""The flags that secure the network between learner and actors."""

from __future__ import annotations

import dataclasses
import ssl
from typing import NoReturn

from seed_rl.errors import UserError
from seed_rl.grpc import addresses
from seed_rl.grpc.security import Security
from seed_rl.settings import setting

MIN_TOKEN_LENGTH, MAX_TOKEN_LENGTH = 16, 4096  # more would not go into a call's metadata


@dataclasses.dataclass(frozen=True)
class SecuritySettings:
    tls_cert: str = setting(
        "",
        "PEM file with this process's certificate; encrypts all traffic. Actors with --tls_ca show "
        "it to the learner; actors without take only a learner that has this very certificate.",
    )
    tls_key: str = setting("", "PEM file with the key of --tls_cert.")
    tls_ca: str = setting(
        "",
        "PEM file with the certificate that must have signed those of the other side: the "
        "learner's for an actor, all actors' for a learner.",
    )
    tls_server_name: str = setting(
        "", "Name in the learner's certificate; for actors. Empty: the host of --server_address."
    )
    auth_token_file: str = setting(
        "", "File with a line that actors must know; the same for the learner and all actors."
    )
    insecure_network: bool = setting(
        False, "Allows a --server_address beyond this machine without encryption."
    )


def check_address(address: str, settings: SecuritySettings) -> None:
    """Raises UserError if the learner's address is none, or can be reached in the clear."""
    try:
        addresses.check(address)
    except ValueError as error:
        raise UserError(f"--server_address: {error}") from error
    encrypts = settings.tls_cert or settings.tls_ca
    if not (addresses.is_local(address) or encrypts or settings.insecure_network):
        raise UserError(
            "--server_address: expected unix:/path or a loopback host, since traffic is not "
            "encrypted, or beside it --tls_cert and --tls_key, or --insecure_network, "
            f"got {address!r}."
        )


def of_learner(settings: SecuritySettings) -> Security:
    """What the learner's flags say.

    Raises:
      UserError: a file cannot be used, or is missing beside another.
    """
    if settings.tls_ca and not settings.tls_cert:
        raise UserError(
            f"--tls_cert: expected one beside the learner's --tls_ca={settings.tls_ca}."
        )
    if settings.tls_cert and not settings.tls_key:
        raise UserError(f"--tls_key: expected the key of --tls_cert={settings.tls_cert}.")
    return _load(settings)


def of_actor(settings: SecuritySettings) -> Security:
    """What an actor's flags say.

    Raises:
      UserError: a file cannot be used, or is missing beside another.
    """
    if settings.tls_ca and settings.tls_cert and not settings.tls_key:
        raise UserError(f"--tls_key: expected the key of --tls_cert={settings.tls_cert}.")
    return _load(settings)


def _load(settings: SecuritySettings) -> Security:
    if settings.tls_key and not settings.tls_cert:
        raise UserError(f"--tls_cert: expected one beside --tls_key={settings.tls_key}.")
    security = Security(
        certificate=_read("tls_cert", settings.tls_cert),
        key=_read("tls_key", settings.tls_key),
        ca=_read("tls_ca", settings.tls_ca),
        server_name=settings.tls_server_name,
        token=_token(settings.auth_token_file),
    )
    _check_certificates(settings)
    return security


def _read(flag: str, path: str) -> bytes:
    if not path:
        return b""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise UserError(
            f"--{flag}: expected a file that can be read, got {path} ({error.strerror})."
        ) from error


def _token(path: str) -> str:
    token = _read("auth_token_file", path).strip()
    visible = all(0x21 <= byte <= 0x7E for byte in token)
    if path and not (visible and MIN_TOKEN_LENGTH <= len(token) <= MAX_TOKEN_LENGTH):
        # Not what is in it: messages end up in logs.
        raise UserError(
            f"--auth_token_file: expected one line of {MIN_TOKEN_LENGTH} to {MAX_TOKEN_LENGTH} "
            f"visible ASCII characters, got something else in {path}."
        )
    return token.decode("ascii")


def _check_certificates(settings: SecuritySettings) -> None:
    """gRPC would say no more than that it cannot listen, or cannot connect."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for flag in "tls_ca", "tls_cert":
        if path := getattr(settings, flag):
            try:
                context.load_verify_locations(path)
            except ssl.SSLError as error:
                raise UserError(
                    f"--{flag}: expected a certificate in PEM form, got {path} ({error})."
                ) from error
    if settings.tls_key:
        try:
            context.load_cert_chain(settings.tls_cert, settings.tls_key, _refuse_to_ask)
        except ssl.SSLError as error:
            raise UserError(
                f"--tls_key: expected the key of --tls_cert={settings.tls_cert} in PEM form, "
                f"without a password, got {settings.tls_key} ({error})."
            ) from error


def _refuse_to_ask() -> NoReturn:
    raise ssl.SSLError("it asks for a password")

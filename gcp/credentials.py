"""What the machines of a job know each other by: a token, and a certificate of the learner.

    python3 -m gcp.credentials FOLDER   makes them: token, cert.pem and key.pem

The learner shows the certificate, and actors, which have no key, take only a learner with this one.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

from seed_rl.errors import UserError, exit_code

TOKEN, CERTIFICATE, KEY = "token", "cert.pem", "key.pem"
FILES = (TOKEN, CERTIFICATE, KEY)

_SERVER_NAME = "seed-rl-learner"
_DAYS = 3650
_CLOUD_SCHEME = "gs://"


def make(folder: Path) -> None:
    """Writes new ones into a folder, readable for this user only.

    Raises:
      UserError: the folder has some already, or openssl is missing or fails.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if present := [name for name in FILES if (folder / name).exists()]:
        raise UserError(f"FOLDER: expected one without {', '.join(present)}, got {folder}.")
    _run_openssl(folder)
    with open(folder / TOKEN, "x", opener=_private) as file:
        file.write(f"{secrets.token_urlsafe(32)}\n")


def flags(folder: Path, role: str) -> list[str]:
    """The flags of a learner or an actor for credentials in a folder of this machine."""
    common = [f"--auth_token_file={folder / TOKEN}", f"--tls_cert={folder / CERTIFICATE}"]
    if role == "learner":
        return [*common, f"--tls_key={folder / KEY}"]
    return [*common, f"--tls_server_name={_SERVER_NAME}"]


def fetch(source: str, target: Path, role: str) -> Path:
    """The local folder that has what is in `source`: itself, or `target` for gs://bucket/folder.

    Only a learner gets the key.

    Raises:
      UserError: they can't be fetched.
    """
    if not source.startswith(_CLOUD_SCHEME):
        if not (Path(source) / TOKEN).is_file():
            raise UserError(
                f"--credentials: expected a folder with {', '.join(FILES)}, got {source}."
            )
        return Path(source)
    # Here, since only machines in the cloud have the package.
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError
    from google.cloud import storage

    bucket, _, prefix = source.removeprefix(_CLOUD_SCHEME).partition("/")
    try:
        client = storage.Client()
        for name in FILES if role == "learner" else (TOKEN, CERTIFICATE):
            blob = client.bucket(bucket).blob(f"{prefix.rstrip('/')}/{name}")
            blob.download_to_filename(str(target / name))
    except (GoogleAPIError, GoogleAuthError, OSError) as error:
        raise UserError(
            f"--credentials: expected a folder with {', '.join(FILES)}, got {source} ({error})."
        ) from error
    return target


def _run_openssl(folder: Path) -> None:
    command = ["openssl", "req", "-x509", "-nodes", "-days", str(_DAYS)]
    command += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command += ["-subj", f"/CN={_SERVER_NAME}", "-addext", f"subjectAltName=DNS:{_SERVER_NAME}"]
    command += ["-addext", "basicConstraints=critical,CA:FALSE"]
    command += ["-keyout", str(folder / KEY), "-out", str(folder / CERTIFICATE)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise UserError("openssl: expected it on the path, to make a certificate.") from None
    except subprocess.CalledProcessError as error:
        raise UserError(f"openssl: expected a certificate, got: {error.stderr.strip()}") from error
    (folder / KEY).chmod(0o600)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def main(argv: list[str]) -> int:
    if len(argv) != 1 or argv[0].startswith("-"):
        raise UserError(f"Expected python3 -m gcp.credentials FOLDER, got {argv}.")
    make(Path(argv[0]))
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(lambda: main(sys.argv[1:])))

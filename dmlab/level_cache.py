"""A cache of the maps that levels generate, shared by processes and machines.

A map takes the engine some 10 seconds to make and a fraction of one to load. It is a pk3 file: a
zip archive. Each entry is a file (or a cloud object) of its own that appears all at once.

A cache may only save time: whatever goes wrong in it is logged, and the map is made anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import uuid
import zipfile
from pathlib import Path
from typing import Any, Protocol

from absl import logging

from seed_rl.errors import UserError

_CLOUD_SCHEME = "gs://"
_CLOUD_TIMEOUT_SECONDS = 10.0  # beyond it, making the map is faster


class Store(Protocol):
    """Where entries are. Names are short and fit for a file."""

    def read(self, name: str, path: Path) -> None:
        """Copies an entry to a file.

        Raises:
          FileNotFoundError: there is no such entry.
        """

    def write(self, name: str, path: Path) -> None:
        """Makes the file an entry; who reads it meanwhile gets the one before, or none."""


class LevelCache:
    """What the engine calls inside a reset for a map; its `level_cache` argument.

    No exception leaves the methods: they are called from C.
    """

    def __init__(self, store: Store):
        self._store = store

    def fetch(self, key: str, pk3_path: str) -> bool:
        """Whether the map is at pk3_path now, and whole: after a True the engine relies on it."""
        path = Path(pk3_path)
        copy = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
        try:
            self._store.read(_name(key), copy)
            if not _is_whole(copy):
                logging.warning("Level cache: the entry of %s is damaged; made anew.", key)
                return False
            os.replace(copy, path)
        except FileNotFoundError:
            return False
        except Exception as error:
            logging.warning("Level cache: cannot read the entry of %s: %r", key, error)
            return False
        finally:
            with contextlib.suppress(OSError):
                copy.unlink()
        return True

    def write(self, key: str, pk3_path: str) -> None:
        """Keeps the map at pk3_path."""
        try:
            self._store.write(_name(key), Path(pk3_path))
        except Exception as error:
            logging.warning("Level cache: cannot write the entry of %s: %r", key, error)


def open_level_cache(directory: str) -> LevelCache:
    """The cache in a directory, which need not be there yet, or below "gs://bucket/prefix".

    Raises:
      UserError: a cloud address without a bucket, or no credentials for it.
    """
    is_cloud = directory.startswith(_CLOUD_SCHEME)
    return LevelCache(open_bucket(directory) if is_cloud else LocalStore(Path(directory)))


class LocalStore:
    """Files in a directory of this machine, or one that machines share.

    They are spread over 256 directories, since some file systems slow down where there are many. A
    process that is killed while it writes leaves a file *.new there, which nobody reads.
    """

    def __init__(self, directory: Path):
        self._directory = directory

    def read(self, name: str, path: Path) -> None:
        shutil.copyfile(self._path(name), path)

    def write(self, name: str, path: Path) -> None:
        entry = self._path(name)
        entry.parent.mkdir(parents=True, exist_ok=True)
        new = entry.with_name(f"{name}.{uuid.uuid4().hex}.new")
        try:
            with path.open("rb") as source, new.open("xb") as target:
                shutil.copyfileobj(source, target)
                target.flush()
                os.fsync(target.fileno())
            os.replace(new, entry)
        finally:
            new.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._directory / name[:2] / name


class BucketStore:
    """Objects in Google Cloud Storage; an upload that is not completed leaves none.

    Args:
      bucket: a google.cloud.storage.Bucket.
      prefix: of the objects' names.
    """

    def __init__(self, bucket: Any, prefix: str):
        self._bucket = bucket
        self._prefix = prefix

    def read(self, name: str, path: Path) -> None:
        from google.api_core.exceptions import NotFound

        try:
            self._blob(name).download_to_filename(
                str(path), timeout=_CLOUD_TIMEOUT_SECONDS, retry=_retry()
            )
        except NotFound as error:
            raise FileNotFoundError(name) from error

    def write(self, name: str, path: Path) -> None:
        self._blob(name).upload_from_filename(
            str(path), timeout=_CLOUD_TIMEOUT_SECONDS, retry=_retry()
        )

    def _blob(self, name: str) -> Any:
        return self._bucket.blob(f"{self._prefix}/{name}" if self._prefix else name)


def open_bucket(address: str) -> BucketStore:
    """The store below "gs://bucket/prefix", with this machine's default credentials.

    Raises:
      UserError: see open_level_cache.
    """
    # Here, since it takes time and memory that other actors can do without.
    from google.auth.exceptions import DefaultCredentialsError
    from google.cloud import storage

    bucket, _, prefix = address.removeprefix(_CLOUD_SCHEME).partition("/")
    if not bucket:
        raise UserError(f"--level_cache_dir: expected gs://bucket/prefix, got {address!r}.")
    try:
        client = storage.Client()
    except (DefaultCredentialsError, OSError) as error:  # OSError: no project is set either
        raise UserError(
            f"--level_cache_dir={address}: expected Google Cloud credentials on the actor's machine"
            " (gcloud auth application-default login), found none that work."
        ) from error
    return BucketStore(client.bucket(bucket), prefix.strip("/"))


def _retry() -> Any:
    """The library's own retries, which would go on for minutes, within the bound."""
    from google.cloud.storage.retry import DEFAULT_RETRY

    return DEFAULT_RETRY.with_timeout(_CLOUD_TIMEOUT_SECONDS)


def _name(key: str) -> str:
    """The engine may put anything into a key, slashes included."""
    return hashlib.sha256(key.encode()).hexdigest() + ".pk3"


def _is_whole(path: Path) -> bool:
    """Whether a file is a zip archive all of whose members are as they were when it was made."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except zipfile.BadZipFile:
        return False

"""The level cache: in directories, and in a bucket of a server that speaks Cloud Storage's HTTP."""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dmlab import level_cache
from dmlab.level_cache import LevelCache, open_level_cache
from seed_rl.errors import UserError
from tests.cloud_storage import Bucket, serving

KEY = "contributed/dmlab30/explore/../é 1"


def make_map(path: Path, content: bytes = b"walls") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("maps/level.bsp", content * 1_000)
    return path


def files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    with serving("maps", monkeypatch) as bucket:
        yield bucket


@pytest.fixture(params=["directory", "bucket"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "directory":
        return str(tmp_path / "not" / "there" / "yet")
    request.getfixturevalue("bucket")
    return "gs://maps/some/prefix/"


def test_what_was_written_is_fetched(address: str, tmp_path: Path) -> None:
    made, fetched = make_map(tmp_path / "made.pk3"), tmp_path / "fetched.pk3"
    open_level_cache(address).write(KEY, str(made))
    assert open_level_cache(address).fetch(KEY, str(fetched)) is True
    assert fetched.read_bytes() == made.read_bytes()
    assert set(tmp_path.glob("*.pk3*")) == {made, fetched}


def test_missing_entry_is_a_miss_without_a_file(address: str, tmp_path: Path) -> None:
    cache = open_level_cache(address)
    cache.write("another", str(make_map(tmp_path / "made.pk3")))
    assert cache.fetch(KEY, str(tmp_path / "fetched.pk3")) is False
    assert not list(tmp_path.glob("fetched*"))


def test_later_write_replaces(address: str, tmp_path: Path) -> None:
    cache, fetched = open_level_cache(address), tmp_path / "fetched.pk3"
    for content in b"walls", b"doors":
        made = make_map(tmp_path / "made.pk3", content)
        cache.write(KEY, str(made))
        assert cache.fetch(KEY, str(fetched))
        assert fetched.read_bytes() == made.read_bytes()


def damage(content: bytes, how: str) -> bytes:
    if how == "truncated":
        return content[: len(content) // 2]
    if how == "empty":
        return b""
    place = content.index(b"walls")
    return content[:place] + b"W" + content[place + 1 :]


@pytest.mark.parametrize("how", ["truncated", "empty", "one byte is another"])
def test_damaged_file_is_a_miss_until_written_anew(how: str, tmp_path: Path) -> None:
    made, fetched = make_map(tmp_path / "made.pk3"), tmp_path / "fetched.pk3"
    cache = open_level_cache(str(tmp_path / "cache"))
    cache.write(KEY, str(made))
    (entry,) = files(tmp_path / "cache")
    entry.write_bytes(damage(made.read_bytes(), how))
    assert cache.fetch(KEY, str(fetched)) is False
    assert not list(tmp_path.glob("fetched*"))
    cache.write(KEY, str(made))
    assert cache.fetch(KEY, str(fetched)) is True


def test_damaged_object_is_a_miss(bucket: Bucket, tmp_path: Path) -> None:
    made = make_map(tmp_path / "made.pk3")
    cache = open_level_cache("gs://maps")
    cache.write(KEY, str(made))
    (name,) = bucket.objects
    bucket.objects[name] = damage(made.read_bytes(), "truncated")
    assert cache.fetch(KEY, str(tmp_path / "fetched.pk3")) is False
    assert not list(tmp_path.glob("fetched*"))


def test_objects_lie_below_the_prefix(bucket: Bucket, tmp_path: Path) -> None:
    made = make_map(tmp_path / "made.pk3")
    open_level_cache("gs://maps/a/b").write(KEY, str(made))
    (name,) = bucket.objects
    assert re.fullmatch(r"a/b/[0-9a-f]{64}\.pk3", name)
    assert bucket.objects[name] == made.read_bytes()


def test_a_directory_that_cannot_be_used_costs_nothing_but_time(tmp_path: Path) -> None:
    made = make_map(tmp_path / "made.pk3")
    (tmp_path / "file").write_text("in the way")
    cache = open_level_cache(str(tmp_path / "file"))
    cache.write(KEY, str(made))
    assert cache.fetch(KEY, str(tmp_path / "fetched.pk3")) is False


def test_a_cloud_that_refuses_costs_nothing_but_time(bucket: Bucket, tmp_path: Path) -> None:
    made = make_map(tmp_path / "made.pk3")
    cache = open_level_cache("gs://maps")
    cache.write(KEY, str(made))
    bucket.status = 403
    cache.write("other", str(made))
    assert cache.fetch(KEY, str(tmp_path / "fetched.pk3")) is False
    assert len(bucket.objects) == 1


def test_a_cloud_that_is_away_costs_nothing_but_time(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(level_cache, "_CLOUD_TIMEOUT_SECONDS", 0.1)
    made = make_map(tmp_path / "made.pk3")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9")  # nobody listens there
    cache = open_level_cache("gs://maps")
    cache.write(KEY, str(made))
    assert cache.fetch(KEY, str(tmp_path / "fetched.pk3")) is False


def test_interrupted_copies_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, directory = make_map(tmp_path / "made.pk3"), tmp_path / "cache"
    cache = open_level_cache(str(directory))

    def fail(*args: Any) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        cache.write(KEY, str(made))
    assert not files(directory)

    def fail_half_way(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes()[:100])
        fail()

    cache.write(KEY, str(made))
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", fail_half_way)
        assert cache.fetch(KEY, str(tmp_path / "fetched.pk3")) is False
    assert not list(tmp_path.glob("fetched*"))


def test_writes_of_the_same_entry_may_overlap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, fetched = open_level_cache(str(tmp_path / "cache")), tmp_path / "fetched.pk3"
    slow, fast = make_map(tmp_path / "slow.pk3", b"slow"), make_map(tmp_path / "fast.pk3", b"fast")
    seen = []

    def write_the_other(file: int) -> None:
        monkeypatch.undo()
        cache.write(KEY, str(fast))
        assert cache.fetch(KEY, str(fetched))
        seen.append(fetched.read_bytes())

    monkeypatch.setattr(os, "fsync", write_the_other)
    cache.write(KEY, str(slow))
    assert seen == [fast.read_bytes()]
    assert cache.fetch(KEY, str(fetched))
    assert fetched.read_bytes() == slow.read_bytes()


def test_no_error_reaches_the_engine(tmp_path: Path) -> None:
    class Broken:
        def read(self, name: str, path: Path) -> None:
            raise ZeroDivisionError

        write = read

    cache = LevelCache(Broken())
    cache.write(KEY, str(tmp_path / "made.pk3"))
    assert cache.fetch(KEY, str(tmp_path / "fetched.pk3")) is False


def write_and_fetch(directory: str, folder: str, number: int) -> set[bytes | None]:
    """Writes one of two maps over and over, while others do, too; returns all that it fetched."""
    own = Path(folder) / str(number)
    own.mkdir()
    made = make_map(own / "made.pk3", (b"walls", b"doors")[number % 2])
    cache, fetched = open_level_cache(directory), own / "fetched.pk3"
    seen: set[bytes | None] = set()
    for _ in range(50):
        cache.write(KEY, str(made))
        seen.add(fetched.read_bytes() if cache.fetch(KEY, str(fetched)) else None)
    return seen


def test_processes_that_write_the_same_entry_never_read_half_of_it(tmp_path: Path) -> None:
    maps = {make_map(tmp_path / name, name.encode()).read_bytes() for name in ("walls", "doors")}
    directory = str(tmp_path / "cache")
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        arguments = [(directory, str(tmp_path), number) for number in range(3)]
        seen = set().union(*pool.starmap(write_and_fetch, arguments))
    assert {zip_contents(content) for content in seen} == {zip_contents(map_) for map_ in maps}
    assert len(files(tmp_path / "cache")) == 1


def zip_contents(content: bytes | None) -> bytes | None:
    """Without the time at which the archive was made."""
    return content and (b"walls" if b"walls" in content else b"doors")


def test_address_without_a_bucket() -> None:
    with pytest.raises(UserError, match=r"^--level_cache_dir: expected gs://bucket/prefix, got"):
        open_level_cache("gs://")


def test_no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "nothing.json"))
    with pytest.raises(UserError, match=r"^--level_cache_dir=gs://maps: expected .* credentials"):
        open_level_cache("gs://maps")

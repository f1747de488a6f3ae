"""A build is used only with the sources and the environment that it was made from."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from seed_rl.grpc import build, messages_build


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the built package, at the root of another repository."""
    directory = tmp_path / "seed_rl" / "grpc"
    shutil.copytree(build.SOURCE_DIR, directory, ignore=shutil.ignore_patterns("build"))
    (directory / "build").mkdir()
    shutil.copy(build.SOURCE_DIR / "build" / "fingerprint", directory / "build")
    return directory


def import_from(checkout: Path, module: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"import {module}"],
        cwd=checkout.parents[1], check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_copy_is_current(checkout):
    assert build.is_current(checkout)
    assert import_from(checkout, "seed_rl.grpc.server").returncode == 0


@pytest.mark.parametrize("source", ["service.proto", "batcher.cc"])
def test_changed_source(checkout, source):
    with (checkout / source).open("a") as file:
        file.write("\n")
    result = import_from(checkout, "seed_rl.grpc.server")
    assert result.stderr.endswith(
        "ImportError: seed_rl.grpc was built from other sources or for another Python environment:"
        " run ./setup.sh in the repository's root.\n"
    )


@pytest.mark.parametrize("source", ["transport.h", "transport.cc", "CMakeLists.txt"])
def test_every_source_counts(checkout, source):
    (checkout / source).write_text("something else")
    assert not build.is_current(checkout)


def test_touched_source_is_not_stale(checkout):
    os.utime(checkout / "batcher.cc")
    assert build.is_current(checkout)


def test_another_tensorflow(checkout, monkeypatch):
    version = build.importlib.metadata.version
    monkeypatch.setattr(
        build.importlib.metadata,
        "version",
        lambda name: "1.0" if name.startswith("tensorflow") else version(name),
    )
    assert not build.is_current(checkout)
    with pytest.raises(ImportError, match="another Python environment"):
        build.require_current(checkout)


def test_messages_are_generated_anew(checkout):
    made = {name: (checkout / name).read_text() for name in messages_build.PRODUCTS}
    for name in made:
        (checkout / name).unlink()
    subprocess.run(messages_build.command(checkout), check=True)
    assert {name: (checkout / name).read_text() for name in made} == made


def test_no_build(checkout):
    (checkout / "libseed_rl_ops.so").unlink()
    result = import_from(checkout, "seed_rl.grpc.server")
    assert result.stderr.endswith(
        "ImportError: seed_rl.grpc is not built: run ./setup.sh in the repository's root.\n"
    )


@pytest.mark.parametrize("module", ["seed_rl.grpc.client", "seed_rl.grpc.server"])
def test_no_messages(checkout, module):
    (checkout / "service_pb2.py").unlink()
    result = import_from(checkout, module)
    assert result.stderr.endswith("run ./setup.sh in the repository's root.\n")
    assert "ImportError: seed_rl.grpc" in result.stderr


def build_without_tools(checkout: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "seed_rl.grpc.build"],
        cwd=checkout.parents[1], env={**os.environ, "PATH": "/nonexistent"},
        check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_grpc_of_the_system_has_changed(checkout):
    transport = checkout / build.TRANSPORT_LIBRARY
    transport.write_bytes(transport.read_bytes().replace(b"libgrpc++.so", b"libgone++.so"))
    result = import_from(checkout, "seed_rl.grpc.server")
    last_line = result.stderr.splitlines()[-1]
    assert last_line.startswith("ImportError: seed_rl.grpc cannot be loaded (libgone++.so")
    assert last_line.endswith("run ./setup.sh in the repository's root.")
    assert build_without_tools(checkout).returncode == 1  # It wants to build again.


@pytest.mark.parametrize("module", ["seed_rl.grpc.client", "seed_rl.grpc.server"])
def test_messages_for_another_protobuf(checkout, module):
    messages = checkout / "service_pb2.py"
    code, changed = re.subn(r"(Domain\.PUBLIC,\s+)\d+", r"\g<1>99", messages.read_text())
    assert changed == 1
    messages.write_text(code)
    result = import_from(checkout, module)
    assert "VersionError" in result.stderr
    assert result.stderr.endswith("run ./setup.sh in the repository's root.\n")


def test_nothing_to_do():
    result = subprocess.run(
        [sys.executable, "-m", "seed_rl.grpc.build"],
        cwd=build.SOURCE_DIR.parents[1], check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert result.stdout == result.stderr == ""


def test_missing_tools(checkout):
    (checkout / "build" / "fingerprint").unlink()
    result = build_without_tools(checkout)
    assert result.returncode == 1
    assert result.stderr.startswith("seed_rl.grpc cannot be built: cmake, ninja, ")
    assert "sudo apt-get install -y cmake" in result.stderr
    assert result.stderr.count("\n") == 1

"""Builds the compiled op and the messages: `python -m seed_rl.grpc.build`.

A build belongs to the sources and to the environment that it was made from. Their fingerprint is
kept beside it, so that nothing is rebuilt without need and nothing stale is ever loaded.
"""

import ctypes
import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

from seed_rl.grpc import messages_build
from seed_rl.grpc.messages_build import SOURCE_DIR

OPS_LIBRARY = "libseed_rl_ops.so"
TRANSPORT_LIBRARY = "libseed_rl_transport.so"
_PRODUCTS = (OPS_LIBRARY, TRANSPORT_LIBRARY, *messages_build.PRODUCTS)
_SOURCES = ("*.cc", "*.h", "*.proto", "CMakeLists.txt")
_TENSORFLOW_DISTRIBUTIONS = ("tensorflow", "tensorflow-cpu", "tensorflow-tpu")
_TOOLS = ("cmake", "ninja", "pkg-config", "g++", "protoc", "grpc_cpp_plugin")
_APT_LINE = (
    "sudo apt-get install -y cmake ninja-build pkg-config g++ "
    "protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libgrpc++-dev"
)


class BuildError(Exception):
    """The op cannot be built here."""


def fingerprint(directory: Path = SOURCE_DIR) -> str:
    """Returns a hash of all that a build in `directory` depends on."""
    digest = hashlib.sha256()
    sources = [path for pattern in _SOURCES for path in sorted(directory.glob(pattern))]
    for path in sources:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    packages = [_version(name) for name in ("grpcio-tools", "grpcio", "protobuf")]
    for version in (sys.prefix, _tensorflow_version(), *packages):
        digest.update(str(version).encode() + b"\0")
    return digest.hexdigest()


def is_current(directory: Path = SOURCE_DIR) -> bool:
    """Whether `directory` holds a build of these sources for this environment."""
    mark = _mark(directory)
    products = (directory / product for product in _PRODUCTS)
    return (
        mark.exists()
        and mark.read_text() == fingerprint(directory)
        and all(product.exists() for product in products)
    )


def require_current(directory: Path = SOURCE_DIR) -> None:
    """Raises ImportError if the compiled op is missing, or belongs to something else."""
    if is_current(directory):
        return
    problem = (
        "was built from other sources or for another Python environment"
        if (directory / OPS_LIBRARY).exists()
        else "is not built"
    )
    raise ImportError(f"seed_rl.grpc {problem}: run ./setup.sh in the repository's root.")


def build(directory: Path = SOURCE_DIR) -> None:
    """Builds in `directory`.

    Raises:
      BuildError: a tool is missing, or a command failed.
    """
    _check_tools()
    import tensorflow as tf  # Only here: it takes seconds, and most runs find nothing to do.

    build_dir = directory / "build"
    made_from = fingerprint(directory)  # Before: a source may change while the compiler runs.
    _mark(directory).unlink(missing_ok=True)
    definitions = {
        "TENSORFLOW_COMPILE_FLAGS": " ".join(tf.sysconfig.get_compile_flags()),
        "TENSORFLOW_LINK_FLAGS": " ".join(tf.sysconfig.get_link_flags()),
    }
    # Fresh: a cache of another environment would go on naming that one's files.
    configure = ["cmake", "--fresh", "-G", "Ninja", "-S", str(directory), "-B", str(build_dir)]
    _run(configure + [f"-D{name}={value}" for name, value in definitions.items()])
    _run(["cmake", "--build", str(build_dir), "--parallel", str(os.cpu_count())])
    _run(messages_build.command(directory))
    _mark(directory).write_text(made_from)


def _mark(directory: Path) -> Path:
    return directory / "build" / "fingerprint"


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _tensorflow_version() -> str:
    """From the metadata, since importing TensorFlow takes seconds."""
    return " ".join(f"{name}={_version(name)}" for name in _TENSORFLOW_DISTRIBUTIONS)


def _check_tools() -> None:
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if "pkg-config" not in missing:
        libraries = ("grpc++", "protobuf")
        missing += [
            f"the headers of {library}"
            for library in libraries
            if subprocess.run(["pkg-config", "--exists", library], check=False).returncode != 0
        ]
    if missing:
        raise BuildError(f"{', '.join(missing)} missing; install with: {_APT_LINE}")


def _run(command: list[str]) -> None:
    """Runs a command, whose output matters only if it fails."""
    result = subprocess.run(
        command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if result.returncode != 0:
        print(result.stdout, file=sys.stderr)
        raise BuildError(f"`{command[0]}` failed; its output is above.")


def _finds_its_libraries(directory: Path = SOURCE_DIR) -> bool:
    """Whether the system still has the gRPC that a build was linked with."""
    try:
        ctypes.CDLL(str(directory / TRANSPORT_LIBRARY))
    except OSError:
        return False
    return True


def main() -> None:
    if is_current() and _finds_its_libraries():
        return
    print("setup: compiling the gRPC op (about a minute)", flush=True)
    try:
        build()
    except BuildError as error:
        sys.exit(f"seed_rl.grpc cannot be built: {error}")


if __name__ == "__main__":
    main()

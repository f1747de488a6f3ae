"""Generates the Python messages of service.proto: `python -m seed_rl.grpc.messages_build`.

All that an actor needs of what is built: machines without a learner have neither TensorFlow nor
compilers.
"""

import subprocess
import sys
from pathlib import Path

SOURCE_DIR = Path(__file__).resolve().parent
PRODUCTS = ("service_pb2.py", "service_pb2_grpc.py")


def command(directory: Path = SOURCE_DIR) -> list[str]:
    """The command that puts them beside the sources.

    It is the environment's own compiler, since they must match its protobuf, and a process of its
    own, since in one that has loaded TensorFlow it crashes.
    """
    root = directory.parents[1]
    options = [f"--{kind}_out={root}" for kind in ("python", "grpc_python")]
    compiler = [sys.executable, "-m", "grpc_tools.protoc"]
    return [*compiler, f"-I{root}", *options, str(directory / "service.proto")]


if __name__ == "__main__":
    sys.exit(subprocess.run(command(), check=False).returncode)

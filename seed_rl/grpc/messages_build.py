"""Generates the Python messages of service.proto: `python -m seed_rl.grpc.messages_build`.

All that an actor needs of what is built: machines without a learner have neither TensorFlow nor
compilers.
"""

import sys
from pathlib import Path

SOURCE_DIR = Path(__file__).resolve().parent
PRODUCTS = ("service_pb2.py", "service_pb2_grpc.py")


def build(directory: Path = SOURCE_DIR) -> None:
    """Generates them beside the sources, with the environment's own compiler: they must match its
    protobuf."""
    from grpc_tools import protoc  # Only here: a learner imports this module, too.

    root = directory.parents[1]
    options = [f"--{kind}_out={root}" for kind in ("python", "grpc_python")]
    proto = directory / "service.proto"
    if protoc.main(["protoc", f"-I{root}", *options, str(proto)]) != 0:
        sys.exit("seed_rl.grpc: the messages of service.proto cannot be generated.")


if __name__ == "__main__":
    build()

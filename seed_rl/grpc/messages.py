"""The generated messages of service.proto."""

try:
    from seed_rl.grpc import service_pb2, service_pb2_grpc
except Exception as error:  # The generated code refuses other versions in ways of its own.
    raise ImportError(
        "seed_rl.grpc is not built for this environment: run ./setup.sh in the repository's root."
    ) from error

__all__ = ["service_pb2", "service_pb2_grpc"]

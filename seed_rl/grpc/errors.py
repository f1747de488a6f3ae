"""What can go wrong with a call."""

import grpc


class GrpcError(Exception):
    """Base of the errors below."""


class ConnectionTimeoutError(GrpcError):
    """No server answered at the address in time."""


class UnavailableError(GrpcError):
    """The server shut down or the connection broke. The next call connects again."""


class ServiceEndedError(GrpcError):
    """The server has ended for good: training is over and nobody should connect again."""


class UnauthenticatedError(GrpcError):
    """The server expects another token."""


class InvalidArgumentError(GrpcError):
    """An argument is not what the method takes, or more than the server can hold."""


class NotFoundError(GrpcError):
    """The server has no such method."""


class DeadlineExceededError(GrpcError):
    """The answer did not come in time."""


class InternalError(GrpcError):
    """The method itself raised an error."""


_BY_STATUS = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgumentError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: InvalidArgumentError,
    grpc.StatusCode.UNAUTHENTICATED: UnauthenticatedError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceededError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.CANCELLED: UnavailableError,
}


def from_status(status: grpc.StatusCode, message: str) -> GrpcError:
    """Returns the error that stands for a gRPC status other than OK."""
    return _BY_STATUS.get(status, InternalError)(message)

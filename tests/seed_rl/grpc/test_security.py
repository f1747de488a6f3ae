"""Who can call a server that has certificates or a token."""

from collections.abc import Callable

import grpc
import numpy as np
import pytest
import tensorflow as tf
import trustme

from seed_rl.grpc import errors
from seed_rl.grpc.client import Client
from seed_rl.grpc.messages import service_pb2, service_pb2_grpc
from seed_rl.grpc.security import PLAIN, Security
from seed_rl.grpc.server import Server

LOOPBACK = "127.0.0.1:0"
TOKEN = "a-token-of-25-characters."
OURS, THEIRS = trustme.CA(), trustme.CA()


@tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
def double(x):
    return 2 * x


def certificates(ca: trustme.CA, name: str, trusted: trustme.CA | None = None) -> Security:
    """One end with a certificate that `ca` has signed for `name`, and those it trusts."""
    own = ca.issue_cert(name)
    return Security(
        certificate=b"".join(blob.bytes() for blob in own.cert_chain_pems),
        key=own.private_key_pem.bytes(),
        ca=trusted.cert_pem.bytes() if trusted else b"",
    )


def trusting(ca: trustme.CA, server_name: str = "") -> Security:
    return Security(ca=ca.cert_pem.bytes(), server_name=server_name)


@pytest.fixture
def secured() -> Callable[[Security], str]:
    """secured(security) starts a server and returns its address on loopback."""
    servers = []

    def start(security: Security) -> str:
        servers.append(Server([LOOPBACK], security=security))
        servers[-1].bind(double)
        servers[-1].start()
        return servers[-1].addresses[0]

    yield start
    for server in servers:
        server.shutdown()


def assert_served(address: str, security: Security) -> None:
    with Client(address, 30.0, security) as client:
        assert client.double(np.int32(21)) == 42


def assert_not_connected(address: str, security: Security, why: str) -> None:
    with pytest.raises(errors.ConnectionTimeoutError, match=why):
        Client(address, 1.0, security)


def test_a_certificate_is_checked_against_its_signer(secured):
    address = secured(certificates(OURS, "127.0.0.1"))
    assert_served(address, trusting(OURS))
    assert_not_connected(address, trusting(THEIRS), "(?i)certificate.verify.failed")


def test_a_server_with_a_certificate_takes_no_plain_calls(secured):
    address = secured(certificates(OURS, "127.0.0.1"))
    assert_not_connected(address, PLAIN, rf"no server answered at {address} within 1 seconds \(")


def test_a_client_that_expects_encryption_makes_no_plain_calls(secured):
    address = secured(PLAIN)
    assert_not_connected(address, trusting(OURS), "(?i)handshake|ssl")


def test_a_certificate_holds_for_its_name_only(secured):
    address = secured(certificates(OURS, "learner.example"))
    assert_not_connected(address, trusting(OURS), "(?i)hostname|verif|peer")
    assert_served(address, trusting(OURS, server_name="learner.example"))


def test_without_a_ca_the_server_must_have_the_clients_certificate(secured):
    both = certificates(OURS, "127.0.0.1")
    address = secured(both)
    assert_served(address, both)
    assert_served(address, Security(certificate=both.certificate))
    assert_not_connected(address, certificates(OURS, "127.0.0.1"), "(?i)certificate")


def test_a_server_with_a_ca_takes_clients_that_it_has_signed(secured):
    address = secured(certificates(OURS, "127.0.0.1", trusted=OURS))
    assert_served(address, certificates(OURS, "actor", trusted=OURS))
    assert_not_connected(address, trusting(OURS), r"\(")
    assert_not_connected(address, certificates(THEIRS, "actor", trusted=OURS), r"\(")


@pytest.mark.parametrize("wrong", ["", TOKEN[:-1], TOKEN + ".", TOKEN.upper()])
def test_a_token_is_asked_for(secured, wrong):
    address = secured(Security(token=TOKEN))
    assert_served(address, Security(token=TOKEN))
    with pytest.raises(errors.UnauthenticatedError, match="token"):
        Client(address, 30.0, Security(token=wrong))


def test_every_stream_needs_the_token(secured):
    """A client that asks for no description first gets no further."""
    with grpc.insecure_channel(secured(Security(token=TOKEN))) as channel:
        stub = service_pb2_grpc.FunctionsStub(channel)
        request = service_pb2.CallRequest(method="double")
        with pytest.raises(grpc.RpcError) as refused:
            next(stub.Call(iter([request])))
        assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED
        with pytest.raises(grpc.RpcError) as refused:
            next(stub.Call(iter([request]), metadata=[("authorization", TOKEN)]))
        assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_a_token_over_an_encrypted_connection(secured):
    server = certificates(OURS, "127.0.0.1")
    address = secured(Security(server.certificate, server.key, token=TOKEN))
    assert_served(address, Security(ca=OURS.cert_pem.bytes(), token=TOKEN))
    with pytest.raises(errors.UnauthenticatedError):
        Client(address, 30.0, trusting(OURS))


def test_secrets_are_not_shown():
    secrets = Security(key=b"a key", token=TOKEN)
    assert TOKEN not in repr(secrets) and "a key" not in repr(secrets)

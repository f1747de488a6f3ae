"""How the two ends of a connection prove who they are, and whether others can read along."""

from __future__ import annotations

import dataclasses

import grpc


@dataclasses.dataclass(frozen=True)
class Security:
    """What one end, server or client, has of certificates and tokens. Certificates are PEM.

    A server with a certificate encrypts all connections; with a ca too, it takes only clients whose
    certificates that has signed. A client with a ca or a certificate expects an encrypting server:
    one whose certificate the ca has signed or, without a ca, one with this very certificate.

    Attributes:
      certificate: this end's own chain.
      key: of the certificate.
      ca: certificates of those who sign the other end's.
      server_name: the name in the server's certificate, where it is not the host of the address.
        Used by clients.
      token: known to both ends. A server that has one refuses calls without it.
    """

    certificate: bytes = b""
    key: bytes = dataclasses.field(default=b"", repr=False)
    ca: bytes = b""
    server_name: str = ""
    token: str = dataclasses.field(default="", repr=False)

    @property
    def encrypts(self) -> bool:
        """Whether connections are encrypted."""
        return bool(self.certificate or self.ca)

    def metadata(self) -> list[tuple[str, str]]:
        """What a client sends along with every call."""
        return [("authorization", f"Bearer {self.token}")] if self.token else []

    def channel(self, address: str, options: dict[str, int]) -> grpc.Channel:
        """A client's channel to the server at `address`, with gRPC's channel options."""
        if not self.encrypts:
            return grpc.insecure_channel(address, list(options.items()))
        shows_certificate = bool(self.ca and self.certificate)
        credentials = grpc.ssl_channel_credentials(
            root_certificates=self.ca or self.certificate,
            private_key=self.key if shows_certificate else None,
            certificate_chain=self.certificate if shows_certificate else None,
        )
        names = [("grpc.ssl_target_name_override", self.server_name)] if self.server_name else []
        return grpc.secure_channel(address, credentials, [*options.items(), *names])


PLAIN = Security()

"""The security settings of a client at a listener, for each library: Kafka's Java clients, librdkafka, kafka-python,
our own client, and single requests.

The default has none, as at a PLAINTEXT listener.
"""

import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from controller_core.wire.connections.security import Login, Security, login_module


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A certificate and its key, in separate files and in one file."""

    certificate: Path
    key: Path
    both: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The protocol, certificate and login that a client uses at a listener."""

    protocol: str = "PLAINTEXT"
    authority: Path | None = None
    """The certificate of the authority that signed the servers' certificates."""
    certificate: Shown | None = None
    """The client's own certificate, which it presents if the server requests it."""
    login: Login | None = None

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of Kafka's Java clients, except `bootstrap.servers`."""
        told = {"security.protocol": self.protocol}
        if self.authority is not None:
            told |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.authority)}
        if self.certificate is not None:
            told |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.certificate.both)}
        if self.login is not None:
            module = f"{login_module(self.login.mechanism)} required"
            user = f'username="{self.login.username}" password="{self.login.password}";'
            told |= {"sasl.mechanism": self.login.mechanism, "sasl.jaas.config": f"{module} {user}"}
        return told

    @property
    def librdkafka(self) -> Mapping[str, Any]:
        """The settings of librdkafka, except `bootstrap.servers`."""
        told: dict[str, Any] = {"security.protocol": self.protocol}
        if self.authority is not None:
            told["ssl.ca.location"] = str(self.authority)
        if self.certificate is not None:
            told["ssl.certificate.location"] = str(self.certificate.certificate)
            told["ssl.key.location"] = str(self.certificate.key)
        if self.login is not None:
            told["sasl.mechanism"] = self.login.mechanism
            told |= {"sasl.username": self.login.username, "sasl.password": self.login.password}
        return told

    @property
    def kafka_python(self) -> Mapping[str, Any]:
        """The settings of kafka-python, except `bootstrap_servers`."""
        told: dict[str, Any] = {"security_protocol": self.protocol}
        if self.authority is not None:
            told["ssl_cafile"] = str(self.authority)
        if self.certificate is not None:
            told |= {"ssl_certfile": str(self.certificate.certificate), "ssl_keyfile": str(self.certificate.key)}
        if self.login is not None:
            told["sasl_mechanism"] = self.login.mechanism
            told |= {"sasl_plain_username": self.login.username, "sasl_plain_password": self.login.password}
        return told

    def security(self) -> Security:
        """Return the settings for connections of our own client."""
        return Security(tls=self._context() if "SSL" in self.protocol else None, login=self.login)

    def wrap_connection(self, connection: socket.socket, host: str) -> socket.socket:
        """Return the connection, encrypted if the protocol uses TLS. Raises `OSError`."""
        if "SSL" not in self.protocol:
            return connection
        return self._context().wrap_socket(connection, server_hostname=host)

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.authority)
        if self.certificate is not None:
            context.load_cert_chain(self.certificate.certificate, self.certificate.key)
        return context


NOBODY: Final = Identity()
"""A client without certificate and login."""

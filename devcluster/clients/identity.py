"""Who a client is at a listener, in the words of each library: Kafka's own in Java, librdkafka, kafka-python, ours, and
single requests. By default nobody, as at a PLAINTEXT listener."""

import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from controller_core.wire.connections.security import Login, Security, login_module


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A certificate and its key, in a file each, and both in one."""

    certificate: Path
    key: Path
    both: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a listener wants to be shown."""

    protocol: str = "PLAINTEXT"
    authority: Path | None = None
    """Who has signed the servers' certificates."""
    certificate: Shown | None = None
    """The client's own; it is shown where the server asks for it."""
    login: Login | None = None

    @property
    def properties(self) -> Mapping[str, str]:
        """By the names of Kafka's clients, but for `bootstrap.servers`."""
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
        """But for `bootstrap.servers`."""
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
        """But for `bootstrap_servers`."""
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
        """For connections of our own."""
        return Security(tls=self._context() if "SSL" in self.protocol else None, login=self.login)

    def by_tls(self, connection: socket.socket, host: str) -> socket.socket:
        """The connection, encrypted where the protocol has it so. Raises `OSError`."""
        if "SSL" not in self.protocol:
            return connection
        return self._context().wrap_socket(connection, server_hostname=host)

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.authority)
        if self.certificate is not None:
            context.load_cert_chain(self.certificate.certificate, self.certificate.key)
        return context


NOBODY: Final = Identity()
"""Who shows nothing, where nothing is asked for."""

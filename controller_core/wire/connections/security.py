"""How a client speaks to servers that want encryption, or to know who it is: TLS by the standard library, SASL by scramp.

PLAIN and SCRAM are what Kafka's own clients need no other system for. GSSAPI and OAUTHBEARER do, and are refused in words.
"""

import ssl
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from scramp import ScramClient, ScramException

from controller_core.model.scram import SCRAM_MECHANISMS
from controller_core.security.jaas import read_jaas

PLAIN: Final = "PLAIN"
MECHANISMS: Final = (PLAIN, *(mechanism.name for mechanism in SCRAM_MECHANISMS.values()))
_MOST_ITERATIONS: Final = 1 << 20
"""Kafka lets nobody have more than 16,384; a server that asked for very many would have a client compute for minutes. One
that asks for fewer than 4096 is refused by scramp, as whoever listens could guess the password."""


def login_module(mechanism: str) -> str:
    """Java's class for a mechanism."""
    kind = "plain.Plain" if mechanism == PLAIN else "scram.Scram"
    return f"org.apache.kafka.common.security.{kind}LoginModule"


class LoginFailed(Exception):
    """The server proved not to know the password, or said what is no answer to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Who the client is, for SASL."""

    mechanism: str
    """One of `MECHANISMS`."""
    username: str
    password: str = field(repr=False)

    @classmethod
    def of_jaas(cls, text: str, *, mechanism: str, name: str) -> "Login":
        """Of a line in the words of Java; `name`: that of the property. Raises `InvalidProperties`."""
        user = read_jaas(text, name=name, module=login_module(mechanism))
        return cls(mechanism=mechanism, username=user.username, password=user.password)

    def messages(self) -> Generator[bytes, bytes, None]:
        """What the client says, message by message; each is to be answered by `send` with what the server said to it, in a
        thread: what SCRAM makes of a password takes some ms.

        Raises `LoginFailed` where that is not what it should be."""
        if self.mechanism == PLAIN:
            yield f"\0{self.username}\0{self.password}".encode()
            return
        yield from self._scram()

    def _scram(self) -> Generator[bytes, bytes, None]:
        exchange = ScramClient([self.mechanism], self.username, self.password)
        try:
            said = yield exchange.get_client_first().encode()
            exchange.set_server_first(said.decode())
            if (iterations := int(exchange.iterations)) > _MOST_ITERATIONS:
                raise LoginFailed(
                    f"{self.mechanism}: it asks for {iterations} iterations, more than {_MOST_ITERATIONS}"
                )
            said = yield exchange.get_client_final().encode()
            exchange.set_server_final(said.decode())
        except (ScramException, UnicodeDecodeError) as error:
            raise LoginFailed(f"{self.mechanism}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """How a connection is made. The default is PLAINTEXT."""

    tls: ssl.SSLContext | None = None
    login: Login | None = None


SecuritySource: TypeAlias = Callable[[], Security]
"""Is asked before each connection, in a thread of its own, so that what was renewed is used. Raises `InvalidProperties`."""

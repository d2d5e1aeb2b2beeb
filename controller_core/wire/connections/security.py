"""The security of outgoing connections: TLS and SASL.

GSSAPI (Kerberos) is refused with an error.
"""

import ssl
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from controller_core.model.scram import SCRAM_MECHANISMS
from controller_core.security.jaas import read_jaas, read_options
from controller_core.security.oauth.messages import GIVE_UP, Extensions, write_first_message
from controller_core.security.oauth.token_login import OAUTHBEARER, TokenLogin
from controller_core.wire.connections.scram_client import WrongAnswer, exchange_messages

PLAIN: Final = "PLAIN"
PASSWORD_MECHANISMS: Final = (PLAIN, *(mechanism.name for mechanism in SCRAM_MECHANISMS.values()))
MECHANISMS: Final = (*PASSWORD_MECHANISMS, OAUTHBEARER)
TOKENAUTH: Final = "tokenauth"
"""The option of a JAAS line by which a login is one with a delegation token."""
_LONGEST: Final = 200
_SCRAM: Final = {mechanism.name: mechanism for mechanism in SCRAM_MECHANISMS.values()}


def login_module(mechanism: str) -> str:
    """Return Java's login module for a mechanism with a password."""
    kind = "plain.Plain" if mechanism == PLAIN else "scram.Scram"
    return f"org.apache.kafka.common.security.{kind}LoginModule"


class LoginFailed(Exception):
    """The server did not prove that it knows the password, or its answer was malformed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """The identity of a client with a password, for SASL."""

    mechanism: str
    """One of `PASSWORD_MECHANISMS`."""
    username: str
    password: str = field(repr=False)
    is_token: bool = False
    """True if these are the id and the HMAC of a delegation token (KIP-48), for SCRAM."""

    @classmethod
    def parse_jaas(cls, text: str, *, mechanism: str, name: str) -> "Login":
        """Parse a JAAS line. `name` is the name of the property. Raises `InvalidProperties`."""
        user = read_jaas(text, name=name, module=login_module(mechanism))
        is_token = mechanism != PLAIN and read_options(text, name).get(TOKENAUTH, "").lower() == "true"
        return cls(mechanism=mechanism, username=user.username, password=user.password, is_token=is_token)

    def messages(self) -> Generator[bytes, bytes, None]:
        """Yield the client's messages. Answer each by `send` with the server's message, in another thread: SCRAM
        computes for some milliseconds.

        Raises `LoginFailed` for a wrong answer.
        """
        if self.mechanism == PLAIN:
            yield f"\0{self.username}\0{self.password}".encode()
            return
        try:
            mechanism = _SCRAM[self.mechanism]
            yield from exchange_messages(mechanism, self.username, self.password, is_token=self.is_token)
        except WrongAnswer as error:
            raise LoginFailed(
                f"it did not prove that it knows the password of {self.username}: {self.mechanism}: {error}"
            ) from error


def exchange_token(token: str, extensions: Extensions) -> Generator[bytes, bytes, None]:
    """Yield the client's messages of a login by a token, like `Login.messages`."""
    said = yield write_first_message(token, extensions)
    if said:
        yield GIVE_UP  # a server answers this with its reason
        raise LoginFailed(f"it refused the token: {said[:_LONGEST]!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """The security of a connection. The default is PLAINTEXT."""

    tls: ssl.SSLContext | None = None
    login: Login | TokenLogin | None = None


SecuritySource: TypeAlias = Callable[[], Security]
"""Returns the security. It is called before each connection, in another thread, so that renewed files are used. Raises
`InvalidProperties`."""

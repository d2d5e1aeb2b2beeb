"""The caller of a request: its principal, as Kafka names it, and its address."""

from dataclasses import dataclass
from typing import Final, Self

from controller_core.model.access import Address

USER: Final = "User"


@dataclass(frozen=True, slots=True, order=True)
class Principal:
    """Kafka's `KafkaPrincipal`: a type and a name, compared letter by letter."""

    kind: str
    name: str

    @classmethod
    def user(cls, name: str) -> Self:
        """Return a principal of the type that Kafka's own authentication assigns."""
        return cls(USER, name)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a principal as `super.users` and ACLs write it: `User:alice`. Raise `ValueError` if it is none."""
        kind, colon, name = text.partition(":")
        if not (kind and colon and name):
            raise ValueError(f"{text!r} is not a principal: write it as TYPE:NAME, such as User:alice")
        return cls(kind, name)

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS: Final = Principal.user("ANONYMOUS")
"""The principal of a caller that was not authenticated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The caller at the other end of a connection."""

    address: Address | None = None
    """None if the address can no longer be read."""
    principal: Principal = ANONYMOUS
    is_authenticated: bool = False
    """True if the listener authenticated the caller by a login or a certificate."""


NOBODY_IN_PARTICULAR: Final = Caller()

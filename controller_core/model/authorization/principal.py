"""Who asks something: his principal, as Kafka names it, and where he asks from."""

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
        """The type of all whom Kafka itself authenticates."""
        return cls(USER, name)

    @classmethod
    def parse(cls, text: str) -> Self:
        """As `super.users` and ACLs write it: `User:alice`. Raises `ValueError` that says so."""
        kind, colon, name = text.partition(":")
        if not (kind and colon and name):
            raise ValueError(f"{text!r} is no principal: write it as TYPE:NAME, such as User:alice")
        return cls(kind, name)

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS: Final = Principal.user("ANONYMOUS")
"""Who was not asked who he is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks by a connection."""

    address: Address | None = None
    """None where it cannot be known any more."""
    principal: Principal = ANONYMOUS
    is_authenticated: bool = False
    """Whether the listener asked who he is, by a login or a certificate."""


NOBODY_IN_PARTICULAR: Final = Caller()

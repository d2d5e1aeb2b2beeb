"""The place of a server: this machine on loopback, or a machine of a test network."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of a server. The default is this machine on loopback, which nothing outside reaches."""

    address: str = LOOPBACK
    """The address to listen on, at which others reach the server."""
    name: str | None = None
    """The host name with which a broker registers for other brokers and the controller, instead of the address."""
    entering: Sequence[str] = field(default=())
    """The beginning of a command line that runs at the place."""

    def command(self, command: Sequence[str]) -> list[str]:
        """Return the command line that runs a server at the place, without a process in between."""
        return [*self.entering, *command]


HERE: Final = Place()

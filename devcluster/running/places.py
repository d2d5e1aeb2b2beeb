"""Where a server runs: here, on loopback, or on a machine of a network that a test made."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a server has to know of it. The default is this machine, where nobody outside of it comes."""

    address: str = LOOPBACK
    """What is listened on, and where others find it."""
    name: str | None = None
    """What a broker there is registered by for other brokers and the controller, in place of the address."""
    entering: Sequence[str] = field(default=())
    """What a command line begins with that is to run there."""

    def command(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a server there, under the id of this one's process."""
        return [*self.entering, *command]


HERE: Final = Place()

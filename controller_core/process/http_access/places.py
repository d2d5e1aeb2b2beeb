"""The places of HTTP connections, over all HTTP ports of a process.

A full port still admits a new connection: another one loses its place. Otherwise silent clients could keep out the
probes of the kubelet, which would restart the process. The one that loses its place is of the address that has the most
places, and has made no progress for the longest time; those of readers who have shown who they are come last.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

from controller_core.wire.limits.descriptors import http_connections_within, raise_descriptor_limit

MOST_OF_AN_ADDRESS: Final = 64


@dataclass(eq=False, slots=True)
class Place:
    """The place of a connection."""

    address: str
    close: Callable[[], object]
    """Closes the connection when it loses its place."""
    is_known: bool = False
    """True if the client has shown a token or a certificate."""
    unanswered_bytes: int = 0
    """Bytes that have arrived since the last whole head of a request."""


class Places:
    """Limits the connections of each address and of all together."""

    def __init__(self, *, most: int, most_of_an_address: int = MOST_OF_AN_ADDRESS) -> None:
        self._most = most
        self._most_of_an_address = most_of_an_address
        self._taken: dict[Place, None] = {}  # in the order of their last progress

    @property
    def count(self) -> int:
        """The number of connections that have a place."""
        return len(self._taken)

    def take(self, place: Place) -> Place | None:
        """Give a connection its place. Return the place that was lost for it, or None."""
        lost = self._find_one_to_lose(place.address)
        if lost is not None:
            del self._taken[lost]
            lost.close()
        self._taken[place] = None
        return lost

    def note_progress(self, place: Place) -> None:
        """Remember that the connection has sent a whole request, or has taken a part of its answer."""
        if place in self._taken:
            del self._taken[place]
            self._taken[place] = None

    def give_back(self, place: Place) -> None:
        """Make room for another connection. Idempotent."""
        self._taken.pop(place, None)

    def _find_one_to_lose(self, address: str) -> Place | None:
        of_address = [each for each in self._taken if each.address == address]
        if len(of_address) >= self._most_of_an_address:
            return _find_least_deserving(of_address)
        if len(self._taken) < self._most:
            return None
        candidates = [each for each in self._taken if not each.is_known] or [*self._taken]
        ((greediest, _),) = Counter(each.address for each in candidates).most_common(1)
        return _find_least_deserving([each for each in candidates if each.address == greediest])


def _find_least_deserving(places: list[Place]) -> Place:
    return next((each for each in places if not each.is_known), places[0])


OPEN_PLACES: Final[dict[object, Place]] = {}
"""The places of this process's open connections, by the protocol that serves each."""


@cache
def get_places_of_process() -> Places:
    """Return the places of this process, after raising its limit of descriptors."""
    return Places(most=http_connections_within(raise_descriptor_limit()))

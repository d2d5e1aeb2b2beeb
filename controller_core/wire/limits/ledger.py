"""The ledger of a process's Kafka connections: their number, their memory, and who keeps room for whom.

Each connection takes its place and its memory before anything is received from it, and more memory before it takes
more, such as for a relay. It gives all back when it ends. Part of both is held back from strangers for callers who are
known, and a part of that for brokers (`Standing`).

Nobody is known before a TLS handshake or a login, so these connections have few places of their own. If all are taken,
a new connection still gets one if another connection can lose its place: one of an address that has more of them, or
one that has taken its time. So strangers cannot keep administrators out, and a burst of honest clients is served.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from controller_core.wire.limits.listener_limits import ListenerLimits

PLAIN_BYTES: Final = 64 * 1024
"""Memory of a connection without TLS: what is read in advance, a piece of an answer, and its objects."""
TLS_BYTES: Final = 128 * 1024
HANDSHAKE_BYTES: Final = 160 * 1024
"""Further memory of a TLS connection during its handshake, in which OpenSSL reserves what a client announces."""
RELAY_BYTES: Final = 160 * 1024
"""Further memory of a connection that is relayed to a broker."""
_HELD_BACK: Final = 8
"""One in this many places is held back for brokers, and one for others who are known."""


class Standing(IntEnum):
    """The standing of a caller. A higher one keeps more room."""

    STRANGER = 0
    KNOWN = 1
    """It has logged in, has shown a certificate, or has an administrator's address."""
    BROKER = 2


class NoRoom(Exception):
    """There are too many connections. The message says which limit is reached."""


@dataclass(slots=True, eq=False, kw_only=True)
class Place:
    """The place of a connection in the ledger."""

    ledger: "Ledger" = field(repr=False)
    address: str
    standing: Standing
    bytes: int = 0
    handshake_bytes: int = 0
    since_s: float
    close: Callable[[], object] | None = None
    """Closes the connection. Set it at once: a connection without a login can lose its place."""

    def settle(self, standing: Standing) -> None:
        """Give back the place before a login, and keep that of an established connection. Raises `NoRoom`."""
        self.ledger.settle(self, standing)

    def take(self, amount: int) -> bool:
        """Reserve more memory. Return False if there is too little."""
        return self.ledger.take(self, amount)

    def give_back(self, amount: int) -> None:
        """Give back a part of the memory."""
        self.ledger.give_back(self, amount)

    def leave(self) -> None:
        """Give back all. Idempotent."""
        self.ledger.leave(self)


class Ledger:
    """Counts connections and their memory."""

    def __init__(self, limits: ListenerLimits, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._grace_s = limits.unauthenticated_grace_ms / 1000
        self._now_s = now_s
        self._places: set[Place] = set()
        self._of_address: Counter[str] = Counter()
        self._bytes = 0
        self._beginning: dict[Place, None] = {}  # the oldest first
        self._beginning_of_address: Counter[str] = Counter()

    @property
    def bytes(self) -> int:
        """The memory that is reserved now."""
        return self._bytes

    def enter(self, address: str, standing: Standing, *, is_tls: bool = False, logs_in: bool = False) -> Place:
        """Give a new connection its place. Raises `NoRoom`.

        `logs_in`: it begins with a TLS handshake or a login. Until it settles it may be anybody.
        """
        begins = is_tls or logs_in
        counts_as = max(standing, Standing.KNOWN) if begins else standing
        self._require_place(counts_as, len(self._places) + 1)
        if standing is not Standing.BROKER:
            most = self._limits.max_connections_per_address
            if self._of_address[address] >= most:
                raise NoRoom(f"the address has {most} connections")
        place = Place(ledger=self, address=address, standing=counts_as, since_s=self._now_s())
        if begins:
            self._make_room_to_begin(address, standing)
            self._beginning[place] = None
            self._beginning_of_address[address] += 1
        self._places.add(place)
        self._of_address[address] += 1
        place.handshake_bytes = HANDSHAKE_BYTES if is_tls else 0
        if not self.take(place, (TLS_BYTES if is_tls else PLAIN_BYTES) + place.handshake_bytes):
            self.leave(place)
            raise NoRoom(f"the connections have {self._bytes >> 20} MiB of memory")
        return place

    def settle(self, place: Place, standing: Standing) -> None:
        """See `Place.settle`."""
        self._end_beginning(place)
        self.give_back(place, place.handshake_bytes)
        place.handshake_bytes = 0
        place.standing = standing
        if place in self._places:
            self._require_place(standing, len(self._places))

    def take(self, place: Place, amount: int) -> bool:
        """See `Place.take`."""
        most = self._part(self._limits.connections_bytes, place.standing)
        if place not in self._places or self._bytes + amount > most:
            return False
        self._bytes += amount
        place.bytes += amount
        return True

    def give_back(self, place: Place, amount: int) -> None:
        """See `Place.give_back`."""
        amount = min(amount, place.bytes)
        place.bytes -= amount
        self._bytes -= amount

    def leave(self, place: Place) -> None:
        """See `Place.leave`."""
        if place not in self._places:
            return
        self._places.remove(place)
        _count_down(self._of_address, place.address)
        self._end_beginning(place)
        self.give_back(place, place.bytes)

    def _require_place(self, standing: Standing, wanted: int) -> None:
        if wanted > self._part(self._limits.max_connections, standing):
            raise NoRoom(f"there are {len(self._places)} connections")

    @staticmethod
    def _part(whole: int, standing: Standing) -> int:
        return whole - (Standing.BROKER - standing) * (whole // _HELD_BACK)

    def _end_beginning(self, place: Place) -> None:
        if place in self._beginning:
            del self._beginning[place]
            _count_down(self._beginning_of_address, place.address)

    def _make_room_to_begin(self, address: str, standing: Standing) -> None:
        limits, of_address = self._limits, self._beginning_of_address[address]
        most = self._part(limits.max_unauthenticated_connections, max(standing, Standing.KNOWN))
        if standing is not Standing.BROKER and of_address >= limits.max_unauthenticated_connections_per_address:
            self._displace(address, f"the address has {of_address} connections before a login", self._grace_s)
        elif len(self._beginning) >= most:
            others = Counter(each.address for each in self._beginning if each.standing is not Standing.BROKER)
            greediest, its_number = others.most_common(1)[0] if others else (address, 0)
            is_greedier = its_number > of_address + 1
            reason = f"there are {len(self._beginning)} connections before a login"
            self._displace(greediest if is_greedier else None, reason, 0.0 if is_greedier else self._grace_s)

    def _displace(self, address: str | None, reason: str, grace_s: float) -> None:
        """Close the oldest connection of an address, or of all but brokers. Raises `NoRoom` if it is not old enough."""
        candidates = (each for each in self._beginning if address in (None, each.address))
        lost = next((each for each in candidates if each.standing is not Standing.BROKER), None)
        if lost is None or self._now_s() - lost.since_s < grace_s:
            raise NoRoom(reason)
        self.leave(lost)
        if lost.close is not None:
            lost.close()


def _count_down(counter: Counter[str], address: str) -> None:
    counter[address] -= 1
    if not counter[address]:
        del counter[address]

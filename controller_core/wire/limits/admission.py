"""Who may connect: so many in all, so many from one address, and room that is kept for brokers.

Every connection takes a descriptor, and one that is passed on to a broker takes two. The controller needs descriptors
for its own connections, to ZooKeeper and to every broker: without them it leads nobody. So the number of connections
is bounded below the process's limit of descriptors, and strangers leave room for registered brokers.
"""

import resource
import sys
from collections import Counter
from dataclasses import replace
from typing import Final

import structlog

from controller_core.wire.limits.listener_limits import ListenerLimits

log = structlog.get_logger()

MOST_CONNECTIONS: Final = 10_000
_DESCRIPTORS_OF_ONE: Final = 2
_OWN_DESCRIPTORS: Final = 1_000
"""For ZooKeeper, brokers, the journal, scrapes of metrics; a quarter of all where that is less."""
_BROKERS_PART: Final = 8
"""One of so many connections is kept for brokers."""


class Admission:
    """Counts connections by address. `admit` before one is served, `leave` after it."""

    def __init__(self, *, most: int, most_of_an_address: int) -> None:
        self._most = most
        self._most_of_strangers = most - most // _BROKERS_PART
        self._most_of_an_address = most_of_an_address
        self._of_address: Counter[str] = Counter()
        self._in_all = 0

    def admit(self, address: str, *, is_broker: bool) -> str | None:
        """Why the address may not connect once more, in words; None: it may, and is counted."""
        if self._in_all >= (self._most if is_broker else self._most_of_strangers):
            return f"there are {self._in_all} connections"
        if not is_broker and self._of_address[address] >= self._most_of_an_address:
            return f"the address has {self._most_of_an_address} connections"
        self._of_address[address] += 1
        self._in_all += 1
        return None

    def leave(self, address: str) -> None:
        """A connection that was admitted has ended."""
        self._in_all -= 1
        self._of_address[address] -= 1
        if not self._of_address[address]:
            del self._of_address[address]


class Place:
    """The place of an admitted connection, which can be given back before the connection ends."""

    def __init__(self, admission: Admission, address: str) -> None:
        self._admission: Admission | None = admission
        self._address = address

    def give_back(self) -> None:
        """Makes room for another connection. Idempotent."""
        admission, self._admission = self._admission, None
        if admission is not None:
            admission.leave(self._address)


def descriptor_limit() -> int:
    """Return how many descriptors the process may have now."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def raise_descriptor_limit() -> int:
    """Raises the process's limit of descriptors as far as it may, and returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OWN_DESCRIPTORS + _DESCRIPTORS_OF_ONE * MOST_CONNECTIONS
    target = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < target:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
        soft = target
    return wanted if soft == resource.RLIM_INFINITY else soft


def connections_within(descriptors: int) -> int:
    """How many connections may be served where the process may have so many descriptors."""
    own = min(_OWN_DESCRIPTORS, descriptors // 4)
    return max(1, min(MOST_CONNECTIONS, (descriptors - own) // _DESCRIPTORS_OF_ONE))


def within_descriptors(limits: ListenerLimits) -> ListenerLimits:
    """The limits with as many of their connections as the process has descriptors for, whose limit is raised for it."""
    descriptors = raise_descriptor_limit()
    most = min(limits.max_connections, connections_within(descriptors))
    if most < limits.max_connections:
        log.warning(
            "fewer connections are served than --max-connections, or max.connections, says: raise the limit of open files, "
            "or say less",
            max_connections=most,
            descriptors=descriptors,
        )
    return replace(limits, max_connections=most)

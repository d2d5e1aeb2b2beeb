"""Limits of connections: in total, for each address, and with room reserved for brokers.

Every connection takes a file descriptor, and a relayed one takes two. The controller needs descriptors for its own
connections to ZooKeeper and to every broker; without them it cannot lead. So the number of connections stays below the
process's limit of descriptors, and strangers leave room for registered brokers.
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
"""Descriptors for ZooKeeper, brokers, the journal and metrics; a quarter of all if that is less."""
_BROKERS_PART: Final = 8
"""One in this many connections is reserved for brokers."""


class Admission:
    """Counts connections by address. Call `admit` before serving a connection, and `leave` after it."""

    def __init__(self, *, most: int, most_of_an_address: int) -> None:
        self._most = most
        self._most_of_strangers = most - most // _BROKERS_PART
        self._most_of_an_address = most_of_an_address
        self._of_address: Counter[str] = Counter()
        self._in_all = 0

    def admit(self, address: str, *, is_broker: bool) -> str | None:
        """Count a connection from the address. Return None, or the reason if there are too many."""
        if self._in_all >= (self._most if is_broker else self._most_of_strangers):
            return f"there are {self._in_all} connections"
        if not is_broker and self._of_address[address] >= self._most_of_an_address:
            return f"the address has {self._most_of_an_address} connections"
        self._of_address[address] += 1
        self._in_all += 1
        return None

    def leave(self, address: str) -> None:
        """Stop counting an admitted connection."""
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
        """Make room for another connection. Idempotent."""
        admission, self._admission = self._admission, None
        if admission is not None:
            admission.leave(self._address)


def descriptor_limit() -> int:
    """Return the current limit of the process's descriptors."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def raise_descriptor_limit() -> int:
    """Raise the process's limit of descriptors as far as needed and permitted. Return the usable number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OWN_DESCRIPTORS + _DESCRIPTORS_OF_ONE * MOST_CONNECTIONS
    target = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < target:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
        soft = target
    return wanted if soft == resource.RLIM_INFINITY else soft


def connections_within(descriptors: int) -> int:
    """Return the number of connections that this many descriptors allow."""
    own = min(_OWN_DESCRIPTORS, descriptors // 4)
    return max(1, min(MOST_CONNECTIONS, (descriptors - own) // _DESCRIPTORS_OF_ONE))


def fit_to_descriptors(limits: ListenerLimits) -> ListenerLimits:
    """Lower the connection limit to what the process's descriptors allow, after raising that limit."""
    descriptors = raise_descriptor_limit()
    most = min(limits.max_connections, connections_within(descriptors))
    if most < limits.max_connections:
        log.warning(
            "the limit of connections is below --max-connections or max.connections: raise the limit of open files, "
            "or lower the setting",
            max_connections=most,
            descriptors=descriptors,
        )
    return replace(limits, max_connections=most)

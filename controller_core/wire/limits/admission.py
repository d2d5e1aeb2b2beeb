"""Limits of connections: in total, for each address, and with room reserved for brokers.

Every connection takes a file descriptor, and a relayed one takes two. The controller needs descriptors for its own
connections to ZooKeeper and to every broker; without them it cannot lead. So the process raises its limit of
descriptors and divides them: some for its own connections and files, some for its HTTP ports, and the rest for the
Kafka listener, where strangers leave room for registered brokers.
"""

import resource
from collections import Counter
from dataclasses import replace
from typing import Final

import structlog

from controller_core.wire.limits.listener_limits import ListenerLimits

log = structlog.get_logger()

MOST_CONNECTIONS: Final = 10_000
_DESCRIPTORS_OF_ONE: Final = 2
_OWN_DESCRIPTORS: Final = 1_000
"""Descriptors for ZooKeeper, brokers and the journal; a quarter of all if that is less."""
_MOST_HTTP_CONNECTIONS: Final = 256
"""Connections of all HTTP ports together; an eighth of all descriptors if that is less."""
_MOST_DESCRIPTORS: Final = 1 << 16
"""More than any process uses. Programs that go through all possible descriptors stay fast."""
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


def raise_descriptor_limit() -> int:
    """Raise the process's limit of descriptors as far as needed and permitted. Return the usable number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_MOST_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < target:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
        soft = target
    return _MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def http_connections_within(descriptors: int) -> int:
    """Return the number of connections that all HTTP ports of a process may have with this many descriptors."""
    return max(1, min(_MOST_HTTP_CONNECTIONS, descriptors // 8))


def connections_within(descriptors: int) -> int:
    """Return the number of Kafka connections that this many descriptors allow."""
    others = min(_OWN_DESCRIPTORS, descriptors // 4) + http_connections_within(descriptors)
    return max(1, min(MOST_CONNECTIONS, (descriptors - others) // _DESCRIPTORS_OF_ONE))


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

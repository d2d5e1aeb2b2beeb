"""Limits of connections by the process's descriptors.

Every connection takes a file descriptor, and a relayed one takes two. The controller needs descriptors for its own
connections to ZooKeeper and to every broker; without them it cannot lead. So the process raises its limit of
descriptors and divides them: some for its own connections and files, some for its HTTP ports, and the rest for the
Kafka listener.
"""

import resource
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

"""Requests in unserved versions. All are counted, and their senders are logged now and then, with a remedy.

A broker with an old `inter.broker.protocol.version` sends old versions, and again at once if its connection is closed.
A line for each request would fill the log; without any line nobody would learn why its ISRs do not change."""

from typing import Any, Final

import structlog
from prometheus_client import CollectorRegistry, Counter

from controller_core.wire.codecs.frames import RequestHead, read_client_id
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.limits.complaints import Complaints

INTERVAL_S: Final = 600.0
"""Seconds between log lines about a sender, for each API."""

log = structlog.get_logger()


class UnservedRequests:
    """Takes reports of unserved requests."""

    def __init__(self, registry: CollectorRegistry, *, interval_s: float = INTERVAL_S) -> None:
        self._complaints = Complaints(log, interval_s=interval_s)
        self._count = Counter(
            "kontroller_unserved_requests_total",
            "Requests that were refused because their version is not served",
            ["api"],
            registry=registry,
        )

    def report(self, versions: Versions[Any], head: RequestHead, content: bytes) -> None:
        """Report a request. Brokers send their id as client id."""
        api = versions.newest.__name__.removesuffix("Request")
        sender = read_client_id(content)
        self._count.labels(api).inc()
        self._complaints.warn(
            (sender, api),
            "request refused: its version is not served; if a broker sends it, run it with Kafka 2.8 to 3.9 and its "
            "default of inter.broker.protocol.version: until then the ISRs of its partitions do not change",
            client_id=sender,
            api=api,
            version=head.api_version,
            served=f"{versions.min} to {versions.max}",
        )

"""Counts of what a listener refused, by reason. The log has the addresses and the details."""

from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter


class Reason(StrEnum):
    """The reason of a refusal, as in the metric."""

    RIGHT = "right"
    """The caller may not send the request, by its address or by a right on the whole cluster."""
    LOGIN = "login"
    TLS = "tls"
    """The handshake failed. Clients that only left are not counted, because load balancers do that."""
    LIMIT = "limit"
    """There were too many connections, or too many before a login."""
    BYTES = "bytes"
    """The bytes were no request of Kafka, or too large."""


class Refusals:
    """Counts the refusals of all connections of a listener. Without a registry nobody reads them."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._count = Counter(
            "kontroller_refused_total",
            "Requests and connections that the Kafka listener refused, by reason: right (of an address, or on the "
            "cluster), login, tls, limit (of connections), bytes (no request of Kafka, or too large)",
            ["reason"],
            registry=registry,
        )
        for reason in Reason:  # an increase from nothing would not be seen
            self._count.labels(reason)

    def count(self, reason: Reason) -> None:
        """Count a refusal."""
        self._count.labels(reason).inc()

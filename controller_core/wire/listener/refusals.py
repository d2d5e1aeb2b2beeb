"""Counts of what the ports of a process refused, by reason. The log has the addresses and the details."""

from collections.abc import Iterable
from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter


class Port(StrEnum):
    """The kind of a port, as in the metric."""

    KAFKA = "kafka"
    HTTP = "http"
    """Metrics, probes, the journal and the webhook."""


class Reason(StrEnum):
    """The reason of a refusal, as in the metric."""

    RIGHT = "right"
    """The caller may not send the request, by its address, its certificate, or a right on the whole cluster."""
    LOGIN = "login"
    """The login failed; at an HTTP port a token or certificate is missing or wrong, or no token can be read."""
    TLS = "tls"
    """The handshake failed. Clients that only left are not counted, because load balancers do that."""
    LIMIT = "limit"
    """There were too many connections, too many before a login, or too many questions to the webhook."""
    BYTES = "bytes"
    """The bytes were no request of Kafka or HTTP, or too large."""


class Refusals:
    """Counts the refusals of all ports of a process. Without a registry nobody reads them."""

    def __init__(self, registry: CollectorRegistry | None = None, ports: Iterable[Port] = Port) -> None:
        """`ports`: the kinds of ports that the process has."""
        self._count = Counter(
            "kontroller_refused_total",
            "Requests and connections that a port (kafka, or http: metrics, probes, journal, webhook) refused, by "
            "reason: right (of an address, a certificate, or on the cluster), login (or token), tls, limit (of "
            "connections or questions), bytes (no request, or too large)",
            ["port", "reason"],
            registry=registry,
        )
        for port in ports:
            for reason in Reason:  # an increase from nothing would not be seen
                self._count.labels(port, reason)

    def count(self, reason: Reason, port: Port = Port.KAFKA) -> None:
        """Count a refusal."""
        self._count.labels(port, reason).inc()

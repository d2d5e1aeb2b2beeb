"""Limits of the connections to a listener: their number, time and bytes."""

from dataclasses import dataclass

from controller_core.wire.codecs.frames import DEFAULT_MAX_FRAME_BYTES

_MB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerLimits:
    """The limits of one connection, and of all together. The defaults are Kafka's if Kafka has one."""

    max_connections: int = 5_000
    max_connections_per_address: int = 1_000
    max_unauthenticated_connections: int = 256
    """Connections in a TLS handshake or a login at once."""
    max_unauthenticated_connections_per_address: int = 64
    unauthenticated_grace_ms: int = 1_000
    """Time that a connection may take before its login until it can lose its place to a new one."""
    connections_bytes: int = 665 * _MB
    """Memory of all connections, without that of requests. See `memory`."""
    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES
    """Largest relayed request with records."""
    max_passed_on_bytes: int = 16 * _MB
    """Largest relayed request without records."""
    max_own_request_bytes: int = 8 * _MB
    """Largest request that is answered here, and so becomes many objects. It can have more than 100,000 partitions."""
    max_refused_request_bytes: int = 64 * 1024
    """Largest request that is refused whatever its content. It is read only to form the answer."""
    max_answer_bytes: int = DEFAULT_MAX_FRAME_BYTES
    """Largest relayed answer of a broker. It takes no memory, because it is passed on in pieces."""
    brokers_bytes: int = 64 * _MB
    """Bytes in memory at once of all requests that only brokers may send."""
    administrators_bytes: int = 32 * _MB
    """Bytes in memory at once of all requests that only administrators may send."""
    strangers_bytes: int = 96 * _MB
    """Bytes in memory at once of all other requests: those that everybody may send, and refused ones."""
    max_requests_in_flight: int = 5_000
    """Requests of each of these three kinds that are read and not yet answered. A connection has one at a time."""
    tls_handshake_timeout_ms: int = 10_000
    """Time for the TLS handshake, from the accept on."""
    first_request_timeout_ms: int = 60_000
    """Time for the first request of a connection to arrive."""
    idle_timeout_ms: int = 600_000
    """Time for the next request to arrive, or for the client to take a part of a broker's response
    (`connections.max.idle.ms`)."""
    frame_timeout_ms: int = 30_000
    """Time for a request to arrive completely, and for the client to take a response made here, which is in memory. A
    second more for each `bytes_per_second` of it."""
    bytes_per_second: int = 256 * 1024
    unread_patience_ms: int = 5_000
    """Time for which a client may read nothing of its answer while unread answers have all the memory."""
    upstream_connect_timeout_ms: int = 3_000
    """Time for a connection to a broker before another one is tried."""
    upstream_answer_timeout_ms: int = 5_000
    """Time for a broker's answer if another broker can answer as well."""
    attention_interval_ms: int = 1_000
    """Time between checks that the two ends of a pending answer are still connected."""

    def frame_timeout_s(self, length: int) -> float:
        """Return the time in seconds that a request or response of this length may take."""
        return self.frame_timeout_ms / 1000 + length / self.bytes_per_second

"""What connections to the controller's listener may take: their number, their time, their bytes."""

from dataclasses import dataclass

from controller_core.wire.codecs.frames import DEFAULT_MAX_FRAME_BYTES

_MB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerLimits:
    """What one connection, and all of them, may take. The defaults are Kafka's, where Kafka has one."""

    max_connections: int = 5_000
    max_connections_per_address: int = 1_000
    max_unauthenticated_connections: int = 256
    """In a handshake of TLS or a login at the same time: what these take in memory is in no budget of requests."""
    max_unauthenticated_connections_per_address: int = 64
    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES
    """For what is passed on: records that are produced."""
    max_passed_on_bytes: int = 16 * _MB
    """For what is passed on and has no records in it."""
    max_own_request_bytes: int = 8 * _MB
    """For a request that is answered here, and so becomes many objects: it says more than 100,000 partitions."""
    max_refused_request_bytes: int = 64 * 1024
    """For a request that is refused whatever it says. It is read for the answer alone."""
    max_answer_bytes: int = DEFAULT_MAX_FRAME_BYTES
    """For a broker's answer that is passed on, which takes no memory: it comes in pieces."""
    brokers_bytes: int = 64 * _MB
    """For the requests that only brokers may send, of all of them together, that are in memory at once."""
    administrators_bytes: int = 32 * _MB
    """For those that only administrators may send."""
    strangers_bytes: int = 96 * _MB
    """For all others: those that anybody may send, and those that are refused."""
    max_requests_in_flight: int = 5_000
    """That are read and not yet answered, of each of these three kinds. A connection has one at a time."""
    tls_handshake_timeout_ms: int = 10_000
    """For the handshake of TLS, from when the connection was accepted."""
    first_request_timeout_ms: int = 60_000
    """For the first request of a connection to arrive: who has connected has something to ask."""
    idle_timeout_ms: int = 600_000
    """For the next request to arrive, or the client to take a part of a broker's response (`connections.max.idle.ms`)."""
    frame_timeout_ms: int = 30_000
    """For a request that has begun to arrive to be there, and for a response that was made here, which is in memory, to be
    taken; and a second more for each `bytes_per_second` of it."""
    bytes_per_second: int = 256 * 1024
    upstream_connect_timeout_ms: int = 3_000
    """For a broker to take a connection, before another is tried."""
    upstream_answer_timeout_ms: int = 5_000
    """For a broker to answer what another broker can answer as well."""
    attention_interval_ms: int = 1_000
    """How often it is looked after whether whoever awaits an answer, and whoever owes it, are still there."""

    def frame_timeout_s(self, length: int) -> float:
        """How long a request or response of that length may take on its way."""
        return self.frame_timeout_ms / 1000 + length / self.bytes_per_second

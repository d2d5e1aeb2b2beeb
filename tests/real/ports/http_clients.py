"""Strangers and probes at an HTTP port."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from socket import socket
from typing import Final
from urllib.request import urlopen

from tests.real.ports.strangers import SOON_S, Holdings, connect_strangers
from tests.real.ports.strangers import STRANGERS as ALL_STRANGERS

HALF_A_REQUEST: Final = b"GET /metrics HTTP/1.1\r\nHost: he"
STRANGERS: Final = ALL_STRANGERS[:20]
_MOST_LOG_BYTES: Final = 64 << 10
_MOST_HTTP_CONNECTIONS: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpPort(Holdings):
    """An HTTP port of a process."""

    number: int

    def probe(self) -> int:
        """Return the status of /healthz. Raises `OSError`."""
        with urlopen(f"http://127.0.0.1:{self.number}/healthz", timeout=SOON_S) as answer:
            return int(answer.status)

    def send_halves(
        self, count: int, *, addresses: Sequence[str] = STRANGERS, sent: bytes = HALF_A_REQUEST
    ) -> AbstractContextManager[list[socket]]:
        """Open connections, send a part of a request on each, and keep them until the end of the block."""
        return connect_strangers(self.number, count, addresses=addresses, sent=sent)


def assert_little_is_taken(port: HttpPort) -> AbstractContextManager[Callable[[], None]]:
    """Assert that the process takes few descriptors, little memory and few log lines during the block."""
    return port.assert_little_is_taken(descriptors=_MOST_HTTP_CONNECTIONS + 16, log_bytes=_MOST_LOG_BYTES)

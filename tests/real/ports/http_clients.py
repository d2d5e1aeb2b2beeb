"""Strangers and probes at an HTTP or HTTPS port."""

import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from socket import socket
from typing import Final
from urllib.error import HTTPError
from urllib.request import Request

from devcluster.running.scraping import open_locally
from tests.real.ports.strangers import SOON_S, Holdings, connect_strangers
from tests.real.ports.strangers import STRANGERS as ALL_STRANGERS

NO_HEADERS: Final[Mapping[str, str]] = {}
TOKEN: Final = "a-token-of-readers"
BEARER: Final[Mapping[str, str]] = {"Authorization": f"Bearer {TOKEN}"}
WRONG_BEARER: Final[Mapping[str, str]] = {"Authorization": f"Bearer {TOKEN}x"}
HALF_A_REQUEST: Final = b"GET /metrics HTTP/1.1\r\nHost: he"
STRANGERS: Final = ALL_STRANGERS[:20]
_MOST_LOG_BYTES: Final = 64 << 10
_MOST_HTTP_CONNECTIONS: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpPort(Holdings):
    """An HTTP port of a process, or an HTTPS port."""

    number: int
    tls: ssl.SSLContext | None = None
    """The context of clients of an HTTPS port."""
    metrics_statuses: tuple[int, int, int] = (401, 401, 200)
    """The statuses of /metrics for readers without a token, with a wrong one, and with `TOKEN`."""

    @property
    def address(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.number}"

    def probe(self) -> int:
        """Return the status of /healthz. Raises `OSError`."""
        return self.read_status("/healthz")

    def read_status(
        self, page: str, *, tls: ssl.SSLContext | None = None, headers: Mapping[str, str] = NO_HEADERS
    ) -> int:
        """Return the status of a page. Raises `OSError`."""
        asked = Request(f"{self.address}{page}", headers=dict(headers))
        try:
            with open_locally(asked, timeout_s=SOON_S, tls=tls or self.tls) as answer:
                return int(answer.status)
        except HTTPError as error:
            return error.code

    def send_halves(
        self, count: int, *, addresses: Sequence[str] = STRANGERS, sent: bytes = HALF_A_REQUEST
    ) -> AbstractContextManager[list[socket]]:
        """Open connections, with TLS if the port has it, send a part of a request on each, and keep them until the end
        of the block."""
        return connect_strangers(self.number, count, addresses=addresses, sent=sent, prepare=self._shake_hands)

    def _shake_hands(self, connection: socket) -> socket:
        return connection if self.tls is None else self.tls.wrap_socket(connection, server_hostname="127.0.0.1")


def assert_little_is_taken(port: HttpPort) -> AbstractContextManager[Callable[[], None]]:
    """Assert that the process takes few descriptors, little memory and few log lines during the block."""
    return port.assert_little_is_taken(descriptors=_MOST_HTTP_CONNECTIONS + 16, log_bytes=_MOST_LOG_BYTES)

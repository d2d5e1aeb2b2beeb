"""Strangers at an HTTP port, from many addresses of this machine, and what the process holds meanwhile."""

import os
import resource
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.request import urlopen

from devcluster.running.processes import ManagedProcess

HALF_A_REQUEST: Final = b"GET /metrics HTTP/1.1\r\nHost: he"
STRANGERS: Final = tuple(f"127.0.1.{number}" for number in range(1, 21))
_MOST_LOG_BYTES: Final = 64 << 10
_MOST_MORE_BYTES: Final = 160 << 20
_MOST_HTTP_CONNECTIONS: Final = 256
_SOON_S: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpPort:
    """An HTTP port of a process."""

    number: int
    process: ManagedProcess

    def probe(self) -> int:
        """Return the status of /healthz. Raises `OSError`."""
        with urlopen(f"http://127.0.0.1:{self.number}/healthz", timeout=_SOON_S) as answer:
            return int(answer.status)

    def count_descriptors(self) -> int:
        """Return the number of descriptors that the process has open."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def read_memory_bytes(self) -> int:
        """Return the resident memory of the process."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * resource.getpagesize()


def raise_own_limit() -> None:
    """Let this process open as many descriptors as it may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@contextmanager
def connect_strangers(
    port: int, count: int, *, addresses: Sequence[str] = STRANGERS, sent: bytes = HALF_A_REQUEST
) -> Iterator[list[socket.socket]]:
    """Open connections, send a part of a request on each, and keep them until the end of the block."""
    raise_own_limit()
    opened: list[socket.socket] = []
    try:
        for number in range(count):
            with suppress(ConnectionError):
                address = addresses[number % len(addresses)]
                opened.append(socket.create_connection(("127.0.0.1", port), _SOON_S, source_address=(address, 0)))
                opened[-1].sendall(sent)
        yield opened
    finally:
        for each in opened:
            each.close()


@contextmanager
def assert_little_is_taken(port: HttpPort) -> Iterator[Callable[[], None]]:
    """Yield a function that asserts that the process is alive and has taken few descriptors, little memory and few log
    lines since the beginning of the block. It is called at the end, too."""
    descriptors, memory, log = port.count_descriptors(), port.read_memory_bytes(), port.process.log_path.stat().st_size

    def check() -> None:
        assert port.count_descriptors() - descriptors <= _MOST_HTTP_CONNECTIONS + 16
        assert port.read_memory_bytes() - memory < _MOST_MORE_BYTES
        assert port.process.log_path.stat().st_size - log < _MOST_LOG_BYTES

    yield check
    check()


def is_closed_by_server(connection: socket.socket) -> bool:
    """Return True when the other end has closed the connection. Waits for it."""
    connection.settimeout(_SOON_S)
    with suppress(ConnectionError):
        while connection.recv(1 << 16):
            pass
    return True


def send_until_closed(connection: socket.socket, sent: bytes) -> None:
    """Send the bytes again and again until the other end closes the connection."""
    with suppress(ConnectionError):
        while True:
            connection.sendall(sent)

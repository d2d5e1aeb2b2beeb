"""Strangers at the ports of a process, from many addresses of this machine, and what the process holds meanwhile."""

import os
import resource
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devcluster.running.processes import ManagedProcess

STRANGERS: Final = tuple(f"127.0.1.{number}" for number in range(1, 101))
SOON_S: Final = 60
_MOST_MORE_BYTES: Final = 160 << 20
_LEAST_SEGMENT: Final = 536
_LEAST_BUFFER: Final = 4096

Prepare = Callable[[socket.socket], socket.socket]
"""Prepares a stranger's connection: returns it with TLS, or after a login. Raises `OSError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """The descriptors, memory and log of a process."""

    process: ManagedProcess

    def count_descriptors(self) -> int:
        """Return the number of descriptors that the process has open."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def read_memory_bytes(self) -> int:
        """Return the resident memory of the process."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * resource.getpagesize()

    def count_log_bytes(self) -> int:
        """Return the length of its log."""
        return self.process.log_path.stat().st_size

    @contextmanager
    def assert_little_is_taken(self, *, descriptors: int, log_bytes: int) -> Iterator[Callable[[], None]]:
        """Yield a function that asserts that the process is alive and has taken few descriptors, little memory and few
        log lines since the beginning of the block. It is called at the end, too."""
        before = self.count_descriptors(), self.read_memory_bytes(), self.count_log_bytes()

        def check() -> None:
            assert self.count_descriptors() - before[0] <= descriptors
            assert self.read_memory_bytes() - before[1] < _MOST_MORE_BYTES
            assert self.count_log_bytes() - before[2] < log_bytes

        yield check
        check()


def raise_own_limit() -> None:
    """Let this process and its children open as many descriptors as they may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@contextmanager
def connect_strangers(
    port: int,
    count: int,
    *,
    sent: bytes,
    addresses: Sequence[str] = STRANGERS,
    prepare: Prepare = lambda connection: connection,
    reads: bool = True,
) -> Iterator[list[socket.socket]]:
    """Open connections, send something on each, and keep them until the end of the block.

    The server may refuse or close them. `reads`: if not, the kernel takes as little as possible for the stranger.
    """
    raise_own_limit()
    opened: list[socket.socket] = []
    try:
        for number in range(count):
            with suppress(OSError):
                opened.append(_connect(port, addresses[number % len(addresses)], reads=reads))
                opened[-1] = prepare(opened[-1])
                opened[-1].sendall(sent)
        yield opened
    finally:
        for each in opened:
            each.close()


def _connect(port: int, address: str, *, reads: bool) -> socket.socket:
    connection = socket.socket()
    connection.settimeout(SOON_S)
    if not reads:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _LEAST_BUFFER)
        # The server's kernel holds a number of segments.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _LEAST_SEGMENT)
    try:
        connection.bind((address, 0))
        connection.connect(("127.0.0.1", port))
    except OSError:
        connection.close()
        raise
    return connection


def is_closed_by_server(connection: socket.socket) -> bool:
    """Return True when the other end has closed the connection. Waits for it."""
    connection.settimeout(SOON_S)
    with suppress(ConnectionError, ssl.SSLEOFError):
        while connection.recv(1 << 16):
            pass
    return True


def send_until_closed(connection: socket.socket, sent: bytes, *, pause_s: float = 0) -> None:
    """Send the bytes again and again until the other end closes the connection."""
    with suppress(ConnectionError, ssl.SSLEOFError):
        while True:
            connection.sendall(sent)
            time.sleep(pause_s)

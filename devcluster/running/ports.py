"""Loopback ports for servers that must know their port before they start, and keep it over a restart.

Ports come from below the ephemeral range, so no outgoing connection takes one between a server's stop and its
restart. A reservation is an abstract Unix socket named after the port: it lives as long as this process,
needs no file, and keeps every other development cluster on the machine off the port.
"""

import random
import socket
import threading

from devcluster.running.places import LOOPBACK

_RANGE = range(20_000, 32_000)

_lock = threading.Lock()
_reservations: dict[int, socket.socket] = {}


class NoFreePortError(Exception):
    """Every port of the range is in use; the remedy is to stop other development clusters on this machine."""


def reserve_port() -> int:
    """Reserve a port on 127.0.0.1 that nobody listens on, until this process ends or releases it."""
    start = random.choice(_RANGE)  # noqa: S311 -- spreads clusters over the range, guards no secret
    with _lock:
        for offset in range(len(_RANGE)):
            port = _RANGE[(start - _RANGE.start + offset) % len(_RANGE)]
            if port not in _reservations and _reserve(port):
                return port
    raise NoFreePortError(f"every port from {_RANGE.start} to {_RANGE.stop} is taken: stop other clusters")


def release_port(port: int) -> None:
    """Give the port back; a port that is not reserved is left alone."""
    with _lock:
        reservation = _reservations.pop(port, None)
    if reservation is not None:
        reservation.close()


def accepts(port: int, address: str = LOOPBACK) -> bool:
    """Return True if something accepts connections on the port."""
    try:
        with socket.create_connection((address, port), timeout=1):
            return True
    except OSError:
        return False


def _reserve(port: int) -> bool:
    reservation = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        reservation.bind(f"\0kontroller-devcluster-port-{port}")
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
    except OSError:
        reservation.close()
        return False
    _reservations[port] = reservation
    return True

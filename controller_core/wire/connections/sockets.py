"""TCP connections by host name: the first address that answers, with detection of lost peers.

An address that hangs must not use up the time of the others, because in Kubernetes one name can stand for all brokers.
So the next one is tried in parallel after a moment (RFC 8305). A machine that loses power or network does not close its
connections. So the kernel probes silent peers, as with Kafka's own sockets, but sooner.
"""

import socket
from typing import Final

from aiohappyeyeballs import AddrInfoType, start_connection

from controller_core.names import NAMES, Names

NEXT_ADDRESS_AFTER_S: Final = 0.25
_SILENT_FOR_S: Final = 60
_ASKED_EVERY_S: Final = 10
_ASKED_TIMES: Final = 6
"""Unanswered probes before a connection is broken, two minutes after the last data."""


def notice_silence(connection: socket.socket) -> None:
    """Make the kernel break a TCP connection whose peer is gone although nothing is sent. Accepted sockets inherit
    it."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _SILENT_FOR_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _ASKED_EVERY_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _ASKED_TIMES)


async def connect_socket(host: str, port: int, *, names: Names = NAMES) -> socket.socket:
    """Return a connected socket. Raises `OSError`, and `UnicodeError` for an invalid name. The caller sets a
    timeout."""
    addresses = await names.addresses(host)
    if not addresses:
        raise OSError(f"{host} has no address")
    return await start_connection(
        [_make_address_info(address, port) for address in addresses],
        happy_eyeballs_delay=NEXT_ADDRESS_AFTER_S,
        socket_factory=_make_socket,
    )


def _make_address_info(address: str, port: int) -> AddrInfoType:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port)  # asyncio sets options by the protocol


def _make_socket(wanted: AddrInfoType) -> socket.socket:
    family, kind, protocol, *_ = wanted
    connection = socket.socket(family, kind, protocol)
    notice_silence(connection)
    return connection

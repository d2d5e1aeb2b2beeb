"""TCP to a server by its name: at whichever of its addresses answers, and noticed when the other end is gone.

An address that hangs must not use up the time of the others (one name stands for all brokers in Kubernetes), so the next
one is tried a moment after the last, beside it (RFC 8305). A machine that lost its power, or its network, says goodbye to
nobody: the kernel asks a silent other end now and then whether it is still there, as with Kafka's own sockets, but sooner.
"""

import socket
from typing import Final

from aiohappyeyeballs import AddrInfoType, start_connection

from controller_core.names import NAMES, Names

NEXT_ADDRESS_AFTER_S: Final = 0.25
_SILENT_FOR_S: Final = 60
_ASKED_EVERY_S: Final = 10
_ASKED_TIMES: Final = 6
"""Without an answer to any of these, the connection is broken: two minutes after the last word."""


def notice_silence(connection: socket.socket) -> None:
    """Has the kernel break a TCP connection whose other end is gone, although nothing is sent; and, of a listening socket,
    all that it accepts."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _SILENT_FOR_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _ASKED_EVERY_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _ASKED_TIMES)


async def connected_socket(host: str, port: int, *, names: Names = NAMES) -> socket.socket:
    """A connection, for as long as the caller waits. Raises `OSError`, and `UnicodeError` for a name that cannot be one."""
    addresses = await names.addresses(host)
    if not addresses:
        raise OSError(f"{host} has no address")
    return await start_connection(
        [_addressed(address, port) for address in addresses],
        happy_eyeballs_delay=NEXT_ADDRESS_AFTER_S,
        socket_factory=_noticing_silence,
    )


def _addressed(address: str, port: int) -> AddrInfoType:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port)  # asyncio sets options by the protocol


def _noticing_silence(wanted: AddrInfoType) -> socket.socket:
    family, kind, protocol, *_ = wanted
    connection = socket.socket(family, kind, protocol)
    notice_silence(connection)
    return connection

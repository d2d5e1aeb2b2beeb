"""TCP to a server by its name: at whichever of its addresses answers, and noticed when the other end is gone.

An address that hangs must not use up the time of the others (one name stands for all brokers in Kubernetes), so the next
one is tried a moment after the last, beside it (RFC 8305). A machine that lost its power, or its network, says goodbye to
nobody: the kernel asks a silent other end now and then whether it is still there, as with Kafka's own sockets, but sooner.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from typing import Final

from controller_core.wire.connections.names import NAMES, Names

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
    left = deque(_by_turns(await names.addresses(host)))
    trying: set[asyncio.Task[socket.socket]] = set()
    failure = OSError(f"{host} has no address")
    try:
        while left or trying:
            if left:
                trying.add(asyncio.create_task(_connected(left.popleft(), port)))
            patience_s = NEXT_ADDRESS_AFTER_S if left else None
            ended, _ = await asyncio.wait(trying, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
            for attempt in ended:
                trying.remove(attempt)
                if (error := attempt.exception()) is None:
                    return attempt.result()
                failure = error if isinstance(error, OSError) else failure
        raise failure
    finally:
        await _give_up(trying)


async def _connected(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio sets options by that
    try:
        connection.setblocking(False)
        notice_silence(connection)
        await asyncio.get_running_loop().sock_connect(connection, (address, port))
    except BaseException:
        connection.close()
        raise
    return connection


async def _give_up(trying: set[asyncio.Task[socket.socket]]) -> None:
    for attempt in trying:
        attempt.cancel()
    for left in await asyncio.gather(*trying, return_exceptions=True):
        if isinstance(left, socket.socket):  # it was made in the same moment
            left.close()


def _by_turns(addresses: Sequence[str]) -> Iterator[str]:
    """The preferred kind of address first, then one of each kind in turn."""
    is_first_kind = bool(addresses) and ":" in addresses[0]
    same = [address for address in addresses if (":" in address) is is_first_kind]
    other = [address for address in addresses if (":" in address) is not is_first_kind]
    return (address for address in chain.from_iterable(zip_longest(same, other)) if address is not None)

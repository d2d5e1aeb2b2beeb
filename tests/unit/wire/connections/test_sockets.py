"""Names that hang, fail or change do not delay other names. Of several addresses, one that answers is taken."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from controller_core.names import MOST_AT_ONCE, Names
from controller_core.wire.connections.sockets import connect_socket

DEADLINE_S = 20
LOCAL = "127.0.0.1"


class NameServer:
    """Knows some names; those that begin with `hanging` are answered when it is `released`."""

    def __init__(self, **known: list[str]) -> None:
        self.known = known
        self.asked: list[str] = []
        self.released = threading.Event()
        self.names = Names(self._resolve)

    def _resolve(self, host: str) -> list[str]:
        self.asked.append(host)
        if host.startswith("hanging"):
            self.released.wait(60)
        if host not in self.known:
            raise OSError(f"{host} is not known")
        return self.known[host]


@pytest.fixture
def server() -> Iterator[NameServer]:
    server = NameServer(one=[LOCAL], hanging=[LOCAL])
    yield server
    server.released.set()


@asynccontextmanager
async def impatient(names: Names, *hosts: str) -> AsyncIterator[list["asyncio.Task[list[str]]"]]:
    waiting = [asyncio.create_task(names.addresses(host)) for host in hosts]
    await asyncio.sleep(0)
    yield waiting
    for each in waiting:
        each.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_names_that_hang_hold_up_no_other_name(server: NameServer) -> None:
    async with asyncio.timeout(DEADLINE_S), impatient(server.names, *(f"hanging-{number}" for number in range(100))):
        assert await server.names.addresses("one") == [LOCAL]


async def test_a_name_is_resolved_once_at_a_time_and_who_gave_up_does_not_cancel_it_for_the_others(
    server: NameServer,
) -> None:
    async with asyncio.timeout(DEADLINE_S), impatient(server.names, "hanging", "hanging") as (first, second):
        first.cancel()
        await asyncio.wait((first,))
        later = asyncio.create_task(server.names.addresses("hanging"))
        await asyncio.sleep(0)
        server.released.set()
        assert (await second, await later) == ([LOCAL], [LOCAL])
    assert server.asked == ["hanging"]


async def test_nothing_is_kept_neither_an_address_nor_an_error(server: NameServer) -> None:
    assert await server.names.addresses("one") == [LOCAL]
    server.known["one"] = ["127.0.0.9"]
    assert await server.names.addresses("one") == ["127.0.0.9"]
    del server.known["one"]
    for _ in range(2):
        with pytest.raises(OSError, match="one is not known"):
            await server.names.addresses("one")
    server.known["one"] = [LOCAL]
    assert await server.names.addresses("one") == [LOCAL]


async def test_an_address_needs_no_name_server(server: NameServer) -> None:
    assert await server.names.addresses("127.0.0.9") == ["127.0.0.9"]
    assert await server.names.addresses("::1") == ["::1"]
    assert server.asked == []


async def test_so_many_names_are_resolved_at_a_time_and_no_more(server: NameServer) -> None:
    many = [f"hanging-{number}" for number in range(MOST_AT_ONCE)]
    async with asyncio.timeout(DEADLINE_S), impatient(server.names, *many):
        with pytest.raises(OSError, match="one is not resolved"):
            await server.names.addresses("one")
        server.released.set()
        await wait_until_resolved(server.names, "one")


async def wait_until_resolved(names: Names, host: str) -> None:
    while True:
        try:
            await names.addresses(host)
        except OSError:
            await asyncio.sleep(0.01)
        else:
            return


async def test_names_that_no_resolver_takes_are_errors_of_theirs() -> None:
    for host in ("", "a" * 300, "no.such.name.invalid", "\udcff"):
        with pytest.raises((OSError, UnicodeError)):
            await Names().addresses(host)


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server((LOCAL, 0)) as listening:
        yield listening


@pytest.mark.parametrize("others", [["127.0.0.9"], ["::1"], ["127.0.0.9", "::1", "192.0.2.1"]])
async def test_the_address_that_answers_is_taken(
    server: NameServer, listening: socket.socket, others: list[str]
) -> None:
    server.known["several"] = [*others, LOCAL]
    async with asyncio.timeout(DEADLINE_S):
        with await connect_socket("several", listening.getsockname()[1], names=server.names) as connected:
            assert connected.getpeername()[0] == LOCAL
            assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1


async def test_where_no_address_answers_the_last_one_says_why(server: NameServer, listening: socket.socket) -> None:
    server.known["several"] = ["127.0.0.8", "127.0.0.9"]
    with pytest.raises(ConnectionRefusedError):
        await connect_socket("several", listening.getsockname()[1], names=server.names)


async def test_a_name_without_addresses_cannot_be_connected_to(server: NameServer) -> None:
    server.known["nowhere"] = []
    with pytest.raises(OSError, match="nowhere has no address"):
        await connect_socket("nowhere", 9092, names=server.names)


async def test_a_server_is_connected_to_by_its_name_although_all_threads_of_the_pool_are_taken(
    listening: socket.socket,
) -> None:
    released = threading.Event()
    taken = [asyncio.create_task(asyncio.to_thread(released.wait, 60)) for _ in range(100)]
    try:
        await asyncio.sleep(0)
        async with asyncio.timeout(DEADLINE_S):
            (await connect_socket("localhost", listening.getsockname()[1])).close()
    finally:
        released.set()
        await asyncio.gather(*taken)

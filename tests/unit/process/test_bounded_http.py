"""The port of probes, metrics and the journal: how many may connect, and when a connection is closed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from controller_core.process.bounded_http import PATIENCE_S, serve_http
from controller_core.wire.limits.admission import Admission
from devcluster.running.ports import release_port, reserve_port

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n"
LARGE_BYTES = 32 << 20
DEADLINE_S = 20


class Client:
    """The other end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def is_answered(self) -> bool:
        self.writer.write(REQUEST)
        async with asyncio.timeout(DEADLINE_S):
            try:
                return (await self.reader.read(12)) == b"HTTP/1.1 200"
            except ConnectionResetError:
                return False

    async def is_closed(self) -> None:
        """Returns when the server has ended the connection."""
        async with asyncio.timeout(DEADLINE_S):
            try:
                while await self.reader.read(1 << 16):
                    pass
            except ConnectionResetError:
                return


async def room_for_one_more(admission: Admission) -> None:
    """Waits for it, and takes it."""
    async with asyncio.timeout(DEADLINE_S):
        while admission.admit("127.0.0.1", is_broker=False) is not None:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)


@asynccontextmanager
async def serve(
    *, most: int = 100, most_of_an_address: int = 100, patience_s: float = PATIENCE_S
) -> AsyncIterator[tuple[int, Admission]]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def answer_much(_: web.Request) -> web.Response:
        return web.Response(body=bytes(LARGE_BYTES))

    application = web.Application()
    application.add_routes([web.get("/healthz", answer), web.get("/much", answer_much)])
    admission = Admission(most=most, most_of_an_address=most_of_an_address)
    port = reserve_port()
    stop = await serve_http(application, "127.0.0.1", port, admission=admission, patience_s=patience_s)
    try:
        yield port, admission
    finally:
        await stop()
        release_port(port)


@asynccontextmanager
async def connect(port: int, **options: Any) -> AsyncIterator[Client]:
    client = Client(*await asyncio.open_connection("127.0.0.1", port, **options))
    try:
        yield client
    finally:
        client.writer.close()


async def test_an_address_has_so_many_connections_and_the_log_says_so_once() -> None:
    with capture_logs() as logged:
        async with (
            serve(most_of_an_address=2) as (port, _),
            connect(port) as one,
            connect(port) as two,
            connect(port) as three,
            connect(port) as four,
        ):
            assert [await each.is_answered() for each in (one, two, three, four)] == [True, True, False, False]
    assert [(line["event"], line["why"]) for line in logged] == [
        ("HTTP connection refused: too many", "the address has 2 connections")
    ]


async def test_all_addresses_together_have_so_many_connections() -> None:
    async with (
        serve(most=2) as (port, _),
        connect(port, local_addr=("127.0.0.2", 0)) as one,
        connect(port, local_addr=("127.0.0.3", 0)) as two,
        connect(port, local_addr=("127.0.0.4", 0)) as three,
    ):
        assert [await each.is_answered() for each in (one, two, three)] == [True, True, False]


async def test_who_leaves_makes_room() -> None:
    async with serve(most_of_an_address=1) as (port, admission):
        for _ in range(3):
            async with connect(port) as client:
                assert await client.is_answered()
            await room_for_one_more(admission)
            admission.leave("127.0.0.1")


@pytest.mark.parametrize("sent", [b"", b"GET", b"GET /healthz HTTP/1.1\r\nHost: he", REQUEST])
async def test_a_connection_that_is_silent_or_has_begun_a_request_is_closed(sent: bytes) -> None:
    async with serve(patience_s=0.05) as (port, _), connect(port) as client:
        client.writer.write(sent)
        await client.is_closed()


async def test_a_head_that_comes_byte_by_byte_has_no_longer() -> None:
    async with serve(patience_s=0.2) as (port, _), connect(port) as client:
        closed = asyncio.create_task(client.is_closed())
        while not closed.done():
            client.writer.write(b"G")
            await asyncio.wait((closed,), timeout=0.01)
        await closed


async def test_an_answer_that_is_not_taken_ends_the_connection() -> None:
    async with serve(most_of_an_address=1, patience_s=0.1) as (port, admission), connect(port, limit=1) as client:
        client.writer.write(REQUEST.replace(b"/healthz", b"/much"))
        await client.reader.read(1)
        await room_for_one_more(admission)


async def test_an_answer_that_is_taken_is_whole() -> None:
    async with serve() as (port, _), connect(port) as client:
        client.writer.write(REQUEST.replace(b"/healthz", b"/much"))
        await client.reader.readuntil(b"\r\n\r\n")
        assert len(await client.reader.readexactly(LARGE_BYTES)) == LARGE_BYTES


async def test_a_port_that_is_taken_is_refused() -> None:
    async with serve() as (port, _):
        with pytest.raises(OSError, match="address already in use"):
            await serve_http(web.Application(), "127.0.0.1", port)

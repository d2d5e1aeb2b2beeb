"""The port of probes, metrics and the journal: how many may connect, and when a connection is closed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controller_core.process.bounded_http import MOST_HEAD_BYTES, PATIENCE_S, serve_http
from controller_core.process.http_access.places import Places
from controller_core.wire.listener.refusals import Reason, Refusals
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


async def nobody_has_a_place(places: Places) -> None:
    """Waits for it."""
    async with asyncio.timeout(DEADLINE_S):
        while places.count:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)


def count_refusals(registry: CollectorRegistry) -> dict[str, float]:
    """Return the counts of refusals at HTTP ports that are not 0, by reason."""
    read = registry.get_sample_value
    counts = {each.value: read("kontroller_refused_total", {"port": "http", "reason": each}) for each in Reason}
    assert None not in counts.values(), "each reason has a count from the start"
    return {reason: count for reason, count in counts.items() if count}


@asynccontextmanager
async def serve(
    *,
    most: int = 100,
    most_of_an_address: int = 100,
    patience_s: float = PATIENCE_S,
    registry: CollectorRegistry | None = None,
) -> AsyncIterator[tuple[int, Places]]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def answer_much(_: web.Request) -> web.Response:
        return web.Response(body=bytes(LARGE_BYTES))

    async def refuse(_: web.Request) -> web.Response:
        raise web.HTTPForbidden

    async def read(request: web.Request) -> web.Response:
        body = await request.read()
        return web.Response(text=f"{len(body)}\n")

    async def answer_not_ready(_: web.Request) -> web.Response:
        return web.Response(status=503)

    application = web.Application()
    application.add_routes(
        [
            web.get("/healthz", answer),
            web.get("/much", answer_much),
            web.get("/forbidden", refuse),
            web.post("/read", read),
            web.get("/readyz", answer_not_ready),
        ]
    )
    places = Places(most=most, most_of_an_address=most_of_an_address)
    port = reserve_port()
    stop = await serve_http(
        application,
        "127.0.0.1",
        port,
        places=places,
        patience_s=patience_s,
        most_bytes=MOST_HEAD_BYTES,
        refusals=Refusals(registry),
    )
    try:
        yield port, places
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
            serve(most_of_an_address=2) as (port, places),
            connect(port) as one,
            connect(port) as two,
            connect(port) as three,
            connect(port) as four,
        ):
            await one.is_closed()
            await two.is_closed()
            assert [await each.is_answered() for each in (three, four)] == [True, True]
            assert places.count == 2
    assert [line["event"] for line in logged] == ["HTTP connections closed to make room: there are too many"]


async def test_silent_connections_of_many_addresses_do_not_keep_a_probe_out() -> None:
    async with serve(most=3) as (port, places), AsyncExitStack() as stack:
        strangers = [
            await stack.enter_async_context(connect(port, local_addr=(f"127.0.0.{2 + number % 2}", 0)))
            for number in range(9)
        ]
        for stranger in strangers:
            stranger.writer.write(b"GET /healthz HTTP/1.1\r\nHost: he")
        probe = await stack.enter_async_context(connect(port))
        assert await probe.is_answered()
        assert places.count == 3


async def test_who_leaves_makes_room() -> None:
    async with serve(most_of_an_address=1) as (port, places):
        for _ in range(3):
            async with connect(port) as client:
                assert await client.is_answered()
            await nobody_has_a_place(places)


async def test_a_client_that_leaves_in_the_middle_of_a_body_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async with serve() as (port, places):
        async with connect(port) as client:
            client.writer.write(
                b"POST /read HTTP/1.1\r\nHost: here\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
            )
            assert await client.reader.readline() == b"HTTP/1.1 100 Continue\r\n"
            client.writer.write(b"{}")
        await nobody_has_a_place(places)
        async with connect(port) as another:
            assert await another.is_answered()
    assert [record.getMessage() for record in caplog.records] == []


async def test_a_head_that_is_too_large_ends_the_connection() -> None:
    with capture_logs() as logged:
        async with serve() as (port, _), connect(port) as client:
            client.writer.write(
                b"GET /healthz HTTP/1.1\r\n" + b"".join(b"x%d: %s\r\n" % (n, b"x" * 1000) for n in range(99))
            )
            await client.is_closed()
    assert [line["event"] for line in logged] == ["HTTP connection closed: its request is too large"]


async def test_requests_that_are_no_http_are_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with capture_logs() as logged:
        async with serve() as (port, _):
            for _ in range(3):
                async with connect(port) as client:
                    client.writer.write(b"GET /healthz HTTP/1.1\r\nHost: here\r\nX-Long: " + b"x" * 5_000 + b"\r\n\r\n")
                    await client.is_closed()
    assert [line["event"] for line in logged] == [
        "HTTP request refused: it is malformed, or a part of its head is too large"
    ]
    assert not caplog.records


async def test_a_body_that_never_comes_ends_the_connection() -> None:
    async with serve() as (port, _), connect(port) as client:
        client.writer.write(b"POST /healthz HTTP/1.1\r\nHost: here\r\nContent-Length: 1000000\r\n\r\nx")
        assert (await client.reader.read(12)) == b"HTTP/1.1 405"
        await client.is_closed()


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
    async with serve(patience_s=0.1) as (port, places), connect(port, limit=1) as client:
        client.writer.write(REQUEST.replace(b"/healthz", b"/much"))
        await client.reader.read(1)
        await nobody_has_a_place(places)


async def test_an_answer_that_is_taken_is_whole() -> None:
    async with serve() as (port, _), connect(port) as client:
        client.writer.write(REQUEST.replace(b"/healthz", b"/much"))
        await client.reader.readuntil(b"\r\n\r\n")
        assert len(await client.reader.readexactly(LARGE_BYTES)) == LARGE_BYTES


async def test_a_port_that_is_taken_is_refused() -> None:
    async with serve() as (port, _):
        with pytest.raises(OSError, match="address already in use"):
            await serve_http(web.Application(), "127.0.0.1", port)


async def test_refusals_are_counted_by_reason_and_a_probe_that_fails_is_none() -> None:
    registry = CollectorRegistry()
    async with serve(most_of_an_address=1, registry=registry) as (port, _):
        for page in (b"/forbidden", b"/readyz", b"/missing"):
            async with connect(port) as client:
                client.writer.write(b"GET %s HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n" % page)
                await client.is_closed()
        assert count_refusals(registry) == {"right": 1}
        async with connect(port) as client:
            client.writer.write(b"no HTTP\r\n\r\n")
            await client.is_closed()
        async with connect(port) as client:
            client.writer.write(b"GET / HTTP/1.1\r\n" + b"".join(b"x%d: %s\r\n" % (n, b"x" * 1000) for n in range(99)))
            await client.is_closed()
        async with connect(port) as first, connect(port):
            await first.is_closed()
    assert count_refusals(registry) == {"right": 1, "bytes": 2, "limit": 1}

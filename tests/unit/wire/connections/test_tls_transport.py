"""The TLS transport, with clients of the standard library: data, pressure, closing messages, and what memory it takes."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from controller_core.wire.connections.small_reads import READ_AHEAD_BYTES, READ_BYTES
from controller_core.wire.connections.tls_transport import MOST_HANDSHAKE_BYTES, TlsTransport
from devcluster.clusters.certificates import Authority, CertificateFiles

DEADLINE_S = 10
LARGE = bytes(range(256)) * 16 * 1024  # 4 MiB


@dataclass(frozen=True)
class Served:
    tls: TlsTransport
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


@dataclass(frozen=True)
class Port:
    number: int
    client: ssl.SSLContext
    accepted: asyncio.Queue[TlsTransport]
    readers: dict[TlsTransport, tuple[asyncio.StreamReader, asyncio.StreamReaderProtocol]]

    async def connect(self) -> tuple[Served, asyncio.StreamReader, asyncio.StreamWriter]:
        """Return both ends of a connection after its handshake."""
        async with asyncio.timeout(DEADLINE_S):
            reader, writer = await asyncio.open_connection("localhost", self.number, ssl=self.client)
            tls = await self.accepted.get()
            await tls.shake_hands()
        read, protocol = self.readers[tls]
        return Served(tls, read, asyncio.StreamWriter(tls, protocol, read, asyncio.get_running_loop())), reader, writer

    async def connect_without_tls(self) -> tuple[TlsTransport, asyncio.StreamReader, asyncio.StreamWriter]:
        """Return both ends of a connection that has not begun its handshake."""
        reader, writer = await asyncio.open_connection("localhost", self.number)
        return await self.accepted.get(), reader, writer


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def shown(authority: Authority) -> CertificateFiles:
    return authority.issue("server", "localhost")


@pytest.fixture(params=[ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["TLSv1.2", "TLSv1.3"])
async def port(authority: Authority, shown: CertificateFiles, request: pytest.FixtureRequest) -> AsyncIterator[Port]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown.certificate, shown.key)
    context.maximum_version = request.param
    async with listen(context, authority.certificate) as opened:
        yield opened


@asynccontextmanager
async def listen(context: ssl.SSLContext, trusted: Path) -> AsyncIterator[Port]:
    accepted: asyncio.Queue[TlsTransport] = asyncio.Queue()
    readers = {}

    def make() -> TlsTransport:
        reader = asyncio.StreamReader(limit=READ_AHEAD_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        tls = TlsTransport(context, protocol)
        readers[tls] = reader, protocol
        accepted.put_nowait(tls)
        return tls

    async with await asyncio.get_running_loop().create_server(make, "localhost", 0) as server:
        number = server.sockets[0].getsockname()[1]
        yield Port(number, ssl.create_default_context(cafile=trusted), accepted, readers)
        for tls in readers:
            tls.abort()


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - nothing tells when a buffer is full
            await asyncio.sleep(0.01)


async def test_data_passes_in_both_directions(port: Port) -> None:
    server, reader, writer = await port.connect()
    async with asyncio.timeout(DEADLINE_S):
        server.writer.write(LARGE)
        assert await reader.readexactly(len(LARGE)) == LARGE
        writer.write(LARGE)
        assert await server.reader.readexactly(len(LARGE)) == LARGE
    writer.transport.abort()


async def test_a_client_that_is_not_read_is_not_received(port: Port) -> None:
    server, _, writer = await port.connect()
    writer.write(LARGE)
    await wait_until(lambda: not server.tls.is_reading())
    held = len(server.reader._buffer) + server.tls._incoming.pending  # type: ignore[attr-defined]
    assert held <= 2 * READ_AHEAD_BYTES + 2 * READ_BYTES
    async with asyncio.timeout(DEADLINE_S):
        assert await server.reader.readexactly(len(LARGE)) == LARGE
    writer.transport.abort()


async def test_a_client_that_does_not_read_holds_the_writer_up(port: Port) -> None:
    server, reader, writer = await port.connect()
    server.tls.set_write_buffer_limits(high=1)

    async def write() -> None:
        for _ in range(8):
            server.writer.write(LARGE)
            await server.writer.drain()

    writing = asyncio.create_task(write())
    await wait_until(lambda: server.tls.get_write_buffer_size() > 0)
    assert not writing.done()
    async with asyncio.timeout(DEADLINE_S):
        assert await reader.readexactly(8 * len(LARGE)) == 8 * LARGE
        await writing
    assert server.tls.get_write_buffer_size() == 0
    writer.transport.abort()


async def test_the_last_answer_and_the_closing_message_arrive_before_the_end(port: Port) -> None:
    server, reader, writer = await port.connect()
    writer.write(b"a request that nobody reads")
    server.writer.write(LARGE)
    server.tls.close()
    async with asyncio.timeout(DEADLINE_S):
        assert await reader.read(-1) == LARGE
        writer.close()
        await server.tls.wait_lost()
    assert server.tls.is_closing()


async def test_requests_before_the_clients_closing_message_are_answered(port: Port) -> None:
    server, _, writer = await port.connect()
    writer.write(LARGE)
    writer.close()
    async with asyncio.timeout(DEADLINE_S):
        assert await server.reader.read(-1) == LARGE


async def test_a_client_that_leaves_without_a_closing_message_has_ended(port: Port) -> None:
    server, _, writer = await port.connect()
    writer.write(b"its last words")
    await asyncio.sleep(0)
    writer.get_extra_info("socket").shutdown(1)
    async with asyncio.timeout(DEADLINE_S):
        assert await server.reader.read(-1) == b"its last words"


async def test_bytes_that_are_not_tls_end_an_established_connection(port: Port) -> None:
    server, _, writer = await port.connect()
    os.write(writer.get_extra_info("socket").fileno(), b"\x17\x03\x03\x00\x20" + bytes(32))
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(ssl.SSLError):
            await server.reader.readexactly(1)
        await server.tls.wait_lost()


async def test_a_failed_handshake_sends_its_alert(port: Port) -> None:
    tls, reader, writer = await port.connect_without_tls()
    writer.write(b"\x16\x03\x01\x00\x04\x63\x00\x00\x00")  # a message of an unknown type
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(ssl.SSLError):
            await tls.shake_hands()
        tls.close()
        assert (await reader.read(-1))[:1] == b"\x15", "it is not an alert"
        writer.close()
        await tls.wait_lost()


async def test_a_client_that_leaves_in_its_handshake_is_noticed(port: Port) -> None:
    tls, _, writer = await port.connect_without_tls()
    writer.write(b"\x16\x03\x01")
    writer.close()
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(ConnectionResetError):
            await tls.shake_hands()


async def test_a_handshake_without_an_end_is_refused(port: Port) -> None:
    tls, _, writer = await port.connect_without_tls()
    begun = b"\x16\x03\x01\x00\x05\x01\x01\xff\xf0\x03"  # announces a ClientHello of 130 KiB
    writer.write(begun + b"\x16\x03\x01\x00\x01\x03" * (MOST_HANDSHAKE_BYTES // 6 + 1))
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(ssl.SSLError):
            await tls.shake_hands()
    writer.transport.abort()

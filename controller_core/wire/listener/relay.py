"""One connection to a broker, which relays the requests of one client connection.

The frames pass unread in both directions, in pieces, so an answer is never in memory as a whole. To the broker, the
client has the controller's address and speaks PLAINTEXT: authenticated listeners would have to be terminated here. A
broker answers the requests of a connection one at a time and in order, and so does a relay.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final, NamedTuple, TypeAlias

from kio.schema.request_header.v1.header import RequestHeader as RequestHeaderV1
from kio.schema.request_header.v2.header import RequestHeader as RequestHeaderV2

from controller_core.supervision import start_task
from controller_core.wire.codecs.decoding import Cursor, decode
from controller_core.wire.codecs.frames import (
    CORRELATION_ID_BYTES,
    DEFAULT_MAX_FRAME_BYTES,
    PIECE_BYTES,
    FrameError,
    RequestHead,
    make_frame_start,
    read_correlation_id,
    read_length,
    read_pieces,
)
from controller_core.wire.connections.small_reads import open_streams
from controller_core.wire.connections.sockets import connect_socket

PRODUCE: Final = 0

_FIRST_PRODUCE_WITH_TRANSACTIONAL_ID = 3
_FIRST_FLEXIBLE_PRODUCE = 9
_MOST_BYTES_BEFORE_ACKS = 128 * 1024
"""Room for the client id and the transactional id, which have at most 32 KiB each."""


Content: TypeAlias = bytes | bytearray


class UpstreamError(Exception):
    """No broker can be reached, or the one that was asked closed the connection."""


class Address(NamedTuple):
    """The address of a broker."""

    host: str
    port: int


class Answer:
    """A response that a broker has begun to send. It is relayed in pieces, or read as a whole, before the next
    request."""

    def __init__(self, reader: asyncio.StreamReader, length: int, start: bytes) -> None:
        """`start` is the first bytes. Raises `NotKafka` if they are too few for a header."""
        self._reader = reader
        self._start = start
        self.length: Final = length
        self.correlation_id = read_correlation_id(start)
        self.is_taken = asyncio.Event()

    async def frame(self) -> AsyncIterator[bytes]:
        """Yield the whole frame with its length, piece by piece. Raises `UpstreamError`."""
        yield make_frame_start(self.length, self._start)
        async for piece in self._rest():
            yield piece

    async def content(self, most_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> bytes:
        """Return the content. Raises `UpstreamError`, also if it is larger."""
        if self.length > most_bytes:
            raise UpstreamError(f"the broker's answer has {self.length} bytes; the limit is {most_bytes}")
        return b"".join([self._start, *[piece async for piece in self._rest()]])

    async def _rest(self) -> AsyncIterator[bytes]:
        try:
            async for piece in read_pieces(self._reader, self.length - len(self._start)):
                yield piece
        except (FrameError, OSError) as error:
            raise UpstreamError(f"the broker's connection broke: {error}") from error
        self.is_taken.set()


class Relay:
    """One upstream connection."""

    def __init__(
        self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, max_frame_bytes: int
    ) -> None:
        self.address = address
        self._writer = writer
        self._answer: asyncio.Future[Answer | None] | None = None
        self._end: UpstreamError | None = None
        self._listening = start_task(
            self._listen(reader, max_frame_bytes),
            name=f"relay to {address.host}:{address.port}",
            on_error=lambda error: self._end_with(UpstreamError(f"the broker's answers cannot be read: {error!r}")),
        )

    @property
    def has_ended(self) -> bool:
        """True if the broker has closed the connection or violated the protocol."""
        return self._end is not None

    async def exchange(self, head: RequestHead, content: Content) -> Answer | None:
        """Send a request's content and return its response, or None if the request has none.

        Raises `UpstreamError`, and `Undecodable` for a truncated Produce request.
        """
        if self._end is not None:
            raise self._end
        wants_answer = not (head.api_key == PRODUCE and _acks(content, head.api_version) == 0)
        if wants_answer:
            self._answer = asyncio.get_running_loop().create_future()
        try:
            await self._send(content)
            if self._answer is None:
                return None
            answer = await self._answer
        except OSError as error:
            raise UpstreamError(f"the broker's connection broke: {error}") from error
        finally:
            self._answer = None
        if answer is None:
            raise self._end or UpstreamError("the broker closed the connection")
        if answer.correlation_id != head.correlation_id:
            raise UpstreamError("the broker answered another request than the relayed one")
        return answer

    def close(self) -> None:
        """Close the upstream connection. Idempotent."""
        self._listening.cancel()
        self._writer.transport.abort()

    async def _send(self, content: Content) -> None:
        self._writer.write(make_frame_start(len(content)))
        with memoryview(content) as whole:
            for offset in range(0, len(content), PIECE_BYTES):
                self._writer.write(bytes(whole[offset : offset + PIECE_BYTES]))
                await self._writer.drain()

    async def _listen(self, reader: asyncio.StreamReader, max_frame_bytes: int) -> None:
        try:
            while (length := await read_length(reader, max_frame_bytes)) is not None:
                start = b"".join([piece async for piece in read_pieces(reader, min(length, CORRELATION_ID_BYTES))])
                answer = Answer(reader, length, start)
                if self._answer is None or self._answer.done():
                    self._end_with(UpstreamError("the broker sent an answer without a request"))
                    return
                self._answer.set_result(answer)
                await answer.is_taken.wait()
            self._end_with(UpstreamError("the broker closed the connection"))
        except (FrameError, OSError) as error:
            self._end_with(UpstreamError(f"the broker's connection broke: {error}"))

    def _end_with(self, end: UpstreamError) -> None:
        self._end = end
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(None)


async def open_relay(address: Address, *, connect_timeout_ms: int, max_frame_bytes: int) -> Relay:
    """Connect to the broker at an address. Raises `UpstreamError`."""
    host, port = address
    try:
        async with asyncio.timeout(connect_timeout_ms / 1000):
            reader, writer = await open_streams(await connect_socket(host, port))
    except TimeoutError as error:
        raise UpstreamError(f"no connection to the broker at {host}:{port} within {connect_timeout_ms} ms") from error
    except (OSError, UnicodeError) as error:
        raise UpstreamError(f"no connection to the broker at {host}:{port}: {error}") from error
    return Relay(address, reader, writer, max_frame_bytes)


def _acks(whole: Content, version: int) -> int:
    """Return the acknowledgements that a Produce request asks for. With 0, a broker sends no response."""
    content = bytes(whole[:_MOST_BYTES_BEFORE_ACKS])
    flexible = version >= _FIRST_FLEXIBLE_PRODUCE
    _, offset = decode(RequestHeaderV2 if flexible else RequestHeaderV1, content)
    cursor = Cursor(content, offset)
    if version >= _FIRST_PRODUCE_WITH_TRANSACTIONAL_ID:
        length = cursor.read_unsigned_varint() - 1 if flexible else cursor.int16()
        cursor.take(max(length, 0))
    return cursor.int16()

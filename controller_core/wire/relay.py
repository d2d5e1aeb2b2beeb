"""One connection to a real broker, over which the requests of one client connection are passed on.

The frames pass unread in both directions. To the broker, the client is then at the controller's address and speaks
PLAINTEXT: authenticated listeners would have to be terminated here. A broker answers the requests of a connection one
at a time and in order, and so does a relay.
"""

import asyncio
from typing import Final, NamedTuple

from kio.schema.request_header.v1.header import RequestHeader as RequestHeaderV1
from kio.schema.request_header.v2.header import RequestHeader as RequestHeaderV2

from controller_core.wire.decoding import Cursor, decode
from controller_core.wire.frames import FrameError, RequestHead, read_correlation_id, read_frame, with_length

PRODUCE: Final = 0

_FIRST_PRODUCE_WITH_TRANSACTIONAL_ID = 3
_FIRST_FLEXIBLE_PRODUCE = 9


class UpstreamError(Exception):
    """No broker can be reached, or the one that was asked closed the connection."""


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int


class Relay:
    """One upstream connection."""

    def __init__(
        self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, max_frame_bytes: int
    ) -> None:
        self.address = address
        self._writer = writer
        self._answer: asyncio.Future[bytes | None] | None = None
        self._end: UpstreamError | None = None
        self._listening = asyncio.create_task(self._listen(reader, max_frame_bytes))

    @property
    def has_ended(self) -> bool:
        """Whether the broker has ended the connection, or sent what it must not send."""
        return self._end is not None

    async def exchange(self, head: RequestHead, content: bytes) -> bytes | None:
        """Sends a request's content on and returns its response's, or None where the request has no response.

        Raises `UpstreamError`, and `Undecodable` for a Produce request that is cut."""
        if self._end is not None:
            raise self._end
        wants_answer = not (head.api_key == PRODUCE and _acks(content, head.api_version) == 0)
        if wants_answer:
            self._answer = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(with_length(content))
            await self._writer.drain()
            if self._answer is None:
                return None
            answer = await self._answer
        except OSError as error:
            raise UpstreamError(f"the broker's connection broke: {error}") from error
        finally:
            self._answer = None
        if answer is None:
            raise self._end or UpstreamError("the broker closed the connection")
        if read_correlation_id(answer) != head.correlation_id:
            raise UpstreamError("the broker answered another request than the one sent on")
        return answer

    def close(self) -> None:
        """Ends the upstream connection. Idempotent."""
        self._listening.cancel()
        self._writer.transport.abort()

    async def _listen(self, reader: asyncio.StreamReader, max_frame_bytes: int) -> None:
        try:
            while (answer := await read_frame(reader, max_frame_bytes)) is not None:
                if self._answer is None or self._answer.done():
                    self._ended(UpstreamError("the broker sent an answer that nobody asked for"))
                    return
                self._answer.set_result(answer)
            self._ended(UpstreamError("the broker closed the connection"))
        except (FrameError, OSError) as error:
            self._ended(UpstreamError(f"the broker's connection broke: {error}"))

    def _ended(self, end: UpstreamError) -> None:
        self._end = end
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(None)


async def open_relay(address: Address, *, connect_timeout_ms: int, max_frame_bytes: int) -> Relay:
    """Connects to the broker at an address. Raises `UpstreamError`."""
    host, port = address
    try:
        async with asyncio.timeout(connect_timeout_ms / 1000):
            reader, writer = await asyncio.open_connection(host, port)
    except TimeoutError as error:
        raise UpstreamError(f"no connection to the broker at {host}:{port} within {connect_timeout_ms} ms") from error
    except OSError as error:
        raise UpstreamError(f"no connection to the broker at {host}:{port}: {error}") from error
    return Relay(address, reader, writer, max_frame_bytes)


def _acks(content: bytes, version: int) -> int:
    """The acknowledgements that a Produce request asks for: with 0, a broker sends no response."""
    flexible = version >= _FIRST_FLEXIBLE_PRODUCE
    _, offset = decode(RequestHeaderV2 if flexible else RequestHeaderV1, content)
    cursor = Cursor(content, offset)
    if version >= _FIRST_PRODUCE_WITH_TRANSACTIONAL_ID:
        length = cursor.unsigned_varint() - 1 if flexible else cursor.int16()
        cursor.take(max(length, 0))
    return cursor.int16()

"""Frames: how Kafka's requests and responses lie on a connection, and the headers in front of them.

A frame is a length (4 bytes, big-endian) and that many bytes: a header, then the message. A request's header says API,
version, correlation id and client id; a response's only the correlation id. Headers of flexible versions (KIP-482) have
tagged fields behind them. Messages say by `__header_schema__` which header is theirs.

What is wrong with a frame is said by the error's type. All of it is fatal for the connection, because where the next
frame would start is unknown, and for nothing else.
"""

import asyncio
import io
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeVar

from kio.schema.request_header.v1.header import RequestHeader as RequestHeaderV1
from kio.schema.request_header.v2.header import RequestHeader as RequestHeaderV2
from kio.serial import entity_writer
from kio.serial.errors import SerialError
from kio.static.primitive import i16, i32
from kio.static.protocol import Entity, RequestPayload, ResponsePayload

from controller_core.wire.codecs.decoding import MOST_ITEMS, decode, decode_whole

DEFAULT_MAX_FRAME_BYTES: Final = 100 * 1024 * 1024
"""Kafka's default of `socket.request.max.bytes`."""
PIECE_BYTES: Final = 64 * 1024
"""Large frames are read and written in pieces of this size at the most, and not copied whole between buffers."""

CORRELATION_ID_BYTES: Final = 4

_BEGINNINGS_OF_TLS: Final = frozenset({0x160300, 0x160301, 0x160302, 0x160303})
"""The kind of record and version of a ClientHello, where a length would be."""
_LENGTH = struct.Struct(">i")
LENGTH_BYTES: Final = _LENGTH.size
_HEAD = struct.Struct(">hhi")
_CLIENT_ID_LENGTH = struct.Struct(">h")
_CLIENT_ID_AT = _HEAD.size

Request = TypeVar("Request", bound=RequestPayload)
Response = TypeVar("Response", bound=ResponsePayload)


class FrameError(Exception):
    """What arrived on a connection is no frame. The connection can only be closed."""


class FrameTooLarge(FrameError):
    """The length in front is above the limit: a frame that is too large, or another protocol (HTTP, TLS)."""


class FrameCut(FrameError):
    """The connection ended within a frame."""


class NotKafka(FrameError):
    """A length below zero, or a frame without room for a header: the other side does not speak Kafka's protocol."""


class Unencodable(Exception):
    """A message has a value that its field cannot carry: a mistake of whoever made it. Never retriable."""


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The part of a request's header that every version has."""

    api_key: int
    api_version: int
    correlation_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestStart:
    """The first bytes of a request, and how many it has in all."""

    head: RequestHead
    length: int
    content: bytes


async def read_frame(reader: asyncio.StreamReader, max_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> bytes | None:
    """The content of the next frame; None where the connection ended between frames.

    Raises `FrameTooLarge`, `FrameCut`, `NotKafka`, and the `OSError` of a connection that broke."""
    length = await read_length(reader, max_bytes)
    return None if length is None else await _read_exactly(reader, length)


async def read_request_start(
    reader: asyncio.StreamReader, max_bytes: int = DEFAULT_MAX_FRAME_BYTES
) -> RequestStart | None:
    """The length and the first fields of the next request; None where the connection ended between frames.

    Raises what `read_frame` raises. What follows is read by `read_rest`, or left where it is."""
    length = await read_length(reader, max_bytes)
    if length is None:
        return None
    content = await _read_exactly(reader, min(length, _HEAD.size))
    return RequestStart(head=read_request_head(content), length=length, content=content)


async def read_rest(reader: asyncio.StreamReader, start: RequestStart) -> bytearray:
    """The whole content of a request whose start has been read. Raises `FrameCut`, and the `OSError` of a connection."""
    content = bytearray(start.length)
    content[: len(start.content)] = start.content
    offset = len(start.content)
    async for piece in read_pieces(reader, start.length - offset):
        content[offset : offset + len(piece)] = piece
        offset += len(piece)
    return content


async def read_pieces(reader: asyncio.StreamReader, length: int) -> AsyncIterator[bytes]:
    """So many bytes, in pieces as they come. Raises `FrameCut`, and the `OSError` of a connection that broke."""
    left = length
    while left:
        piece = await reader.read(min(left, PIECE_BYTES))
        if not piece:
            raise FrameCut(f"the connection ended after {length - left} of {length} bytes")
        left -= len(piece)
        yield piece


async def read_length(reader: asyncio.StreamReader, max_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> int | None:
    """The length in front of the next frame, which is not read; None where the connection ended between frames.

    Raises what `read_frame` raises."""
    try:
        length: int = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))[0]
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            return None
        raise FrameCut(f"the connection ended after {len(error.partial)} of the 4 bytes of a length") from error
    if length < 0:
        raise NotKafka(f"a frame's length is {length}")
    if length > max_bytes:
        hint = ": so begins TLS, and PLAINTEXT is spoken here" if length >> 8 in _BEGINNINGS_OF_TLS else ""
        raise FrameTooLarge(f"a frame says it has {length} bytes, the limit is {max_bytes}{hint}")
    return length


async def _read_exactly(reader: asyncio.StreamReader, length: int) -> bytes:
    try:
        return await reader.readexactly(length)
    except asyncio.IncompleteReadError as error:
        raise FrameCut(f"the connection ended after {len(error.partial)} of {length} bytes") from error


def with_length(content: bytes) -> bytes:
    """The content as a frame: with its length in front."""
    return with_length_of(len(content), content)


def with_length_of(length: int, start: bytes = b"") -> bytes:
    """The beginning of a frame: the length of all its content, and the first of it."""
    return _LENGTH.pack(length) + start


def read_request_head(content: bytes) -> RequestHead:
    """The first fields of a request's header. Raises `NotKafka` where the frame is too short for them."""
    if len(content) < _HEAD.size:
        raise NotKafka(f"a request of {len(content)} bytes has no room for a header")
    return RequestHead(*_HEAD.unpack_from(content))


def read_correlation_id(content: bytes) -> int:
    """The correlation id of a response. Raises `NotKafka` where the frame is too short for it."""
    if len(content) < CORRELATION_ID_BYTES:
        raise NotKafka(f"a response of {len(content)} bytes has no room for a header")
    correlation_id: int = _LENGTH.unpack_from(content)[0]
    return correlation_id


def read_client_id(content: bytes) -> str | None:
    """The client id of a request; brokers send their own id. None where there is none, or it cannot be read."""
    try:
        (length,) = _CLIENT_ID_LENGTH.unpack_from(content, _CLIENT_ID_AT)
        start = _CLIENT_ID_AT + _CLIENT_ID_LENGTH.size
        return content[start : start + length].decode() if length > 0 else None
    except (struct.error, UnicodeDecodeError):
        return None


def decode_request(request_type: type[Request], content: bytes, *, most_items: int = MOST_ITEMS) -> Request:
    """The request in a frame's content, without its header. Raises `Undecodable`, `TooManyItems`.

    Bytes behind it are nobody's, as for Kafka: librdkafka puts one behind AlterUserScramCredentials."""
    _, offset = decode(request_type.__header_schema__, content)
    return decode(request_type, content, offset, most_items=most_items)[0]


def decode_response(response_type: type[Response], content: bytes) -> Response:
    """The response in a frame's content, without its header. Raises `Undecodable`."""
    _, offset = decode(response_type.__header_schema__, content)
    return decode_whole(response_type, content, offset)


def encode_request(request: RequestPayload, correlation_id: int, client_id: str) -> bytes:
    """A request as a whole frame, length included. Raises `Unencodable`."""
    return with_length(encode_request_header(request, correlation_id, client_id) + _written(request))


def encode_request_header(
    request: RequestPayload, correlation_id: int, client_id: str, *, version: int | None = None
) -> bytes:
    """The header that belongs in front of a request; `version`: None for the request's own. Raises `Unencodable`."""
    version = int(request.__version__) if version is None else version
    try:
        head = _HEAD.pack(request.__api_key__, version, correlation_id)
    except struct.error as error:
        raise Unencodable(f"the header of {type(request).__name__} cannot be written: {error}") from error
    return head + _header_end(client_id, is_flexible=request.__header_schema__ is RequestHeaderV2)


@lru_cache(maxsize=64)
def _header_end(client_id: str, *, is_flexible: bool) -> bytes:
    """What follows the fields that differ from request to request."""
    header_type: type[RequestHeaderV1] | type[RequestHeaderV2] = RequestHeaderV2 if is_flexible else RequestHeaderV1
    header = header_type(request_api_key=i16(0), request_api_version=i16(0), correlation_id=i32(0), client_id=client_id)
    return _written(header)[_HEAD.size :]


def encode_response(response: ResponsePayload, correlation_id: int) -> bytes:
    """A response as a whole frame, length included. Raises `Unencodable`."""
    header = response.__header_schema__(correlation_id=i32(correlation_id))
    return with_length(_written(header) + _written(response))


def _written(entity: Entity) -> bytes:
    buffer = io.BytesIO()
    try:
        entity_writer(type(entity))(buffer, entity)
    except (SerialError, struct.error, TypeError, AttributeError, ValueError) as error:
        raise Unencodable(f"{type(entity).__name__} cannot be written: {error}") from error
    return buffer.getvalue()

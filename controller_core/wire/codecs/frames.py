"""Frames: the format of Kafka's requests and responses on a connection, and their headers.

A frame is a length (4 bytes, big-endian) and that many bytes: a header and the message. A request's header has API,
version, correlation id and client id; a response's has only the correlation id. Headers of flexible versions (KIP-482)
have tagged fields. `__header_schema__` is the type of a message's header.

The type of an error tells what is wrong with a frame. All of them are fatal for the connection, because the start of
the next frame is unknown, and for nothing else.
"""

import asyncio
import io
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeVar

from kio.schema.describe_configs.v4 import DescribeConfigsRequest
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
"""Largest piece in which frames are read and written, so that large ones are not copied between buffers."""

CORRELATION_ID_BYTES: Final = 4

_BASE_ANSWER_BYTES: Final = 256 * 1024
_BASE_CONFIGS_BYTES: Final = 4 * 1024 * 1024
"""A znode has up to a megabyte of a topic's configuration, such as the throttled replicas of many partitions. The answer
about it may repeat that among the synonyms."""
_ANSWER_GROWTH: Final = 2048
"""Describing a topic takes some tens of kilobytes with documentation, and some tens of bytes in the request."""

_BEGINNINGS_OF_TLS: Final = frozenset({0x160300, 0x160301, 0x160302, 0x160303})
"""The record type and version of a ClientHello, in the place of a frame's length."""
_LENGTH = struct.Struct(">i")
LENGTH_BYTES: Final = _LENGTH.size
_HEAD = struct.Struct(">hhi")
_CLIENT_ID_LENGTH = struct.Struct(">h")
_CLIENT_ID_AT = _HEAD.size

Request = TypeVar("Request", bound=RequestPayload)
Response = TypeVar("Response", bound=ResponsePayload)


class FrameError(Exception):
    """The bytes on a connection are not a frame. The connection can only be closed."""


class FrameTooLarge(FrameError):
    """The length exceeds the limit: the frame is too large, or the other side speaks another protocol (HTTP, TLS)."""


class FrameCut(FrameError):
    """The connection ended within a frame."""


class NotKafka(FrameError):
    """A negative length, or a frame without room for a header: the other side does not speak Kafka's protocol."""


class Unencodable(Exception):
    """A field of a message has a value that cannot be encoded: a mistake of the code that made it. Never retriable."""


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The part of a request's header that every version has."""

    api_key: int
    api_version: int
    correlation_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestStart:
    """The first bytes of a request, and its total length."""

    head: RequestHead
    length: int
    content: bytes


def limit_answer(api_key: int, request_bytes: int) -> int:
    """Return the limit of an answer that has to be decoded here, to a request that names what the answer is about.

    Decoding takes seconds, and 20 times the memory, for each 10 MiB. So a broker must not choose the size.
    """
    base_bytes = _BASE_CONFIGS_BYTES if api_key == DescribeConfigsRequest.__api_key__ else _BASE_ANSWER_BYTES
    return min(base_bytes + _ANSWER_GROWTH * request_bytes, DEFAULT_MAX_FRAME_BYTES)


async def read_frame(reader: asyncio.StreamReader, max_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> bytes | None:
    """Read the content of the next frame. Return None if the connection ended between frames.

    Raises `FrameTooLarge`, `FrameCut`, `NotKafka`, and the `OSError` of a broken connection.
    """
    length = await read_length(reader, max_bytes)
    return None if length is None else await _read_exactly(reader, length)


async def read_request_start(
    reader: asyncio.StreamReader, max_bytes: int = DEFAULT_MAX_FRAME_BYTES
) -> RequestStart | None:
    """Read the length and first fields of the next request. Return None if the connection ended between frames.

    Raises the errors of `read_frame`. The rest can be read by `read_rest`, or left unread.
    """
    length = await read_length(reader, max_bytes)
    if length is None:
        return None
    content = await _read_exactly(reader, min(length, _HEAD.size))
    return RequestStart(head=read_request_head(content), length=length, content=content)


async def read_rest(reader: asyncio.StreamReader, start: RequestStart) -> bytearray:
    """Read the rest of a request. Return its whole content. Raises `FrameCut`, and the `OSError` of a broken
    connection."""
    content = bytearray(start.length)
    content[: len(start.content)] = start.content
    offset = len(start.content)
    async for piece in read_pieces(reader, start.length - offset):
        content[offset : offset + len(piece)] = piece
        offset += len(piece)
    return content


async def read_pieces(reader: asyncio.StreamReader, length: int) -> AsyncIterator[bytes]:
    """Yield this number of bytes, in pieces as they arrive. Raises `FrameCut`, and the `OSError` of a broken
    connection."""
    left = length
    while left:
        piece = await reader.read(min(left, PIECE_BYTES))
        if not piece:
            raise FrameCut(f"the connection ended after {length - left} of {length} bytes")
        left -= len(piece)
        yield piece


async def read_length(reader: asyncio.StreamReader, max_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> int | None:
    """Read only the length of the next frame. Return None if the connection ended between frames.

    Raises the errors of `read_frame`.
    """
    try:
        length: int = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))[0]
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            return None
        raise FrameCut(f"the connection ended after {len(error.partial)} of the 4 bytes of a length") from error
    if length < 0:
        raise NotKafka(f"a frame's length is {length}")
    if length > max_bytes:
        hint = ": it looks like TLS, and this listener is PLAINTEXT" if length >> 8 in _BEGINNINGS_OF_TLS else ""
        raise FrameTooLarge(f"a frame claims {length} bytes; the limit is {max_bytes}{hint}")
    return length


async def _read_exactly(reader: asyncio.StreamReader, length: int) -> bytes:
    try:
        return await reader.readexactly(length)
    except asyncio.IncompleteReadError as error:
        raise FrameCut(f"the connection ended after {len(error.partial)} of {length} bytes") from error


def make_frame(content: bytes) -> bytes:
    """Return the content as a frame, after its length."""
    return make_frame_start(len(content), content)


def make_frame_start(length: int, start: bytes = b"") -> bytes:
    """Return the beginning of a frame: the length of its whole content, and its first bytes."""
    return _LENGTH.pack(length) + start


def read_request_head(content: bytes) -> RequestHead:
    """Return the first fields of a request's header. Raises `NotKafka` if the frame is too short for them."""
    if len(content) < _HEAD.size:
        raise NotKafka(f"a request of {len(content)} bytes has no room for a header")
    return RequestHead(*_HEAD.unpack_from(content))


def read_correlation_id(content: bytes) -> int:
    """Return the correlation id of a response. Raises `NotKafka` if the frame is too short for it."""
    if len(content) < CORRELATION_ID_BYTES:
        raise NotKafka(f"a response of {len(content)} bytes has no room for a header")
    correlation_id: int = _LENGTH.unpack_from(content)[0]
    return correlation_id


def read_client_id(content: bytes) -> str | None:
    """Return the client id of a request, or None if it is absent or unreadable. Brokers send their broker id."""
    try:
        (length,) = _CLIENT_ID_LENGTH.unpack_from(content, _CLIENT_ID_AT)
        start = _CLIENT_ID_AT + _CLIENT_ID_LENGTH.size
        return content[start : start + length].decode() if length > 0 else None
    except (struct.error, UnicodeDecodeError):
        return None


def decode_request(request_type: type[Request], content: bytes, *, most_items: int = MOST_ITEMS) -> Request:
    """Decode the request in a frame's content, after its header. Raises `Undecodable` and `TooManyItems`.

    Like Kafka, ignore bytes after it: librdkafka appends one to AlterUserScramCredentials.
    """
    _, offset = decode(request_type.__header_schema__, content)
    return decode(request_type, content, offset, most_items=most_items)[0]


def decode_response(response_type: type[Response], content: bytes) -> Response:
    """Decode the response in a frame's content, after its header. Raises `Undecodable`."""
    _, offset = decode(response_type.__header_schema__, content)
    return decode_whole(response_type, content, offset)


def encode_request(request: RequestPayload, correlation_id: int, client_id: str) -> bytes:
    """Encode a request as a whole frame with its length. Raises `Unencodable`."""
    return make_frame(encode_request_header(request, correlation_id, client_id) + _encode(request))


def encode_request_header(
    request: RequestPayload, correlation_id: int, client_id: str, *, version: int | None = None
) -> bytes:
    """Encode the header of a request. `version` is the request's own by default. Raises `Unencodable`."""
    version = int(request.__version__) if version is None else version
    try:
        head = _HEAD.pack(request.__api_key__, version, correlation_id)
    except struct.error as error:
        raise Unencodable(f"the header of {type(request).__name__} cannot be encoded: {error}") from error
    return head + _header_end(client_id, is_flexible=request.__header_schema__ is RequestHeaderV2)


@lru_cache(maxsize=64)
def _header_end(client_id: str, *, is_flexible: bool) -> bytes:
    """Encode the fields of a header that are the same for all requests of a client."""
    header_type: type[RequestHeaderV1] | type[RequestHeaderV2] = RequestHeaderV2 if is_flexible else RequestHeaderV1
    header = header_type(request_api_key=i16(0), request_api_version=i16(0), correlation_id=i32(0), client_id=client_id)
    return _encode(header)[_HEAD.size :]


def encode_response(response: ResponsePayload, correlation_id: int) -> bytes:
    """Encode a response as a whole frame with its length. Raises `Unencodable`."""
    header = response.__header_schema__(correlation_id=i32(correlation_id))
    return make_frame(_encode(header) + _encode(response))


def _encode(entity: Entity) -> bytes:
    buffer = io.BytesIO()
    try:
        entity_writer(type(entity))(buffer, entity)
    except (SerialError, struct.error, TypeError, AttributeError, ValueError) as error:
        raise Unencodable(f"{type(entity).__name__} cannot be encoded: {error}") from error
    return buffer.getvalue()

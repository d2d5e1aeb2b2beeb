"""Frames on a connection, of requests and of answers: first their length, then the available bytes."""

import asyncio
from collections.abc import Iterator
from typing import Final

from kio.schema.api_versions.v3 import ApiVersionsRequest

from controller_core.wire.codecs.frames import (
    FrameError,
    encode_request,
    read_client_id,
    read_correlation_id,
    read_frame,
    read_request_start,
    read_rest,
)
from tests.fuzz.target import Target

_MOST_BYTES: Final = 1 << 16
_LOOP: Final = asyncio.new_event_loop()


def examples() -> Iterator[bytes]:
    asked = encode_request(
        ApiVersionsRequest(client_software_name="kontroller", client_software_version="1"), 7, "client"
    )
    yield asked
    yield asked * 3
    yield b"\0\0\0\0"
    yield b"GET / HTTP/1.1\r\n\r\n"
    yield bytes.fromhex("16030100c8010000c4")


def read(data: bytes) -> None:
    _LOOP.run_until_complete(_requests(data))
    _LOOP.run_until_complete(_frames(data))


async def _requests(data: bytes) -> None:
    reader, taken = _reader(data), 0
    try:
        while (start := await read_request_start(reader, _MOST_BYTES)) is not None:
            content = await read_rest(reader, start)
            assert len(content) == start.length <= _MOST_BYTES
            client_id = read_client_id(bytes(content))
            assert client_id is None or len(client_id) <= len(content)
            taken += 4 + len(content)
    except FrameError:
        return
    assert taken == len(data), "what is between two frames belongs to one of them"


async def _frames(data: bytes) -> None:
    reader = _reader(data)
    try:
        while (content := await read_frame(reader, _MOST_BYTES)) is not None:
            read_correlation_id(content)
    except FrameError:
        return


def _reader(data: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(loop=_LOOP)
    reader.feed_data(data)
    reader.feed_eof()
    return reader


TARGET: Final = Target(name="frames", examples=examples, read=read)

"""Frames and headers: valid and invalid ones."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.api_versions.v0 import ApiVersionsRequest

from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.wire.codecs.frames import (
    FrameCut,
    FrameTooLarge,
    NotKafka,
    RequestHead,
    Unencodable,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    make_frame,
    read_correlation_id,
    read_frame,
    read_request_head,
)
from controller_core.wire.messages import ControlledShutdownRequest, ControlledShutdownResponse, ErrorCode

SHUTDOWN = ControlledShutdownRequest(broker_id=BrokerId(3), broker_epoch=BrokerEpoch(77))


async def frames_in(data: bytes, max_bytes: int = 1000) -> list[bytes]:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    frames = []
    while (frame := await read_frame(reader, max_bytes)) is not None:
        frames.append(frame)
    return frames


@given(st.lists(st.binary(max_size=50)))
async def test_frames_come_out_as_they_went_in(contents: list[bytes]) -> None:
    assert await frames_in(b"".join(make_frame(content) for content in contents)) == contents


async def test_a_connection_that_ends_between_frames_is_no_error() -> None:
    assert await frames_in(b"") == []


@pytest.mark.parametrize("kept", [1, 3, 5, 13])
async def test_a_frame_that_is_cut_is_told_from_an_orderly_end(kept: int) -> None:
    with pytest.raises(FrameCut):
        await frames_in(make_frame(b"0123456789")[:kept])


async def test_a_length_above_the_limit_is_refused_before_its_bytes_are_read() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(make_frame(b"x" * 11)[:4])
    with pytest.raises(FrameTooLarge, match="11 bytes; the limit is 10"):
        await read_frame(reader, 10)


async def test_another_protocol_is_refused_by_its_first_four_bytes() -> None:
    with pytest.raises(FrameTooLarge):
        await frames_in(b"GET / HTTP/1.1\r\n\r\n")


async def test_a_negative_length_is_not_kafka() -> None:
    with pytest.raises(NotKafka):
        await frames_in(b"\xff\xff\xff\xff")


def test_a_request_is_read_back_with_its_head() -> None:
    content = encode_request(SHUTDOWN, 42, "broker-3")[4:]
    assert read_request_head(content) == RequestHead(7, 3, 42)
    assert decode_request(ControlledShutdownRequest, content) == SHUTDOWN


def test_a_request_of_an_inflexible_version_has_the_short_header() -> None:
    frame = encode_request(ApiVersionsRequest(), 1, "me")
    assert frame == b"\0\0\0\x0c" + b"\0\x12" + b"\0\0" + b"\0\0\0\x01" + b"\0\x02me"


def test_a_response_is_read_back_with_its_correlation_id() -> None:
    response = ControlledShutdownResponse(error_code=ErrorCode.none, remaining_partitions=())
    content = encode_response(response, -5)[4:]
    assert read_correlation_id(content) == -5
    assert decode_response(ControlledShutdownResponse, content) == response


@pytest.mark.parametrize("size", range(8))
def test_a_request_without_room_for_a_header_is_not_kafka(size: int) -> None:
    with pytest.raises(NotKafka):
        read_request_head(bytes(size))


@pytest.mark.parametrize("size", range(4))
def test_a_response_without_room_for_a_header_is_not_kafka(size: int) -> None:
    with pytest.raises(NotKafka):
        read_correlation_id(bytes(size))


def test_a_value_that_no_field_can_carry_is_the_makers_mistake() -> None:
    with pytest.raises(Unencodable, match="ControlledShutdownRequest"):
        encode_request(ControlledShutdownRequest(broker_id=BrokerId(2**31)), 1, "me")


def test_bytes_behind_a_request_are_nobodys() -> None:
    """librdkafka puts one behind AlterUserScramCredentials, and Kafka does not look at it."""
    frame = encode_request(SHUTDOWN, 1, "client")[4:]
    assert decode_request(ControlledShutdownRequest, frame + b"\0") == SHUTDOWN

"""Messages from strangers: valid ones are decoded completely, and invalid ones do no harm."""

import io
from dataclasses import dataclass, field
from typing import Any, ClassVar
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.alter_partition.v3 import AlterPartitionRequest
from kio.schema.alter_partition_reassignments.v0 import AlterPartitionReassignmentsRequest
from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.create_topics.v5 import CreateTopicsResponse
from kio.schema.metadata.v1 import MetadataResponse
from kio.schema.request_header.v2.header import RequestHeader
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType
from kio.static.primitive import i16

from controller_core.model.ids import PartitionId, TopicName
from controller_core.wire.codecs.decoding import Undecodable, decode, decode_whole, length_at
from controller_core.wire.messages import (
    AllocateProducerIdsResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ErrorCode,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    RemainingPartition,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from tests.unit.examples import examples
from tests.unit.wire.codecs.strategies import messages

OWN = [
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
]
OF_KIO = [
    AlterPartitionRequest,
    AlterPartitionReassignmentsRequest,
    ApiVersionsResponse,
    CreateTopicsResponse,
    MetadataResponse,
    AllocateProducerIdsResponse,
    RequestHeader,
]


def encode(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


@examples(30)
@given(st.data())
@pytest.mark.parametrize("entity_type", [*OWN, *OF_KIO], ids=lambda kind: f"{kind.__name__}-{kind.__version__}")
def test_any_message_is_read_as_it_was_written_and_as_kio_reads_it(entity_type: Any, data: st.DataObject) -> None:
    entity = data.draw(messages(entity_type))
    content = encode(entity)
    assert decode_whole(entity_type, content) == entity
    assert entity_reader(entity_type)(content, 0) == (entity, len(content))


@given(st.sampled_from([*OWN, *OF_KIO]), st.binary(max_size=200))
def test_random_bytes_are_a_message_or_undecodable_and_nothing_else(entity_type: Any, content: bytes) -> None:
    try:
        entity, end = decode(entity_type, content)
    except Undecodable:
        return
    assert isinstance(entity, entity_type)
    assert end <= len(content)


@given(st.data())
@pytest.mark.parametrize("entity_type", OWN, ids=lambda kind: kind.__name__)
def test_a_message_with_bytes_changed_is_a_message_or_undecodable(entity_type: Any, data: st.DataObject) -> None:
    content = bytearray(encode(data.draw(messages(entity_type))))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        entity = decode_whole(entity_type, bytes(content))
    except Undecodable:
        return
    assert isinstance(entity, entity_type)


SHUTDOWN = ControlledShutdownResponse(
    error_code=ErrorCode.none,
    remaining_partitions=(RemainingPartition(topic_name=TopicName("t"), partition_index=PartitionId(1)),),
)


@pytest.mark.parametrize("kept", range(len(encode(SHUTDOWN))))
def test_a_message_that_is_cut_is_undecodable(kept: int) -> None:
    with pytest.raises(Undecodable):
        decode_whole(ControlledShutdownResponse, encode(SHUTDOWN)[:kept])


def test_bytes_behind_a_message_are_not_ignored() -> None:
    with pytest.raises(Undecodable, match="1 bytes are left"):
        decode_whole(ControlledShutdownResponse, encode(SHUTDOWN) + b"\0")


def test_unknown_tagged_fields_are_skipped() -> None:
    content = encode(SHUTDOWN)[:-1] + b"\x02" + b"\x05\x03abc" + b"\x09\x00"
    assert decode_whole(ControlledShutdownResponse, content) == SHUTDOWN


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"\0\0" + b"\xff\xff\xff\xff\x0f", "says it has"),
        (b"\0\0" + b"\xff" * 12, "has no end"),
        (b"\0\0" + b"\0\0", "says it has -1 items"),
        (b"\x03\xe7" + b"\x01\0", "impossible value"),
        (b"\0\0" + b"\x02" + b"\x02\xff" + b"\0\0\0\x01\0\0", "impossible value"),
        (b"\0\0" + b"\x02" + b"\x00" + b"\0\0\0\x01\0\0", "has the length -1"),
        (b"\0\0" + b"\x01" + b"\x01\x05\x7f", "127 bytes needed"),
    ],
    ids=["huge array", "endless varint", "null array", "unknown error", "not UTF-8", "null string", "long tag"],
)
def test_what_is_wrong_with_a_message_is_said(content: bytes, complaint: str) -> None:
    with pytest.raises(Undecodable, match=complaint):
        decode_whole(ControlledShutdownResponse, content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    __type__: ClassVar[EntityType] = EntityType.nested
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    number: int = field(metadata={"kafka_type": "int32", "tag": 1}, default=7)
    id: UUID | None = field(metadata={"kafka_type": "uuid"})


def test_a_tagged_field_that_is_absent_has_its_default() -> None:
    assert decode_whole(Tagged, bytes(16) + b"\0") == Tagged(number=7, id=None)


def test_a_tagged_field_must_fill_the_size_it_says() -> None:
    assert decode_whole(Tagged, bytes(16) + b"\x01\x01\x04\0\0\0\x05") == Tagged(number=5, id=None)
    with pytest.raises(Undecodable, match="says it has 5 bytes and has 4"):
        decode_whole(Tagged, bytes(16) + b"\x01\x01\x05\0\0\0\x05\0")


def test_a_length_is_one_less_than_its_number_and_null_is_none() -> None:
    assert length_at(b"x\x01", 1) == (0, 2)
    assert length_at(b"\xac\x02", 0) == (299, 2)
    for content in (b"\x00", b"\x00\x05", b"\x80", b"\xff" * 6):
        with pytest.raises(IndexError):
            length_at(content, 0)

"""Decoding and encoding of AlterPartition.

Requests are read directly from the bytes, without kio's objects for each partition and ISR member. Answers are encoded
directly from the current states. An unusual request (a tagged field, an array of hundreds, broken bytes) is left to the
general decoder. A property test compares both with kio's messages.
"""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Final
from uuid import UUID

from kio.schema.alter_partition.v3.request import AlterPartitionRequest as AlterPartitionMessage
from kio.schema.errors import ErrorCode

from controller_core.model.ids import BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch, PartitionId, TopicId
from controller_core.wire.codecs.decoding import decode, length_at
from controller_core.wire.codecs.entries import NO_TAGGED_FIELDS, broker_ids, encode_unsigned_varint
from controller_core.wire.codecs.frames import Unencodable, decode_request, make_frame
from controller_core.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AnsweredIsr,
    AnsweredTopic,
    AskedIsr,
    AskedTopic,
)

_SENDER: Final = struct.Struct(">iq")
_TOPIC_ID_BYTES: Final = 16
_START: Final = struct.Struct(">iiB")
"""Index, leader epoch, and the number of members plus one."""
_MEMBER: Final = struct.Struct(">iqB")
_END: Final = struct.Struct(">biB")
"""Recovery state, partition epoch, no tagged fields."""
_RESULT_START: Final = struct.Struct(">ihii")
_RESPONSE_START: Final = struct.Struct(">ibih")
"""Correlation id, no tagged fields, throttle time, error code."""
_NO_ERROR: Final = ErrorCode.none.value
_ONE_BYTE: Final = 0x80
"""A length below this takes one byte."""


class _Unusual(Exception):
    """The bytes are not a usual request of a leader."""


def read_request(content: bytes) -> AlterPartitionRequest:
    """Decode a request in a frame's content. Raises `Undecodable`, like `frames.decode_request`."""
    return read_usual(content) or convert_request(decode_request(AlterPartitionMessage, content))


def read_usual(content: bytes) -> AlterPartitionRequest | None:
    """Decode a usual request directly from the bytes. Return None for others. Raises `Undecodable` for a bad header."""
    _, start = decode(AlterPartitionRequest.__header_schema__, content)
    try:
        broker_id, broker_epoch = _SENDER.unpack_from(content, start)
        topics = _decode_topics(content, start + _SENDER.size)
    except (_Unusual, IndexError, struct.error):
        return None
    return AlterPartitionRequest(broker_id=broker_id, broker_epoch=broker_epoch, topics=topics)


def convert_request(message: AlterPartitionMessage) -> AlterPartitionRequest:
    """Convert a message of kio."""
    topics = tuple(
        AskedTopic(
            None if topic.topic_id is None else TopicId(topic.topic_id),
            [
                AskedIsr(
                    PartitionId(partition.partition_index),
                    LeaderEpoch(partition.leader_epoch),
                    tuple([BrokerId(member.broker_id) for member in partition.new_isr_with_epochs]),
                    partition.leader_recovery_state,
                    PartitionEpoch(partition.partition_epoch),
                )
                for partition in topic.partitions
            ],
        )
        for topic in message.topics
    )
    return AlterPartitionRequest(
        broker_id=BrokerId(message.broker_id), broker_epoch=BrokerEpoch(message.broker_epoch), topics=topics
    )


def write_response(
    response: AlterPartitionResponse, correlation_id: int, answered: Callable[[AnsweredTopic], bytes] | None = None
) -> bytes:
    """Encode a response as a whole frame, without a throttle time. Raises `Unencodable`.

    `answered` encodes a topic; the default is the format since version 2.
    """
    try:
        start = _RESPONSE_START.pack(correlation_id, 0, 0, response.error_code.value)
        topics = [*map(answered or _encode_topic, response.topics)]
    except struct.error as error:
        raise Unencodable(f"{type(response).__name__} cannot be encoded: {error}") from error
    return make_frame(b"".join((start, encode_unsigned_varint(len(topics) + 1), *topics, NO_TAGGED_FIELDS)))


def _encode_topic(topic: AnsweredTopic) -> bytes:
    id_bytes = bytes(_TOPIC_ID_BYTES) if topic.topic_id is None else topic.topic_id.bytes
    results = map(_encode_result, topic.partitions)
    return b"".join((id_bytes, encode_unsigned_varint(len(topic.partitions) + 1), *results, NO_TAGGED_FIELDS))


def _encode_result(one: AnsweredIsr) -> bytes:
    partition, outcome = one
    if isinstance(outcome, ErrorCode):
        return _RESULT_START.pack(partition, outcome.value, 0, 0) + broker_ids(()) + _END.pack(0, 0, 0)
    leadership = outcome.leader_and_isr
    start = _RESULT_START.pack(partition, _NO_ERROR, leadership.leader, leadership.leader_epoch)
    return start + broker_ids(leadership.isr) + _END.pack(leadership.leader_recovery_state, outcome.partition_epoch, 0)


def _decode_topics(content: bytes, start: int) -> tuple[AskedTopic, ...]:
    """Decode the topics at an offset. Raises `_Unusual`, `IndexError` and `struct.error`."""
    count, offset = length_at(content, start)
    topics = []
    for _ in range(count):
        end = offset + _TOPIC_ID_BYTES
        topic_id = content[offset:end]
        partitions, offset = _decode_partitions(content, *length_at(content, end))
        _require_no_tags(content[offset])
        offset += 1
        topics.append(AskedTopic(TopicId(UUID(bytes=topic_id)) if any(topic_id) else None, partitions))
    _require_no_tags(content[offset])
    return tuple(topics)


def _decode_partitions(content: bytes, count: int, offset: int) -> tuple[list[AskedIsr], int]:
    partitions = []
    for _ in range(count):
        number, leader_epoch, length = _START.unpack_from(content, offset)
        if not 0 < length < _ONE_BYTE:
            raise _Unusual
        start = offset + _START.size
        end = start + (length - 1) * _MEMBER.size
        recovery_state, partition_epoch, tags = _END.unpack_from(content, end)
        _require_no_tags(tags)
        partitions.append(AskedIsr(number, leader_epoch, _isr(content[start:end]), recovery_state, partition_epoch))
        offset = end + _END.size
    return partitions, offset


@lru_cache(maxsize=1 << 12)
def _isr(members: bytes) -> tuple[BrokerId, ...]:
    """Return the brokers of an ISR. Cached, because a cluster has few different ones."""
    isr = []
    for broker, _, tags in _MEMBER.iter_unpack(members):
        _require_no_tags(tags)
        isr.append(BrokerId(broker))
    return tuple(isr)


def _require_no_tags(number: int) -> None:
    if number:
        raise _Unusual

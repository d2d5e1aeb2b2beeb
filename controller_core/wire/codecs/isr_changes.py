"""AlterPartition as leaders send it when a broker returns: requests and answers with an item for each of its replicas.

What a leader asks is read straight from the bytes, without an object of kio for each partition and each member of an ISR,
and the answer is written as bytes. A request that is in any way unusual (a tagged field, an array of hundreds, broken
bytes) is read by the general decoder, which has the last word on what it is.

Both may be read as the messages that they stand for; a property test holds the two together.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple, cast
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId as WireBrokerId
from kio.static.primitive import i64

from controller_core.model.ids import BrokerId, LeaderEpoch, PartitionEpoch, PartitionId, TopicId
from controller_core.model.metadata import PartitionState
from controller_core.wire.codecs.decoding import decode, decode_array, length_at
from controller_core.wire.codecs.entries import (
    NO_TAGGED_FIELDS,
    EncodedTopics,
    broker_ids,
    encoded_topics,
    unsigned_varint,
)
from controller_core.wire.codecs.frames import decode_request, encode_response, with_length
from controller_core.wire.codecs.undecoded import Undecoded
from controller_core.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopic,
    AlterPartitionTopicResult,
)

_SENDER: Final = struct.Struct(">iq")
_TOPIC_ID_BYTES: Final = 16
_START: Final = struct.Struct(">iiB")
"""Index, leader epoch, and one more than the number of members."""
_MEMBER: Final = struct.Struct(">iqB")
_END: Final = struct.Struct(">biB")
"""Recovery state, partition epoch, no tagged fields."""
_RESULT_START: Final = struct.Struct(">ihii")
_RESPONSE_START: Final = struct.Struct(">ibih")
"""Correlation id, no tagged fields, throttle time, error code."""
_ONE_BYTE: Final = 0x80
"""What a length must be below to take one byte."""


class AskedIsr(NamedTuple):
    """What a leader asks for one partition."""

    partition: PartitionId
    leader_epoch: LeaderEpoch
    isr: tuple[BrokerId, ...]
    leader_recovery_state: int
    """As it was sent: it may be none that there is."""
    partition_epoch: PartitionEpoch


class AskedTopic(NamedTuple):
    """What a leader asks for partitions of one topic."""

    topic_id: TopicId | None
    partitions: Sequence[AskedIsr]


class _Unusual(Exception):
    """The bytes are not what leaders usually send."""


class AskedTopics(Undecoded[AlterPartitionTopic]):
    """The topics of a request that was read at once, as `asked`."""

    __slots__ = ("_content", "asked")

    def __init__(self, content: bytes, asked: Sequence[AskedTopic]) -> None:
        super().__init__()
        self._content = content
        self.asked = asked

    def __repr__(self) -> str:
        return f"AskedTopics({len(self._content)} bytes)"

    def decode(self) -> tuple[AlterPartitionTopic, ...]:
        return decode_array(AlterPartitionTopic, self._content)


def read_request(content: bytes) -> AlterPartitionRequest:
    """The request in a frame's content, as `frames.decode_request` reads it. Raises `Undecodable`."""
    _, start = decode(AlterPartitionRequest.__header_schema__, content)
    try:
        broker_id, broker_epoch = _SENDER.unpack_from(content, start)
        start += _SENDER.size
        asked, end = _asked(content, start)
    except (_Unusual, IndexError, struct.error):
        return decode_request(AlterPartitionRequest, content)
    topics = cast("tuple[AlterPartitionTopic, ...]", AskedTopics(content[start:end], asked))
    return AlterPartitionRequest(broker_id=WireBrokerId(broker_id), broker_epoch=i64(broker_epoch), topics=topics)


def asked_by(request: AlterPartitionRequest) -> Sequence[AskedTopic]:
    """What a request asks, topic by topic."""
    if isinstance(request.topics, AskedTopics):
        return request.topics.asked
    return [
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
        for topic in request.topics
    ]


def changed(partition: PartitionId, state: PartitionState) -> bytes:
    """The answer for a partition whose state is as it was asked for."""
    leadership = state.leader_and_isr
    return b"".join(
        (
            _RESULT_START.pack(partition, ErrorCode.none.value, leadership.leader, leadership.leader_epoch),
            broker_ids(leadership.isr),
            _END.pack(leadership.leader_recovery_state, state.partition_epoch, 0),
        )
    )


def refused(partition: PartitionId, error_code: ErrorCode) -> bytes:
    """The answer for a partition that is refused."""
    return _RESULT_START.pack(partition, error_code.value, 0, 0) + broker_ids(()) + _END.pack(0, 0, 0)


def answered(topics: Sequence[tuple[TopicId | None, Sequence[bytes]]]) -> tuple[AlterPartitionTopicResult, ...]:
    """The topics of an answer, each with what `changed` and `refused` made of its partitions."""
    return encoded_topics(AlterPartitionTopicResult, [_answered_topic(*topic) for topic in topics])


def write_response(response: AlterPartitionResponse, correlation_id: int) -> bytes:
    """The response as a whole frame, as `frames.encode_response` makes it. Raises `Unencodable`."""
    topics: object = response.topics
    if not isinstance(topics, EncodedTopics) or response.throttle_time:
        return encode_response(response, correlation_id)
    start = _RESPONSE_START.pack(correlation_id, 0, 0, response.error_code.value)
    return with_length(b"".join((start, topics.content, NO_TAGGED_FIELDS)))


def _answered_topic(topic_id: TopicId | None, results: Sequence[bytes]) -> bytes:
    id_bytes = bytes(_TOPIC_ID_BYTES) if topic_id is None else topic_id.bytes
    return b"".join((id_bytes, unsigned_varint(len(results) + 1), *results, NO_TAGGED_FIELDS))


def _asked(content: bytes, start: int) -> tuple[list[AskedTopic], int]:
    """The topics at an offset, and the offset behind them. Raises `_Unusual`, `IndexError`, `struct.error`."""
    count, offset = length_at(content, start)
    topics = []
    for _ in range(count):
        end = offset + _TOPIC_ID_BYTES
        topic_id = content[offset:end]
        partitions, offset = _asked_partitions(content, *length_at(content, end))
        _require_no_tags(content[offset])
        offset += 1
        topics.append(AskedTopic(TopicId(UUID(bytes=topic_id)) if any(topic_id) else None, partitions))
    _require_no_tags(content[offset])
    return topics, offset


def _asked_partitions(content: bytes, count: int, offset: int) -> tuple[list[AskedIsr], int]:
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
    """The brokers of an ISR; a cluster has few different ones. Their epochs are -1 without KRaft (KIP-903)."""
    isr = []
    for broker, _, tags in _MEMBER.iter_unpack(members):
        _require_no_tags(tags)
        isr.append(BrokerId(broker))
    return tuple(isr)


def _require_no_tags(number: int) -> None:
    if number:
        raise _Unusual

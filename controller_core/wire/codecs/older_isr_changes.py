"""AlterPartition in the versions of older brokers: 0 (Kafka 2.8 to 3.1), 1 (3.2) and 2 (3.3), next to the newest.

Before version 2 topics have names instead of ids, and before version 1 partitions have no recovery state.
INELIGIBLE_REPLICA came with version 2; older brokers get OPERATION_NOT_ATTEMPTED instead, and also drop their request.
Only those of 2.8 to 3.1 wait for the next LeaderAndIsr, as after any error.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.primitive import i16
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.model.ids import (
    BrokerEpoch,
    BrokerId,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicName,
)
from controller_core.wire.codecs.decoding import MOST_ITEMS, Cursor, Undecodable, decode, skip_tagged
from controller_core.wire.codecs.entries import NO_TAGGED_FIELDS, broker_ids, encode_unsigned_varint
from controller_core.wire.codecs.isr_changes import read_request, write_response
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AnsweredIsr,
    AnsweredTopic,
    AskedIsr,
    AskedTopic,
)

_FIRST_WITH_RECOVERY_STATES: Final = 1
_FIRST_WITH_TOPIC_IDS: Final = 2
_TOPIC_ID_BYTES: Final = 16
_SENDER: Final = struct.Struct(">iq")
_START: Final = struct.Struct(">ii")
_NUMBER: Final = struct.Struct(">i")
_STATE: Final = struct.Struct(">b")
_RESULT_START: Final = struct.Struct(">ihii")


@dataclass(frozen=True, slots=True)
class _OlderResponse:
    """An answer that will be encoded in an older version."""

    __type__: ClassVar[EntityType] = EntityType.response
    __api_key__: ClassVar[i16] = AlterPartitionResponse.__api_key__
    response: AlterPartitionResponse
    __version__: int


class IsrChangeVersions(Versions[AlterPartitionRequest]):
    """All versions that brokers of Kafka 2.8 to 3.9 send. Each is decoded to the newest one."""

    def __init__(self) -> None:
        super().__init__(AlterPartitionRequest, oldest=0, read=read_request, write=write_response)

    def decode(self, content: bytes, version: int, *, most_items: int = MOST_ITEMS) -> RequestPayload:
        if version == self.max:
            return super().decode(content, version, most_items=most_items)
        return _read(content, version, most_items)

    def lower(self, response: ResponsePayload, version: int) -> Any:
        return response if version == self.max else _OlderResponse(response, version)  # type: ignore[arg-type]

    def encode(self, response: Any, correlation_id: int) -> bytes:
        if not isinstance(response, _OlderResponse):
            return super().encode(response, correlation_id)
        version = response.__version__
        if version >= _FIRST_WITH_TOPIC_IDS:  # the answer has the newest format
            return write_response(response.response, correlation_id)
        return write_response(response.response, correlation_id, lambda topic: _encode_topic(topic, version))


VERSIONS: Final = IsrChangeVersions()


def _read(content: bytes, version: int, most_items: int) -> AlterPartitionRequest:
    _, start = decode(AlterPartitionRequest.__header_schema__, content)
    cursor = Cursor(content, start, most_items)
    try:
        broker_id, broker_epoch = _SENDER.unpack(cursor.take(_SENDER.size))
        topics = tuple(_topics(cursor, version))
        skip_tagged(cursor)
    except ValueError as error:
        raise Undecodable(f"AlterPartition has an impossible value before offset {cursor.offset}") from error
    return AlterPartitionRequest(broker_id=BrokerId(broker_id), broker_epoch=BrokerEpoch(broker_epoch), topics=topics)


def _topics(cursor: Cursor, version: int) -> Iterator[AskedTopic]:
    for _ in range(_count(cursor)):
        topic_id, name = None, None
        if version >= _FIRST_WITH_TOPIC_IDS:
            content = cursor.take(_TOPIC_ID_BYTES)
            topic_id = TopicId(UUID(bytes=content)) if any(content) else None
        else:
            name = TopicName(cursor.take(_length(cursor)).decode())
        partitions = [_partition(cursor, version) for _ in range(_count(cursor))]
        skip_tagged(cursor)
        yield AskedTopic(topic_id, partitions, name)


def _partition(cursor: Cursor, version: int) -> AskedIsr:
    number, leader_epoch = _START.unpack(cursor.take(_START.size))
    members = cursor.take(_count(cursor) * _NUMBER.size)
    has_state = version >= _FIRST_WITH_RECOVERY_STATES
    recovery_state = _STATE.unpack(cursor.take(_STATE.size))[0] if has_state else 0
    (partition_epoch,) = _NUMBER.unpack(cursor.take(_NUMBER.size))
    skip_tagged(cursor)
    isr = tuple(BrokerId(member) for (member,) in _NUMBER.iter_unpack(members))
    return AskedIsr(
        PartitionId(number), LeaderEpoch(leader_epoch), isr, recovery_state, PartitionEpoch(partition_epoch)
    )


def _count(cursor: Cursor) -> int:
    items = _length(cursor)
    cursor.count(items)
    return items


def _length(cursor: Cursor) -> int:
    length = cursor.read_unsigned_varint() - 1
    if length < 0:
        raise Undecodable(f"null before offset {cursor.offset} is not allowed")
    return length


def _encode_topic(topic: AnsweredTopic, version: int) -> bytes:
    """Encode a topic in a version with topic names. Raises `struct.error`."""
    name = (topic.name or "").encode()
    results = (_encode_partition(one, version) for one in topic.partitions)
    start = encode_unsigned_varint(len(name) + 1), name, encode_unsigned_varint(len(topic.partitions) + 1)
    return b"".join((*start, *results, NO_TAGGED_FIELDS))


def _encode_partition(one: AnsweredIsr, version: int) -> bytes:
    partition, outcome = one
    has_state = version >= _FIRST_WITH_RECOVERY_STATES
    if isinstance(outcome, ErrorCode):
        code = _convert_code(outcome).value
        state = _STATE.pack(0) if has_state else b""
        return b"".join((_RESULT_START.pack(partition, code, 0, 0), broker_ids(()), state, _NUMBER.pack(0), b"\0"))
    leadership = outcome.leader_and_isr
    start = _RESULT_START.pack(partition, 0, leadership.leader, leadership.leader_epoch)
    state = _STATE.pack(leadership.leader_recovery_state) if has_state else b""
    end = _NUMBER.pack(outcome.partition_epoch) + NO_TAGGED_FIELDS
    return b"".join((start, broker_ids(leadership.isr), state, end))


def _convert_code(code: ErrorCode) -> ErrorCode:
    """Return the code that brokers before version 2 know (`KafkaController.processAlterPartition`)."""
    return ErrorCode.operation_not_attempted if code is ErrorCode.ineligible_replica else code

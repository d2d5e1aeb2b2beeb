"""The partitions of control requests in encoded form. Full requests have one entry for each partition of the cluster.

An entry is the same for every broker. So entries are encoded once, directly from a partition's state and assignment,
and requests carry them as bytes (`EncodedTopics`), without an object per partition, and with one copy for all brokers.
Simulated brokers and tests can read such a request as a tuple of topics, which is decoded on demand. The partitions
that a StopReplica deletes are found without decoding it. The bytes equal those of kio's writer; a property test
compares them.
"""

import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, TypeVar, cast

from controller_core.model.ids import (
    LEADER_DURING_DELETE,
    BrokerId,
    LeaderEpoch,
    PartitionId,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import PartitionState
from controller_core.wire.codecs.decoding import Cursor, decode_array
from controller_core.wire.codecs.undecoded import Undecoded
from controller_core.wire.messages.leader_and_isr import LeaderAndIsrTopicState
from controller_core.wire.messages.stop_replica import StopReplicaRequest, StopReplicaTopicState
from controller_core.wire.messages.update_metadata import UpdateMetadataTopicState

NO_TAGGED_FIELDS: Final = b"\0"
_START: Final = struct.Struct(">4i")
_NUMBER: Final = struct.Struct(">i")
_END_OF_LEADER_AND_ISR: Final = struct.Struct(">?bB")
_STOP: Final = struct.Struct(">ii?B")
_TOPIC_ID_BYTES: Final = 16
_IS_NEW_BYTES: Final = 1
_RECOVERY_STATE_BYTES: Final = 1

T = TypeVar("T", LeaderAndIsrTopicState, UpdateMetadataTopicState, StopReplicaTopicState)


class EncodedTopics(Undecoded[T]):
    """An encoded array of topics, which can be read as a tuple."""

    __slots__ = ("_kind", "content", "makes_forget")

    def __init__(self, kind: type[T], topics: Sequence[bytes], *, makes_forget: bool = False) -> None:
        """`makes_forget` is True if a broker shall forget some of the partitions, which no later request repeats."""
        super().__init__()
        self._kind: type[T] = kind
        self.makes_forget = makes_forget
        self.content = b"".join((encode_unsigned_varint(len(topics) + 1), *topics))

    def __repr__(self) -> str:
        return f"EncodedTopics({len(self.content)} bytes)"

    def decode(self) -> tuple[T, ...]:
        return decode_array(self._kind, self.content)


def make_encoded_topics(kind: type[T], topics: Sequence[bytes], *, makes_forget: bool = False) -> tuple[T, ...]:
    """Return the topics of a message from their encoded forms. The type is that of the message's field."""
    return cast("tuple[T, ...]", EncodedTopics(kind, topics, makes_forget=makes_forget))


def topic(name: TopicName, topic_id: TopicId | None, entries: Sequence[bytes]) -> bytes:
    """Encode a topic of LeaderAndIsr or UpdateMetadata from the entries of its partitions. Raises
    `UnicodeEncodeError`."""
    return _topic(name, bytes(16) if topic_id is None else topic_id.bytes, entries)


def encode_stopped_topic(name: TopicName, stops: Sequence[bytes]) -> bytes:
    """Encode a topic of StopReplica from the entries that `stop` made. Raises `UnicodeEncodeError`."""
    return _topic(name, b"", stops)


def _topic(name: TopicName, topic_id: bytes, entries: Sequence[bytes]) -> bytes:
    encoded = name.encode()
    start = encode_unsigned_varint(len(encoded) + 1), encoded, topic_id, encode_unsigned_varint(len(entries) + 1)
    return b"".join((*start, *entries, NO_TAGGED_FIELDS))


def stop(partition: PartitionId, leader_epoch: LeaderEpoch, *, delete: bool) -> bytes:
    """Encode the entry of StopReplica for a replica. Raises `struct.error`."""
    return _STOP.pack(partition, leader_epoch, delete, 0)


def find_deleted(request: StopReplicaRequest) -> dict[TopicPartition, LeaderEpoch]:
    """Return the replicas that a request deletes, with their leader epochs."""
    topics = request.topic_states
    found = (
        _stops_in(topics.content)
        if isinstance(topics, EncodedTopics)
        else (
            (topic.topic_name, (state.partition_index, state.leader_epoch, state.delete_partition))
            for topic in topics
            for state in topic.partition_states
        )
    )
    return {TopicPartition(name, number): epoch for name, (number, epoch, delete) in found if delete}


def _stops_in(topics: bytes) -> Iterator[tuple[TopicName, tuple[PartitionId, LeaderEpoch, bool]]]:
    """Yield the entries of topics that `encode_stopped_topic` encoded."""
    cursor = Cursor(topics, 0)
    for _ in range(cursor.read_unsigned_varint() - 1):
        name = TopicName(cursor.take(cursor.read_unsigned_varint() - 1).decode())
        stops = cursor.take((cursor.read_unsigned_varint() - 1) * _STOP.size)
        for number, leader_epoch, delete, _ in _STOP.iter_unpack(stops):
            yield name, (number, leader_epoch, delete)
        cursor.take(len(NO_TAGGED_FIELDS))


@lru_cache(maxsize=2)
def drop_recovery_states(topics: bytes) -> bytes:
    """Return the topics of a LeaderAndIsr in version 5, before KIP-704. Cached, because brokers of that version get the
    same."""
    cursor, kept, start = Cursor(topics, 0), [], 0
    for _ in range(cursor.read_unsigned_varint() - 1):
        cursor.take(cursor.read_unsigned_varint() - 1 + _TOPIC_ID_BYTES)
        for _ in range(cursor.read_unsigned_varint() - 1):
            cursor.take(_START.size)
            _skip_numbers(cursor)
            cursor.take(_NUMBER.size)
            for _ in range(3):
                _skip_numbers(cursor)
            cursor.take(_IS_NEW_BYTES)
            kept.append(topics[start : cursor.offset])
            start = cursor.offset + _RECOVERY_STATE_BYTES
            cursor.take(_RECOVERY_STATE_BYTES + len(NO_TAGGED_FIELDS))
        cursor.take(len(NO_TAGGED_FIELDS))
    return b"".join((*kept, topics[start:]))


def _skip_numbers(cursor: Cursor) -> None:
    cursor.take((cursor.read_unsigned_varint() - 1) * _NUMBER.size)


def partition_start(partition: PartitionId, state: PartitionState, replicas: tuple[BrokerId, ...]) -> bytes:
    """Encode the first fields of an entry in LeaderAndIsr and UpdateMetadata. Raises `struct.error`."""
    leadership = state.leader_and_isr
    return b"".join(
        (
            _START.pack(partition, state.controller_epoch, leadership.leader, leadership.leader_epoch),
            broker_ids(leadership.isr),
            _NUMBER.pack(state.partition_epoch),
            broker_ids(replicas),
        )
    )


@lru_cache(maxsize=1 << 10)
def leader_and_isr_end(
    adding: tuple[BrokerId, ...], removing: tuple[BrokerId, ...], *, is_new: bool, recovery_state: int
) -> bytes:
    """Encode the other fields in LeaderAndIsr: adding and removing replicas, whether it is new, the recovery state."""
    return broker_ids(adding) + broker_ids(removing) + _END_OF_LEADER_AND_ISR.pack(is_new, recovery_state, 0)


def update_metadata_end(offline_replicas: tuple[BrokerId, ...]) -> bytes:
    """Encode the other fields in UpdateMetadata."""
    return broker_ids(offline_replicas) + NO_TAGGED_FIELDS


def encode_deleted_partition(partition: PartitionId) -> bytes:
    """Encode the entry of UpdateMetadata that makes a broker forget a partition."""
    none = broker_ids(())
    return _START.pack(partition, -1, LEADER_DURING_DELETE, 0) + none + _NUMBER.pack(0) + none + update_metadata_end(())


@lru_cache(maxsize=1 << 16)
def broker_ids(brokers: tuple[BrokerId, ...]) -> bytes:
    """Encode an array of broker ids. Cached, because a cluster has few different ones."""
    return encode_unsigned_varint(len(brokers) + 1) + struct.pack(f">{len(brokers)}i", *brokers)


def encode_unsigned_varint(number: int) -> bytes:
    """Encode a number of variable length. For a compact array or string it is the length plus one: 0 means null."""
    content = bytearray()
    while number > 0x7F:
        content.append(number & 0x7F | 0x80)
        number >>= 7
    content.append(number)
    return bytes(content)

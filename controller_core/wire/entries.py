"""The partitions of LeaderAndIsr and UpdateMetadata as bytes from the start: full requests have one for each of a cluster.

A partition's entry says the same to every broker. So entries are written once, straight from the partition's state and
assignment, and a request carries its topics as they lie on the wire (`EncodedTopics`): no object for each partition, and
one copy for all brokers. Whoever wants to look into such a request (simulated brokers do, tests, an answer to a
StopReplica never) reads it as the tuple of topics that it stands for, which is decoded on demand.

The bytes are those of kio's writer; a property test holds the two together.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, TypeVar, cast

from controller_core.model.ids import (
    LEADER_DURING_DELETE,
    BrokerId,
    PartitionId,
    TopicId,
    TopicName,
)
from controller_core.model.metadata import PartitionState
from controller_core.wire.decoding import decode_array
from controller_core.wire.messages.leader_and_isr import LeaderAndIsrTopicState
from controller_core.wire.messages.update_metadata import UpdateMetadataTopicState
from controller_core.wire.undecoded import Undecoded

NO_TAGGED_FIELDS: Final = b"\0"
_START: Final = struct.Struct(">4i")
_NUMBER: Final = struct.Struct(">i")
_END_OF_LEADER_AND_ISR: Final = struct.Struct(">?bB")

T = TypeVar("T", LeaderAndIsrTopicState, UpdateMetadataTopicState)


class EncodedTopics(Undecoded[T]):
    """An array of topics as it lies on the wire, that may be read as the tuple it stands for."""

    __slots__ = ("_kind", "content")

    def __init__(self, kind: type[T], topics: Sequence[bytes]) -> None:
        super().__init__()
        self._kind: type[T] = kind
        self.content = b"".join((unsigned_varint(len(topics) + 1), *topics))

    def __repr__(self) -> str:
        return f"EncodedTopics({len(self.content)} bytes)"

    def decode(self) -> tuple[T, ...]:
        return decode_array(self._kind, self.content)


def encoded_topics(kind: type[T], topics: Sequence[bytes]) -> tuple[T, ...]:
    """The topics of a request, from the bytes that `topic` made of each. Typed as the field that they are meant for."""
    return cast("tuple[T, ...]", EncodedTopics(kind, topics))


def topic(name: TopicName, topic_id: TopicId | None, entries: Sequence[bytes]) -> bytes:
    """A topic with the entries of its partitions, in either request. Raises `UnicodeEncodeError`."""
    encoded = name.encode()
    return b"".join(
        (
            unsigned_varint(len(encoded) + 1),
            encoded,
            bytes(16) if topic_id is None else topic_id.bytes,
            unsigned_varint(len(entries) + 1),
            *entries,
            NO_TAGGED_FIELDS,
        )
    )


def partition_start(partition: PartitionId, state: PartitionState, replicas: tuple[BrokerId, ...]) -> bytes:
    """What an entry of either request starts with: index, epochs, leader, ISR and replicas. Raises `struct.error`."""
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
    """What follows in LeaderAndIsr: what a reassignment adds and removes, whether it is new, the recovery state."""
    return broker_ids(adding) + broker_ids(removing) + _END_OF_LEADER_AND_ISR.pack(is_new, recovery_state, 0)


def update_metadata_end(offline_replicas: tuple[BrokerId, ...]) -> bytes:
    """What follows in UpdateMetadata."""
    return broker_ids(offline_replicas) + NO_TAGGED_FIELDS


def deleted_partition(partition: PartitionId) -> bytes:
    """The entry in UpdateMetadata that makes a broker forget a partition."""
    none = broker_ids(())
    return _START.pack(partition, -1, LEADER_DURING_DELETE, 0) + none + _NUMBER.pack(0) + none + update_metadata_end(())


@lru_cache(maxsize=1 << 16)
def broker_ids(brokers: tuple[BrokerId, ...]) -> bytes:
    """An array of broker ids; a cluster has few different ones."""
    return unsigned_varint(len(brokers) + 1) + struct.pack(f">{len(brokers)}i", *brokers)


def unsigned_varint(number: int) -> bytes:
    """A number of variable length. That of a compact array or string is one more than its length: 0 is null."""
    content = bytearray()
    while number > 0x7F:
        content.append(number & 0x7F | 0x80)
        number >>= 7
    content.append(number)
    return bytes(content)

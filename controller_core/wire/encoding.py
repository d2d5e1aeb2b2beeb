"""Writes the two control requests that can have an entry for every partition of a cluster.

kio's writer visits each field of each entry: with 100,000 partitions it keeps the event loop busy for 0.6 s, for every
broker. Here an entry is one `struct` call. And as the topics of a full request are the same for all brokers, those that
were written last are remembered: whoever sends one tuple of topics to several brokers in a row pays for it once.

The bytes are those of kio's writer; a test holds the two together.
"""

import io
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias

from kio.serial import entity_writer

from controller_core.wire.frames import Unencodable, encode_request, encode_request_header, with_length
from controller_core.wire.messages import (
    ControlRequest,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

_MOST_IN_A_BYTE: Final = 126
"""Items of an array whose length still takes one byte. Only a test has as many replicas of one partition."""
_NO_TAGGED_FIELDS: Final = b"\0"
_LEADER_AND_ISR_START = struct.Struct(">i?iqb")
_UPDATE_METADATA_START = struct.Struct(">i?iq")

Topic: TypeAlias = LeaderAndIsrTopicState | UpdateMetadataTopicState


def encode_control_request(request: ControlRequest, correlation_id: int, client_id: str) -> bytes:
    """A request as a whole frame, as `frames.encode_request` makes it. Raises `Unencodable`."""
    match request:
        case LeaderAndIsrRequest():
            write: Callable[[Any], bytes] = _leader_and_isr
        case UpdateMetadataRequest():
            write = _update_metadata
        case _:
            return encode_request(request, correlation_id, client_id)
    try:
        content = write(request)
    except (struct.error, TypeError, AttributeError, ValueError) as error:
        raise Unencodable(f"{type(request).__name__} cannot be written: {error}") from error
    return with_length(encode_request_header(request, correlation_id, client_id) + content)


def _leader_and_isr(request: LeaderAndIsrRequest) -> bytes:
    start = _LEADER_AND_ISR_START.pack(
        request.controller_id,
        request.is_kraft_controller,
        request.controller_epoch,
        request.broker_epoch,
        request.type_,
    )
    return start + _leader_and_isr_topics(request.topic_states) + _array(request.live_leaders) + _NO_TAGGED_FIELDS


def _update_metadata(request: UpdateMetadataRequest) -> bytes:
    start = _UPDATE_METADATA_START.pack(
        request.controller_id, request.is_kraft_controller, request.controller_epoch, request.broker_epoch
    )
    tagged = struct.pack(">BBBb", 1, 0, 1, request.type_) if request.type_ else _NO_TAGGED_FIELDS
    return start + _update_metadata_topics(request.topic_states) + _array(request.live_brokers) + tagged


def _leader_and_isr_entry(state: LeaderAndIsrPartitionState) -> bytes:
    isr, replicas, adding, removing = state.isr, state.replicas, state.adding_replicas, state.removing_replicas
    if max(map(len, (isr, replicas, adding, removing))) > _MOST_IN_A_BYTE:
        return _written_by_kio(state)
    entry = _entry(">4i B{}i i B{}i B{}i B{}i ?bB", len(isr), len(replicas), len(adding), len(removing))
    return entry.pack(
        state.partition_index,
        state.controller_epoch,
        state.leader,
        state.leader_epoch,
        len(isr) + 1,
        *isr,
        state.partition_epoch,
        len(replicas) + 1,
        *replicas,
        len(adding) + 1,
        *adding,
        len(removing) + 1,
        *removing,
        state.is_new,
        state.leader_recovery_state,
        0,
    )


def _update_metadata_entry(state: UpdateMetadataPartitionState) -> bytes:
    isr, replicas, offline = state.isr, state.replicas, state.offline_replicas
    if max(map(len, (isr, replicas, offline))) > _MOST_IN_A_BYTE:
        return _written_by_kio(state)
    entry = _entry(">4i B{}i i B{}i B{}i B", len(isr), len(replicas), len(offline))
    return entry.pack(
        state.partition_index,
        state.controller_epoch,
        state.leader,
        state.leader_epoch,
        len(isr) + 1,
        *isr,
        state.zk_version,
        len(replicas) + 1,
        *replicas,
        len(offline) + 1,
        *offline,
        0,
    )


@cache
def _entry(form: str, *lengths: int) -> struct.Struct:
    return struct.Struct(form.format(*lengths))


class _Topics:
    """Writes an array of topics; given the same tuple again, it returns the same bytes."""

    def __init__(self, write_entry: Callable[[Any], bytes]) -> None:
        self._write_entry = write_entry
        self._last: tuple[tuple[Topic, ...], bytes] = ((), _length(0))

    def __call__(self, topics: tuple[Topic, ...]) -> bytes:
        if self._last[0] is not topics:
            self._last = topics, _length(len(topics)) + b"".join(map(self._write, topics))
        return self._last[1]

    def _write(self, topic: Topic) -> bytes:
        name = topic.topic_name.encode()
        topic_id = bytes(16) if topic.topic_id is None else topic.topic_id.bytes
        entries = b"".join(map(self._write_entry, topic.partition_states))
        count = _length(len(topic.partition_states))
        return b"".join((_length(len(name)), name, topic_id, count, entries, _NO_TAGGED_FIELDS))


def _array(items: tuple[Any, ...]) -> bytes:
    return _length(len(items)) + b"".join(map(_written_by_kio, items))


def _written_by_kio(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def _length(length: int) -> bytes:
    """The length of a compact array or string, which is written one larger to leave room for null."""
    rest, content = length + 1, bytearray()
    while rest > 0x7F:
        content.append(rest & 0x7F | 0x80)
        rest >>= 7
    content.append(rest)
    return bytes(content)


_leader_and_isr_topics = _Topics(_leader_and_isr_entry)
_update_metadata_topics = _Topics(_update_metadata_entry)

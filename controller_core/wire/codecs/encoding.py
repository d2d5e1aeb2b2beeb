"""Encodes control requests as frames, in pieces, so that parts common to all brokers are not copied for each.

A full request has tens of megabytes, mostly topics that are encoded already (`controller_core.wire.codecs.entries`).
Only the parts before and after them are encoded for each broker. The bytes equal those of kio's writer; a test compares
them.

Brokers get versions that they know. Kafka 2.8 to 3.3 get those before KIP-866, without the flag for KRaft controllers;
2.8 to 3.1 get the LeaderAndIsr before KIP-704, without recovery states. Otherwise the topics' bytes are the same, and
so are the answers.
"""

import io
import struct
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any, Final, TypeVar

from kio.serial import entity_writer
from kio.serial.errors import SerialError

from controller_core.wire.codecs.entries import (
    NO_TAGGED_FIELDS,
    EncodedTopics,
    drop_recovery_states,
    encode_unsigned_varint,
)
from controller_core.wire.codecs.frames import Unencodable, encode_request, encode_request_header
from controller_core.wire.messages import (
    ControlRequest,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)

T = TypeVar("T")

_LENGTH: Final = struct.Struct(">i")
_LEADER_AND_ISR_START: Final = struct.Struct(">i?iqb")
_START: Final = struct.Struct(">i?iq")
_TYPE_TAG: Final = struct.Struct(">BBBb")
_BEFORE_KRAFT: Final = struct.Struct(">iiq")
_TYPE: Final = struct.Struct(">b")

OLDEST: Final[Mapping[type[ControlRequest], int]] = {
    LeaderAndIsrRequest: 5,
    StopReplicaRequest: 3,
    UpdateMetadataRequest: 7,
}
"""The versions of Kafka 2.8, the first release with topic ids."""
_FIRST_WITH_RECOVERY_STATES: Final = 6
_UNWRITABLE: Final = (SerialError, struct.error, TypeError, AttributeError, ValueError)


def encode_control_request(request: ControlRequest, correlation_id: int, client_id: str) -> bytes:
    """Encode a request as a whole frame, like `frames.encode_request`. Raises `Unencodable`."""
    return b"".join(control_request_pieces(request, correlation_id, client_id))


def control_request_pieces(
    request: ControlRequest, correlation_id: int, client_id: str, *, version: int | None = None
) -> list[bytes]:
    """Encode a request as a whole frame, in pieces. Raises `Unencodable`.

    `version` is from `OLDEST` to the request's own, which is the default.
    """
    version = int(request.__version__) if version is None else version
    is_newest = version == request.__version__
    if is_newest and not isinstance(request.topic_states, EncodedTopics):
        return [encode_request(request, correlation_id, client_id)]
    try:
        body = _pieces(request) if is_newest else _older_pieces(request, version)
        pieces = [encode_request_header(request, correlation_id, client_id, version=version), *body]
    except _UNWRITABLE as error:
        raise Unencodable(f"{type(request).__name__} cannot be encoded: {error}") from error
    return [_LENGTH.pack(sum(map(len, pieces))), *pieces]


def _pieces(request: ControlRequest) -> tuple[bytes, bytes, bytes]:
    """Return the bytes before the topics, the topics, and the bytes after them."""
    topics: Any = request.topic_states
    who = request.controller_id, request.is_kraft_controller, request.controller_epoch, request.broker_epoch
    if isinstance(request, LeaderAndIsrRequest):
        return _LEADER_AND_ISR_START.pack(*who, request.type_), topics.content, _encode_rest(request)
    if isinstance(request, UpdateMetadataRequest) and request.type_:
        return _START.pack(*who), topics.content, _array(request.live_brokers) + _TYPE_TAG.pack(1, 0, 1, request.type_)
    return _START.pack(*who), topics.content, _encode_rest(request)


def _older_pieces(request: ControlRequest, version: int) -> tuple[bytes, bytes, bytes]:
    """Return the same pieces in an older version."""
    start = _BEFORE_KRAFT.pack(request.controller_id, request.controller_epoch, request.broker_epoch)
    topics = request.topic_states
    content = topics.content if isinstance(topics, EncodedTopics) else _array(topics)
    if isinstance(request, LeaderAndIsrRequest):
        start += _TYPE.pack(request.type_)
        content = content if version >= _FIRST_WITH_RECOVERY_STATES else drop_recovery_states(content)
    return start, content, _encode_rest(request)


def _encode_rest(request: ControlRequest) -> bytes:
    """Return the bytes after the topics, without tagged fields."""
    if isinstance(request, LeaderAndIsrRequest):
        return _array(request.live_leaders) + NO_TAGGED_FIELDS
    return (b"" if isinstance(request, StopReplicaRequest) else _array(request.live_brokers)) + NO_TAGGED_FIELDS


class SharedArray(tuple[T, ...]):
    """An array that several requests share, because they name the same brokers. It is encoded once.

    A cache by value cannot do that: it would compare all brokers for each broker.
    """

    @cached_property
    def content(self) -> bytes:
        """The encoded array. Raises kio's errors for values that no request can carry."""
        return encode_unsigned_varint(len(self) + 1) + b"".join(map(_encode_by_kio, self))


def _array(items: tuple[Any, ...]) -> bytes:
    return (items if isinstance(items, SharedArray) else SharedArray(items)).content


def require_encodable(entity: Any) -> None:
    """Raise `Unencodable` if no request can carry the entity: one bad broker must not block the requests to all
    others."""
    try:
        _encode_by_kio(entity)
    except _UNWRITABLE as error:
        raise Unencodable(f"{entity} cannot be encoded: {error}") from error


@lru_cache(maxsize=1 << 10)
def _encode_by_kio(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()

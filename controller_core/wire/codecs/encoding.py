"""Writes control requests as frames, in pieces: what is the same for all brokers is not copied for each of them.

A full request has tens of megabytes, and nearly all of it is its topics, which are bytes already
(`controller_core.wire.codecs.entries`). Only what stands before and behind them is written for each broker.

The bytes are those of kio's writer; a test holds the two together.

Brokers are written to in versions that they know: those of Kafka 2.8 to 3.3 in the ones before KIP-866, whose requests do
not say that they are of no KRaft controller; 2.8 to 3.1 in the LeaderAndIsr before KIP-704, whose partitions have no
recovery state. Their topics are the same bytes else. The answers are the same in all of these.
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
    unsigned_varint,
    without_recovery_states,
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
"""The versions of Kafka 2.8, the first that has the ids of topics."""
_FIRST_WITH_RECOVERY_STATES: Final = 6
_UNWRITABLE: Final = (SerialError, struct.error, TypeError, AttributeError, ValueError)


def encode_control_request(request: ControlRequest, correlation_id: int, client_id: str) -> bytes:
    """A request as a whole frame, as `frames.encode_request` makes it. Raises `Unencodable`."""
    return b"".join(control_request_pieces(request, correlation_id, client_id))


def control_request_pieces(
    request: ControlRequest, correlation_id: int, client_id: str, *, version: int | None = None
) -> list[bytes]:
    """A request as a whole frame, in the pieces that it is made of. Raises `Unencodable`.

    `version`: from `OLDEST` to the request's own, which None stands for."""
    version = int(request.__version__) if version is None else version
    is_newest = version == request.__version__
    if is_newest and not isinstance(request.topic_states, EncodedTopics):
        return [encode_request(request, correlation_id, client_id)]
    try:
        body = _pieces(request) if is_newest else _older_pieces(request, version)
        pieces = [encode_request_header(request, correlation_id, client_id, version=version), *body]
    except _UNWRITABLE as error:
        raise Unencodable(f"{type(request).__name__} cannot be written: {error}") from error
    return [_LENGTH.pack(sum(map(len, pieces))), *pieces]


def _pieces(request: ControlRequest) -> tuple[bytes, bytes, bytes]:
    """What stands before the topics, the topics, and what stands behind them."""
    topics: Any = request.topic_states
    who = request.controller_id, request.is_kraft_controller, request.controller_epoch, request.broker_epoch
    if isinstance(request, LeaderAndIsrRequest):
        return _LEADER_AND_ISR_START.pack(*who, request.type_), topics.content, _behind(request)
    if isinstance(request, UpdateMetadataRequest) and request.type_:
        return _START.pack(*who), topics.content, _array(request.live_brokers) + _TYPE_TAG.pack(1, 0, 1, request.type_)
    return _START.pack(*who), topics.content, _behind(request)


def _older_pieces(request: ControlRequest, version: int) -> tuple[bytes, bytes, bytes]:
    """The same of a version before the request's own."""
    start = _BEFORE_KRAFT.pack(request.controller_id, request.controller_epoch, request.broker_epoch)
    topics = request.topic_states
    content = topics.content if isinstance(topics, EncodedTopics) else _array(topics)
    if isinstance(request, LeaderAndIsrRequest):
        start += _TYPE.pack(request.type_)
        content = content if version >= _FIRST_WITH_RECOVERY_STATES else without_recovery_states(content)
    return start, content, _behind(request)


def _behind(request: ControlRequest) -> bytes:
    """What stands behind the topics, without any tagged fields."""
    if isinstance(request, LeaderAndIsrRequest):
        return _array(request.live_leaders) + NO_TAGGED_FIELDS
    return (b"" if isinstance(request, StopReplicaRequest) else _array(request.live_brokers)) + NO_TAGGED_FIELDS


class SharedArray(tuple[T, ...]):
    """An array that several requests carry, as they name the same brokers: it is written once, whoever it is sent to.

    No cache by value does that: it would compare all brokers for each broker."""

    @cached_property
    def content(self) -> bytes:
        """The array as it lies on the wire. Raises what kio raises for what no request can carry."""
        return unsigned_varint(len(self) + 1) + b"".join(map(_written_by_kio, self))


def _array(items: tuple[Any, ...]) -> bytes:
    return (items if isinstance(items, SharedArray) else SharedArray(items)).content


def require_encodable(entity: Any) -> None:
    """Raises `Unencodable` for what no request can carry: one broker must not keep the others from being sent requests."""
    try:
        _written_by_kio(entity)
    except _UNWRITABLE as error:
        raise Unencodable(f"{entity} cannot be written: {error}") from error


@lru_cache(maxsize=1 << 10)
def _written_by_kio(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()

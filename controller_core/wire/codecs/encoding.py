"""Writes control requests as frames, in pieces: what is the same for all brokers is not copied for each of them.

A full request has tens of megabytes, and nearly all of it is its topics, which are bytes already
(`controller_core.wire.codecs.entries`). Only what stands before and behind them is written for each broker.

The bytes are those of kio's writer; a test holds the two together.
"""

import io
import struct
from functools import lru_cache
from typing import Any, Final

from kio.serial import entity_writer
from kio.serial.errors import SerialError

from controller_core.wire.codecs.entries import NO_TAGGED_FIELDS, EncodedTopics, unsigned_varint
from controller_core.wire.codecs.frames import Unencodable, encode_request, encode_request_header
from controller_core.wire.messages import ControlRequest, LeaderAndIsrRequest, StopReplicaRequest

_LENGTH: Final = struct.Struct(">i")
_LEADER_AND_ISR_START: Final = struct.Struct(">i?iqb")
_START: Final = struct.Struct(">i?iq")
_TYPE_TAG: Final = struct.Struct(">BBBb")
_UNWRITABLE: Final = (SerialError, struct.error, TypeError, AttributeError, ValueError)


def encode_control_request(request: ControlRequest, correlation_id: int, client_id: str) -> bytes:
    """A request as a whole frame, as `frames.encode_request` makes it. Raises `Unencodable`."""
    return b"".join(control_request_pieces(request, correlation_id, client_id))


def control_request_pieces(request: ControlRequest, correlation_id: int, client_id: str) -> list[bytes]:
    """A request as a whole frame, in the pieces that it is made of. Raises `Unencodable`."""
    if isinstance(request.topic_states, EncodedTopics):
        try:
            pieces = [encode_request_header(request, correlation_id, client_id), *_pieces(request)]
        except _UNWRITABLE as error:
            raise Unencodable(f"{type(request).__name__} cannot be written: {error}") from error
        return [_LENGTH.pack(sum(map(len, pieces))), *pieces]
    return [encode_request(request, correlation_id, client_id)]


def _pieces(request: ControlRequest) -> tuple[bytes, bytes, bytes]:
    """What stands before the topics, the topics, and what stands behind them."""
    topics: Any = request.topic_states
    who = request.controller_id, request.is_kraft_controller, request.controller_epoch, request.broker_epoch
    if isinstance(request, LeaderAndIsrRequest):
        start = _LEADER_AND_ISR_START.pack(*who, request.type_)
        return start, topics.content, _array(request.live_leaders) + NO_TAGGED_FIELDS
    if isinstance(request, StopReplicaRequest):
        return _START.pack(*who), topics.content, NO_TAGGED_FIELDS
    tagged = _TYPE_TAG.pack(1, 0, 1, request.type_) if request.type_ else NO_TAGGED_FIELDS
    return _START.pack(*who), topics.content, _array(request.live_brokers) + tagged


@lru_cache(maxsize=64)
def _array(items: tuple[Any, ...]) -> bytes:
    """Brokers, as each request of the same time names them."""
    return unsigned_varint(len(items) + 1) + b"".join(map(_written_by_kio, items))


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

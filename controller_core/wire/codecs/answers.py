"""Answers to control requests, with a fast path for the largest of them.

A broker answers LeaderAndIsr and StopReplica with an error code for each partition: up to 50,000 codes that nearly
always mean success. The fast path checks the bytes, without an object for each code. Only other answers are decoded.
"""

from typing import Final, TypeVar, cast

from kio.schema.errors import ErrorCode

from controller_core.wire.codecs.decoding import decode_array, length_at
from controller_core.wire.codecs.frames import decode_response
from controller_core.wire.codecs.undecoded import Undecoded
from controller_core.wire.messages import (
    RESPONSE_TYPES,
    ControlRequest,
    ControlResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)

NOT_NEWER: Final = ErrorCode.stale_controller_epoch
"""A broker's answer for a partition whose leader epoch it already has, which is fine."""

_CODES_AT: Final = 7
"""After correlation id (4), no tagged fields (1), error code (2)."""
_TOPIC_ID_BYTES: Final = 16
_CODE_BYTES: Final = 7
"""Index (4), error code (2), no tagged fields (1)."""
_WELL: Final = bytes((ErrorCode.none.value, NOT_NEWER.value))
_STOPPED: Final = b"\0\0\0"
"""No error (2), no tagged fields (1)."""

T = TypeVar("T", LeaderAndIsrTopicError, StopReplicaPartitionError)


class GoodCodes(Undecoded[T]):
    """The codes of an answer in which every partition succeeded or was known already. Decoded only on access."""

    __slots__ = ("_content", "_kind")

    def __init__(self, kind: type[T], content: bytes) -> None:
        super().__init__()
        self._kind: type[T] = kind
        self._content = content

    def __repr__(self) -> str:
        return f"GoodCodes({len(self._content)} bytes)"

    def decode(self) -> tuple[T, ...]:
        return decode_array(self._kind, self._content)


def is_all_well(response: LeaderAndIsrResponse | StopReplicaResponse) -> bool:
    """Return True if the fast path found no errors except `NOT_NEWER`. False means only that the codes must be
    checked."""
    codes = response.topics if isinstance(response, LeaderAndIsrResponse) else response.partition_errors
    return isinstance(codes, GoodCodes)


def decode_control_response(request: ControlRequest, content: bytes) -> ControlResponse:
    """Decode the response to a control request from a frame's content. Raises `Undecodable`."""
    if isinstance(request, LeaderAndIsrRequest):
        return decode_leader_and_isr_response(content)
    if isinstance(request, StopReplicaRequest):
        return decode_stop_replica_response(content)
    return decode_response(RESPONSE_TYPES[type(request)], content)


def decode_leader_and_isr_response(content: bytes) -> LeaderAndIsrResponse:
    """Decode a response. Its topics are decoded only if they have errors. Raises `Undecodable`."""
    if content[4:_CODES_AT] == b"\0\0\0" and _is_all_taken(content, _CODES_AT):
        topics = cast("tuple[LeaderAndIsrTopicError, ...]", GoodCodes(LeaderAndIsrTopicError, content[_CODES_AT:-1]))
        return LeaderAndIsrResponse(error_code=ErrorCode.none, topics=topics)
    return decode_response(LeaderAndIsrResponse, content)


def decode_stop_replica_response(content: bytes) -> StopReplicaResponse:
    """Decode a response. Its codes are decoded only if there are errors. Raises `Undecodable`."""
    if content[4:_CODES_AT] == b"\0\0\0" and _is_all_stopped(content, _CODES_AT):
        codes = GoodCodes(StopReplicaPartitionError, content[_CODES_AT:-1])
        return StopReplicaResponse(
            error_code=ErrorCode.none, partition_errors=cast("tuple[StopReplicaPartitionError, ...]", codes)
        )
    return decode_response(StopReplicaResponse, content)


def _is_all_taken(content: bytes, start: int) -> bool:
    """Return True if the rest is an array of topics with only good codes, and without tagged fields."""
    try:
        count, offset = length_at(content, start)
        for _ in range(count):
            codes, offset = length_at(content, offset + _TOPIC_ID_BYTES)
            end = offset + codes * _CODE_BYTES
            # Slices with a step take one byte of every code of a topic: high byte, low byte, tagged fields. `strip`
            # removes the good values, so bytes are left only if a code is bad.
            if (
                content[offset + 4 : end : _CODE_BYTES].strip(b"\0")
                or content[offset + 5 : end : _CODE_BYTES].strip(_WELL)
                or content[offset + 6 : end : _CODE_BYTES].strip(b"\0")
                or content[end]
            ):
                return False
            offset = end + 1
    except IndexError:
        return False
    return content[offset:] == b"\0"


def _is_all_stopped(content: bytes, start: int) -> bool:
    """Return True if the rest is an array of replicas, each with a topic name and no error, and without tagged
    fields."""
    try:
        count, offset = length_at(content, start)
        for _ in range(count):
            length, offset = length_at(content, offset)
            index = offset + length
            content[offset:index].decode()
            offset = index + _CODE_BYTES
            if content[index + 4 : offset] != _STOPPED:
                return False
    except (IndexError, UnicodeDecodeError):
        return False
    return content[offset:] == b"\0"

"""Answers to control requests, and a quick look at the largest of them.

A broker answers LeaderAndIsr and StopReplica with an error code for each partition: 50,000 codes that nearly always say
that all is well. That is seen from the bytes, without an object for each code; where anything else stands there, the answer
is decoded.
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
"""What a broker answers for a partition whose leader epoch it has already: it is as it should be."""

_CODES_AT: Final = 7
"""Behind correlation id (4), no tagged fields (1), error code (2)."""
_TOPIC_ID_BYTES: Final = 16
_CODE_BYTES: Final = 7
"""Index (4), error code (2), no tagged fields (1)."""
_WELL: Final = bytes((ErrorCode.none.value, NOT_NEWER.value))
_STOPPED: Final = b"\0\0\0"
"""No error (2), no tagged fields (1)."""

T = TypeVar("T", LeaderAndIsrTopicError, StopReplicaPartitionError)


class GoodCodes(Undecoded[T]):
    """The codes of an answer in which every partition was taken, or was known already."""

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
    """Whether it is known, without a look at each code, that nothing is wrong: `none`, or to LeaderAndIsr `NOT_NEWER`."""
    codes = response.topics if isinstance(response, LeaderAndIsrResponse) else response.partition_errors
    return isinstance(codes, GoodCodes)


def decode_control_response(request: ControlRequest, content: bytes) -> ControlResponse:
    """The response to a control request, from a frame's content. Raises `Undecodable`."""
    if isinstance(request, LeaderAndIsrRequest):
        return decode_leader_and_isr_response(content)
    if isinstance(request, StopReplicaRequest):
        return decode_stop_replica_response(content)
    return decode_response(RESPONSE_TYPES[type(request)], content)


def decode_leader_and_isr_response(content: bytes) -> LeaderAndIsrResponse:
    """The response in a frame's content, its topics decoded only where something is wrong. Raises `Undecodable`."""
    if content[4:_CODES_AT] == b"\0\0\0" and _is_all_taken(content, _CODES_AT):
        topics = cast("tuple[LeaderAndIsrTopicError, ...]", GoodCodes(LeaderAndIsrTopicError, content[_CODES_AT:-1]))
        return LeaderAndIsrResponse(error_code=ErrorCode.none, topics=topics)
    return decode_response(LeaderAndIsrResponse, content)


def decode_stop_replica_response(content: bytes) -> StopReplicaResponse:
    """The response in a frame's content, its codes decoded only where something is wrong. Raises `Undecodable`."""
    if content[4:_CODES_AT] == b"\0\0\0" and _is_all_stopped(content, _CODES_AT):
        codes = GoodCodes(StopReplicaPartitionError, content[_CODES_AT:-1])
        return StopReplicaResponse(
            error_code=ErrorCode.none, partition_errors=cast("tuple[StopReplicaPartitionError, ...]", codes)
        )
    return decode_response(StopReplicaResponse, content)


def _is_all_taken(content: bytes, start: int) -> bool:
    """Whether this is an array of topics with nothing but good codes, and no tagged fields there and behind it."""
    try:
        count, offset = length_at(content, start)
        for _ in range(count):
            codes, offset = length_at(content, offset + _TOPIC_ID_BYTES)
            end = offset + codes * _CODE_BYTES
            # High byte, low byte and tagged fields of all codes of a topic; `strip` leaves what is none of the given bytes.
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
    """Whether this is an array of replicas without an error, each with its topic's name, and no tagged fields behind it."""
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

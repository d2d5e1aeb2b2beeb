"""Answers to control requests, and a quick look at the largest of them.

A broker answers LeaderAndIsr with an error code for each partition: 50,000 codes that nearly always say that all is well.
That is seen from the bytes, without an object for each code; where anything else stands there, the answer is decoded.
"""

from typing import Final, cast

from kio.schema.errors import ErrorCode

from controller_core.wire.decoding import decode_array
from controller_core.wire.frames import decode_response
from controller_core.wire.messages import (
    RESPONSE_TYPES,
    ControlRequest,
    ControlResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from controller_core.wire.undecoded import Undecoded

NOT_NEWER: Final = ErrorCode.stale_controller_epoch
"""What a broker answers for a partition whose leader epoch it has already: it is as it should be."""

_HEADER_BYTES: Final = 5
"""Correlation id and no tagged fields."""
_TOPIC_ID_BYTES: Final = 16
_CODE_BYTES: Final = 7
"""Index (4), error code (2), no tagged fields (1)."""
_MOST_LENGTH_BYTES: Final = 5
_WELL: Final = bytes((ErrorCode.none.value, NOT_NEWER.value))


class TakenPartitions(Undecoded[LeaderAndIsrTopicError]):
    """The topics of an answer in which every partition was taken, or was known already."""

    __slots__ = ("_content",)

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self._content = content

    def __repr__(self) -> str:
        return f"TakenPartitions({len(self._content)} bytes)"

    def decode(self) -> tuple[LeaderAndIsrTopicError, ...]:
        return decode_array(LeaderAndIsrTopicError, self._content)


def is_all_well(response: LeaderAndIsrResponse) -> bool:
    """Whether it is known, without a look at each code, that there are none but `none` and `NOT_NEWER`."""
    return isinstance(response.topics, TakenPartitions)


def decode_control_response(request: ControlRequest, content: bytes) -> ControlResponse:
    """The response to a control request, from a frame's content. Raises `Undecodable`."""
    if isinstance(request, LeaderAndIsrRequest):
        return decode_leader_and_isr_response(content)
    return decode_response(RESPONSE_TYPES[type(request)], content)


def decode_leader_and_isr_response(content: bytes) -> LeaderAndIsrResponse:
    """The response in a frame's content, its topics decoded only where something is wrong. Raises `Undecodable`."""
    start = _HEADER_BYTES + 2
    if content[4:start] == b"\0\0\0" and _is_all_well(content, start):
        topics = cast("tuple[LeaderAndIsrTopicError, ...]", TakenPartitions(content[start:-1]))
        return LeaderAndIsrResponse(error_code=ErrorCode.none, topics=topics)
    return decode_response(LeaderAndIsrResponse, content)


def _is_all_well(content: bytes, start: int) -> bool:
    """Whether this is an array of topics with nothing but good codes, and no tagged fields there and behind it."""
    try:
        count, offset = _length(content, start)
        for _ in range(count):
            codes, offset = _length(content, offset + _TOPIC_ID_BYTES)
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


def _length(content: bytes, offset: int) -> tuple[int, int]:
    """The length of a compact array, and the offset behind it. Raises `IndexError` where there is none."""
    value = 0
    for place in range(_MOST_LENGTH_BYTES):
        byte = content[offset + place]
        value |= (byte & 0x7F) << 7 * place
        if byte <= 0x7F and value > 0:
            return value - 1, offset + place + 1
    raise IndexError

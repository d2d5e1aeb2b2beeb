"""Scans a segment whose end may be damaged, and truncates it after its last whole batch.

A batch is whole if its header is valid, it follows the previous batch, all its bytes are there, and its CRC is right. A
whole message of an older format is never cut off: it raises `UnsupportedFormat`.
"""

import struct
import zlib
from typing import Final

import structlog

from controller_core.wire.crc32c import crc32c
from replica_broker.log.errors import CorruptBatch, LogError, UnsupportedFormat
from replica_broker.log.record_batches import CRC_FROM, HEADER_BYTES, INT32_MAX, RecordBatch, read_header
from replica_broker.log.segments.segment import Segment

log = structlog.get_logger()

_PIECE_BYTES: Final = 1 << 20
_OLD_HEADER: Final = struct.Struct(">qiI")
_OLD_CRC_FROM: Final = 16


def recover(segment: Segment) -> bool:
    """Truncate a segment after its last whole batch and rebuild its indexes. Return True if something was cut.

    Raises `UnsupportedFormat` if it has messages of an older format.
    """
    segment.indexes.forget()
    position, next_offset = 0, segment.base_offset
    while position < segment.size_bytes:
        try:
            batch = _whole_batch_at(segment, position, next_offset)
        except LogError as error:
            if isinstance(error, UnsupportedFormat) and _is_whole_old_message(segment, position):
                raise
            log.warning(
                "segment is truncated after its last whole batch",
                segment=str(segment.path),
                next_offset=next_offset,
                cut_bytes=segment.size_bytes - position,
                reason=str(error),
            )
            break
        segment.indexes.add(batch, position)
        position, next_offset = batch.end, batch.next_offset
    segment.next_offset = next_offset
    is_cut = position < segment.size_bytes
    if is_cut:
        segment.cut(position, next_offset)
    return is_cut


def _whole_batch_at(segment: Segment, position: int, least_offset: int) -> RecordBatch:
    batch = read_header(segment.read_at(position, HEADER_BYTES), at=position)
    if batch.base_offset < least_offset or batch.last_offset - segment.base_offset > INT32_MAX:
        raise CorruptBatch(f"offset {batch.base_offset} does not follow {least_offset}")
    if batch.end > segment.size_bytes:
        raise CorruptBatch(f"only {segment.size_bytes - position} of {batch.size_bytes} bytes are there")
    crc = 0
    for start in range(position + CRC_FROM, batch.end, _PIECE_BYTES):
        crc = crc32c(segment.read_at(start, min(_PIECE_BYTES, batch.end - start)), crc)
    if crc != batch.crc:
        raise CorruptBatch(
            f"the batch at offset {batch.base_offset} says CRC {batch.crc:#010x}, but its bytes have {crc:#010x}"
        )
    return batch


def _is_whole_old_message(segment: Segment, position: int) -> bool:
    header = segment.read_at(position, _OLD_CRC_FROM)
    if len(header) < _OLD_CRC_FROM:
        return False
    length: int
    crc: int
    _, length, crc = _OLD_HEADER.unpack(header)
    end = position + _OLD_HEADER.size - 4 + length
    if end <= position + _OLD_CRC_FROM or end > segment.size_bytes:
        return False
    found = 0
    for start in range(position + _OLD_CRC_FROM, end, _PIECE_BYTES):
        found = zlib.crc32(segment.read_at(start, min(_PIECE_BYTES, end - start)), found)
    return found == crc

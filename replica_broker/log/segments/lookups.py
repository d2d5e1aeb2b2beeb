"""Lookups of records by timestamp.

The indexes find the batch, and only that one is decompressed.
"""

from collections.abc import Iterator
from typing import NamedTuple

from replica_broker.log.compression import decompress
from replica_broker.log.errors import CorruptBatch
from replica_broker.log.record_batches import HEADER_BYTES, Compression, RecordBatch
from replica_broker.log.records import RecordTime, read_record_times
from replica_broker.log.segments.segment import Segment
from replica_broker.log.segments.segments import Segments


class TimestampedOffset(NamedTuple):
    offset: int
    timestamp_ms: int


def find_record(segments: Segments, timestamp_ms: int, start: int, below: int) -> TimestampedOffset | None:
    """Return the first record from `start` to before `below` with this timestamp or a later one.

    Raises `CorruptBatch`.
    """
    for segment in segments.list_from(start):
        if segment.base_offset >= below:
            break
        if segment.latest.timestamp_ms < timestamp_ms:
            continue
        from_offset = max(segment.indexes.offset_before(timestamp_ms), start)
        for batch in _batches(segment, from_offset, below):
            if batch.max_timestamp_ms >= timestamp_ms:
                for found in _times(segment, batch, start):
                    if found.timestamp_ms >= timestamp_ms and start <= found.offset < below:
                        return TimestampedOffset(found.offset, found.timestamp_ms)
    return None


def find_latest_record(segments: Segments, start: int, below: int) -> TimestampedOffset | None:
    """Return the first record with the largest timestamp from `start` to before `below`; None if no record has one."""
    best: TimestampedOffset | None = None
    for segment in segments.list_from(start):
        if segment.base_offset >= below:
            break
        if best is not None and segment.latest.timestamp_ms <= best.timestamp_ms:
            continue
        # The index has the largest timestamp of the whole segment only.
        is_whole = segment.next_offset <= below and segment.base_offset >= start
        from_offset = segment.latest.offset if is_whole else start
        for batch in _batches(segment, from_offset, below):
            if batch.max_timestamp_ms > (best.timestamp_ms if best else -1):
                best = _latest_in(segment, batch, start, below) or best
    return best


def _latest_in(segment: Segment, batch: RecordBatch, start: int, below: int) -> TimestampedOffset | None:
    times = [time for time in _times(segment, batch, start) if start <= time.offset < below and time.timestamp_ms >= 0]
    if not times:
        return None
    latest = max(times, key=lambda time: (time.timestamp_ms, -time.offset))
    return TimestampedOffset(latest.offset, latest.timestamp_ms)


def _batches(segment: Segment, from_offset: int, below: int) -> Iterator[RecordBatch]:
    first = segment.find_batch(from_offset)
    if first is not None:
        for batch in segment.batches(first.position):
            if batch.base_offset >= below:
                return
            yield batch


def _times(segment: Segment, batch: RecordBatch, start: int) -> Iterator[RecordTime]:
    of_header = RecordTime(max(batch.base_offset, start), batch.max_timestamp_ms)
    if batch.has_log_append_time:
        return iter([of_header])
    body = segment.read_at(batch.position + HEADER_BYTES, batch.size_bytes - HEADER_BYTES)
    if batch.compression is Compression.NONE:
        return read_record_times(batch, body)
    try:
        return iter(list(read_record_times(batch, decompress(batch.compression, body))))
    except CorruptBatch:
        # A leader accepts compressed records without reading them. If they are unreadable, the answer is the first
        # offset of their batch: it hides no later records, and a consumer that reads from there misses nothing.
        return iter([of_header])

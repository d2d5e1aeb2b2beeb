"""Lookups of records by timestamp.

The indexes find the batch, and only that one is decompressed. A lookup runs in one turn of the event loop, and producers
choose the sizes of batches. So a batch with too many records, or too large ones, is not read: its header answers, with
the batch's first offset. Such an answer hides no later records, and a consumer that reads from there misses nothing.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from replica_broker.log.compression import decompress
from replica_broker.log.errors import CorruptBatch
from replica_broker.log.record_batches import HEADER_BYTES, NO_TIMESTAMP, Compression, RecordBatch
from replica_broker.log.records import RecordTime, read_record_times
from replica_broker.log.segments.segment import Segment
from replica_broker.log.segments.segments import Segments

_MOST_RECORDS: Final = 250_000
"""Records of a batch that a lookup reads, a part of a second of work."""
_MOST_BYTES: Final = 32 << 20
"""Bytes of a decompressed batch that a lookup reads."""
_MOST_BATCHES: Final = 8
"""Batches that a lookup reads. More than two have a timestamp in their header that none of their records has."""


class TimestampedOffset(NamedTuple):
    offset: int
    timestamp_ms: int


def find_record(segments: Segments, timestamp_ms: int, start: int, below: int) -> TimestampedOffset | None:
    """Return the first record from `start` to before `below` with this timestamp or a later one.

    Raises `CorruptBatch`.
    """
    read = 0
    for segment in segments.list_from(start):
        if segment.base_offset >= below:
            break
        if segment.latest.timestamp_ms < timestamp_ms:
            continue
        from_offset = max(segment.indexes.offset_before(timestamp_ms), start)
        for batch in _batches(segment, from_offset, below):
            if batch.max_timestamp_ms >= timestamp_ms:
                if read == _MOST_BATCHES:
                    return TimestampedOffset(max(batch.base_offset, start), batch.max_timestamp_ms)
                read += 1
                for found in _times(segment, batch, start):
                    if found.timestamp_ms >= timestamp_ms and start <= found.offset < below:
                        return TimestampedOffset(found.offset, found.timestamp_ms)
    return None


def find_latest_record(segments: Segments, start: int, below: int) -> TimestampedOffset | None:
    """Return the first record with the largest timestamp from `start` to before `below`; None if no record has one."""
    best: TimestampedOffset | None = None
    best_ms = NO_TIMESTAMP
    unread: tuple[Segment, RecordBatch] | None = None
    for segment in segments.list_from(start):
        if segment.base_offset >= below:
            break
        if segment.latest.timestamp_ms <= best_ms:
            continue
        # The index has the largest timestamp of the whole segment only.
        is_whole = segment.next_offset <= below and segment.base_offset >= start
        from_offset = segment.latest.offset if is_whole else start
        for batch in _batches(segment, from_offset, below):
            if batch.max_timestamp_ms <= best_ms:
                continue
            if start <= batch.base_offset and batch.last_offset < below:
                best_ms, unread = batch.max_timestamp_ms, (segment, batch)
            elif (found := _latest_in(segment, batch, start, below)) is not None and found.timestamp_ms > best_ms:
                best, best_ms, unread = found, found.timestamp_ms, None
    return best if unread is None else _latest_in(*unread, start, below)


def _latest_in(segment: Segment, batch: RecordBatch, start: int, below: int) -> TimestampedOffset | None:
    latest = max(
        (time for time in _times(segment, batch, start) if start <= time.offset < below and time.timestamp_ms >= 0),
        key=lambda time: (time.timestamp_ms, -time.offset),
        default=None,
    )
    return None if latest is None else TimestampedOffset(latest.offset, latest.timestamp_ms)


def _batches(segment: Segment, from_offset: int, below: int) -> Iterator[RecordBatch]:
    first = segment.find_batch(from_offset)
    if first is not None:
        for batch in segment.batches(first.position):
            if batch.base_offset >= below:
                return
            yield batch


def _times(segment: Segment, batch: RecordBatch, start: int) -> Iterator[RecordTime]:
    of_header = RecordTime(max(batch.base_offset, start), batch.max_timestamp_ms)
    if batch.has_log_append_time or batch.records_count > _MOST_RECORDS:
        yield of_header
        return
    body = segment.read_at(batch.position + HEADER_BYTES, batch.size_bytes - HEADER_BYTES)
    if batch.compression is Compression.NONE:
        yield from read_record_times(batch, body)
        return
    try:
        yield from read_record_times(batch, decompress(batch.compression, body, most_bytes=_MOST_BYTES))
    except CorruptBatch:
        # A leader accepts compressed records without reading them, so they may be unreadable.
        yield of_header

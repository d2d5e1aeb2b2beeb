"""Time limits of segments: when a new one must begin, and which ones retention deletes."""

from replica_broker.log.config import LogConfig
from replica_broker.log.record_batches import RecordBatch
from replica_broker.log.segments.segment import Segment
from replica_broker.log.segments.segments import Segments


def is_old(segment: Segment, config: LogConfig, batch: RecordBatch, now_ms: int) -> bool:
    """Return True if the segment is too old for another batch, by the batches' timestamps or else by the clock."""
    if not segment.size_bytes:
        return False
    first_ms = segment.first_timestamp_ms
    if first_ms is not None and batch.max_timestamp_ms >= 0:
        return batch.max_timestamp_ms - first_ms > config.segment_ms
    return now_ms - segment.created_ms > config.segment_ms


def count_to_delete(segments: Segments, config: LogConfig, now_ms: int, high_watermark: int) -> int:
    """Return the number of first segments to delete, all wholly below the high watermark.

    Each is too old, or the log is large enough without it. The active segment is deleted only if it is too old. Nothing
    is deleted unless `cleanup.policy` has `delete`.
    """
    if not config.is_deleted:
        return 0
    count, left_bytes = 0, segments.size_bytes
    for segment in segments:
        is_active = segment is segments.active
        if segment.next_offset > high_watermark or (is_active and not segment.size_bytes):
            break
        last_ms = segment.latest.timestamp_ms if segment.latest.timestamp_ms >= 0 else segment.created_ms
        is_too_old = config.retention_ms is not None and now_ms - last_ms > config.retention_ms
        left_bytes -= segment.size_bytes
        is_too_much = config.retention_bytes is not None and left_bytes >= config.retention_bytes and not is_active
        if not is_too_old and not is_too_much:
            break
        count += 1
    return count

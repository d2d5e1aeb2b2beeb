"""Batches are written into the last segment, and into new ones where it has no room or is too old for them."""

from collections.abc import Sequence

from replica_broker.log.config import LogConfig
from replica_broker.log.record_batches import RecordBatch
from replica_broker.log.segments.retention import is_old
from replica_broker.log.segments.segments import Segments


def write(segments: Segments, data: bytes, batches: Sequence[RecordBatch], config: LogConfig, now_ms: int) -> None:
    """Writes batches, which are all that the bytes are: at once what goes into one segment."""
    view, pending = memoryview(data), list[RecordBatch]()
    for batch in batches:
        pending_bytes = batch.position - pending[0].position if pending else 0
        active = segments.active
        if not active.has_room(batch, pending_bytes, config.segment_bytes) or is_old(active, config, batch, now_ms):
            _write(segments, view, pending)
            pending = []
            segments.begin_for(batch, now_ms)
        pending.append(batch)
    _write(segments, view, pending)


def _write(segments: Segments, view: memoryview, batches: list[RecordBatch]) -> None:
    if batches:
        segments.active.append(view[batches[0].position : batches[-1].end], batches)

"""Writes batches into the active segment, and into new ones when it is full or too old.

The producer states are updated between the segments, so that the snapshot at a segment's start is exact.
"""

from collections.abc import Sequence

from replica_broker.log.config import LogConfig
from replica_broker.log.producers.kept import KeptProducers
from replica_broker.log.record_batches import RecordBatch
from replica_broker.log.segments.retention import is_old
from replica_broker.log.segments.segments import Segments


def write(
    segments: Segments,
    producers: KeptProducers,
    data: bytes,
    batches: Sequence[RecordBatch],
    config: LogConfig,
    now_ms: int,
) -> None:
    """Write the batches, with one write for each segment."""
    view, pending = memoryview(data), list[RecordBatch]()
    for batch in batches:
        pending_bytes = batch.position - pending[0].position if pending else 0
        active = segments.active
        if not active.has_room(batch, pending_bytes, config.segment_bytes) or is_old(active, config, batch, now_ms):
            _write(segments, producers, view, pending)
            pending = []
            producers.take_snapshot(segments.begin_for(batch, now_ms).base_offset)
        pending.append(batch)
    _write(segments, producers, view, pending)


def _write(segments: Segments, producers: KeptProducers, view: memoryview, batches: list[RecordBatch]) -> None:
    if batches:
        segments.active.append(view[batches[0].position : batches[-1].end], batches)
    for batch in batches:
        producers.states.learn(batch)

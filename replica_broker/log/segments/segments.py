"""The segments of a log in order.

There is always at least one, and the last one is the active segment. A segment is named by its first offset, so each
begins where the previous one ends.
"""

from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter

import structlog

from replica_broker.disk.disk import Disk, DiskPath
from replica_broker.log.errors import LogError
from replica_broker.log.record_batches import INT32_MAX, RecordBatch
from replica_broker.log.segments.segment import Segment

log = structlog.get_logger()


class Segments:
    """The segments of one log.

    Methods may raise `DiskError`, and `CorruptBatch` if a file has anything except batches.
    """

    def __init__(self, disk: Disk, folder: DiskPath, found: list[Segment], *, index_interval_bytes: int) -> None:
        self._disk = disk
        self._folder = folder
        self._index_interval_bytes = index_interval_bytes
        self._all = found

    def __iter__(self) -> Iterator[Segment]:
        return iter(tuple(self._all))

    def __len__(self) -> int:
        return len(self._all)

    @property
    def first(self) -> Segment:
        return self._all[0]

    @property
    def active(self) -> Segment:
        return self._all[-1]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._all)

    def list_from(self, offset: int) -> list[Segment]:
        """Return the segment that may have the offset, and all later ones."""
        return self._all[max(bisect_right(self._all, offset, key=attrgetter("base_offset")) - 1, 0) :]

    def batches(self, *, from_offset: int = 0) -> Iterator[RecordBatch]:
        """Yield the headers of all batches that do not end before the offset.

        The rest of a segment after a damaged batch is skipped, with an error in the log.
        """
        for segment in self.list_from(from_offset):
            try:
                first = segment.find_batch(from_offset)
                if first is not None:
                    yield from segment.batches(first.position)
            except LogError as error:
                log.error("segment is unreadable from some point on", segment=str(segment.path), reason=str(error))

    def read(self, offset: int, max_bytes: int, below: int) -> bytes:
        """Return whole batches of one segment, from the batch with the offset or the next one on."""
        for segment in self.list_from(offset):
            if segment.base_offset >= below:
                break
            if data := segment.read(offset, max_bytes, below):
                return data
        return b""

    def begin(self, base_offset: int, now_ms: int) -> Segment:
        """Begin a new segment and write the indexes of the previous one.

        A flush of the log also flushes the previous segment.
        """
        if self._all:
            self.active.indexes.seal()
        segment = self.make_segment(base_offset, now_ms)
        self._disk.flush_folder(self._folder)
        self._all.append(segment)
        return segment

    def begin_for(self, batch: RecordBatch, now_ms: int) -> Segment:
        """Begin a segment for the batch, at the end of the previous one.

        If the batch is too far from that offset for the index, the segment begins at the batch.
        """
        base_offset = self.active.next_offset
        if batch.last_offset - base_offset > INT32_MAX:
            base_offset = batch.base_offset
        # An empty segment has the file name of the new one, or a base offset too far from the batch.
        if not self.active.size_bytes:
            self._remove_last()
        return self.begin(base_offset, now_ms)

    def make_segment(self, base_offset: int, now_ms: int) -> Segment:
        return Segment(
            self._disk, self._folder, base_offset, index_interval_bytes=self._index_interval_bytes, created_ms=now_ms
        )

    def cut(self, offset: int) -> None:
        """Truncate at the start of the batch with the offset. The last segments go first, so that there is never a gap."""
        while len(self._all) > 1 and self.active.base_offset >= offset:
            self._remove_last()
        batch = self.active.find_batch(offset)
        if batch is not None:
            self.active.cut(batch.position, batch.base_offset)

    def restart(self, offset: int, now_ms: int) -> None:
        """Remove all segments and begin one at the offset."""
        while self._all:
            self._remove_last()
        self.begin(offset, now_ms)

    def remove_first(self) -> Segment:
        """Remove the oldest segment, which is never the only one."""
        segment = self._all.pop(0)
        segment.remove()
        return segment

    def close(self) -> None:
        for segment in self._all:
            segment.close()

    def _remove_last(self) -> None:
        segment = self._all.pop()
        segment.remove()
        self._disk.flush_folder(self._folder)

"""A segment: a file of record batches, and its indexes.

A lookup starts at the position from the index and reads headers from there. If the position is wrong, because the index
is damaged, the lookup notices it and rebuilds the index. A read is never larger than the caller's limit.
"""

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Final

import structlog

from replica_broker.disk.disk import Disk, DiskPath
from replica_broker.log.config import MOST_SEGMENT_BYTES
from replica_broker.log.errors import CorruptBatch, UnsupportedFormat
from replica_broker.log.record_batches import (
    HEADER_BYTES,
    INT32_MAX,
    RecordBatch,
    drop_partial_batch,
    read_extent,
    read_header,
)
from replica_broker.log.segments.indexes import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, Indexes, Latest

log = structlog.get_logger()

LOG_SUFFIX: Final = ".log"
ABORTED_SUFFIX: Final = ".txnindex"
"""Kafka's index of aborted transactions. A stock broker may have written it, and may need it later."""
SUFFIXES: Final = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, ABORTED_SUFFIX)
"""Suffixes of the files of one segment."""
_MOST_READ_BYTES: Final = 64 << 20
"""Limit of one read, whatever the caller's limit is; a single batch may be larger."""
_WINDOW_BYTES: Final = 16 << 10
"""Size of a read in a search for headers."""


class Segment:
    """One segment. Its methods may raise `DiskError`, and `CorruptBatch` if the file has anything except batches."""

    def __init__(
        self, disk: Disk, folder: DiskPath, base_offset: int, *, index_interval_bytes: int, created_ms: int
    ) -> None:
        self.path = PurePath(folder) / f"{base_offset:020d}{LOG_SUFFIX}"
        self.base_offset = base_offset
        self.next_offset = base_offset
        """The offset after its last batch."""
        self.created_ms = created_ms
        """The time of the creation or opening; the segment's age counts from it if no batch has a timestamp."""
        self.indexes = Indexes(disk, folder, base_offset, interval_bytes=index_interval_bytes)
        self._disk = disk
        self._file = disk.open(self.path)
        self._first_timestamp_ms: int | None = None

    @property
    def size_bytes(self) -> int:
        return self._file.size

    @property
    def latest(self) -> Latest:
        return self.indexes.latest

    @property
    def first_timestamp_ms(self) -> int | None:
        """The largest timestamp of the first batch, from which a segment's age counts; None if it has none."""
        if self._first_timestamp_ms is None and self._file.size:
            self._first_timestamp_ms = read_header(self._file.read(0, HEADER_BYTES)).max_timestamp_ms
        return self._first_timestamp_ms if (self._first_timestamp_ms or -1) >= 0 else None

    def has_room(self, batch: RecordBatch, pending_bytes: int, segment_bytes: int) -> bool:
        """Return True if the batch fits after the pending ones.

        An empty segment takes any batch that its indexes can count.
        """
        if batch.last_offset - self.base_offset > INT32_MAX:
            return False
        size_bytes = self._file.size + pending_bytes
        return not size_bytes or size_bytes + batch.size_bytes <= min(segment_bytes, MOST_SEGMENT_BYTES)

    def append(self, data: memoryview, batches: Sequence[RecordBatch]) -> None:
        """Write batches. Their positions count from the first one."""
        position = self._file.size - batches[0].position
        self._file.append(data)
        for batch in batches:
            self.indexes.add(batch, position + batch.position)
        self.next_offset = batches[-1].next_offset

    def batches(self, position: int = 0) -> Iterator[RecordBatch]:
        """Yield the headers of the batches from a position on. Raises `CorruptBatch`, `UnsupportedFormat`."""
        window, start = b"", position
        while position < self._file.size:
            if position + HEADER_BYTES > start + len(window):
                window, start = self._file.read(position, _WINDOW_BYTES), position
            batch = read_header(window, position - start, at=position)
            self._require_whole(batch)
            if not self.base_offset <= batch.base_offset <= batch.last_offset <= self.base_offset + INT32_MAX:
                raise CorruptBatch(f"{self.path} has a batch at offset {batch.base_offset}")
            yield batch
            position = batch.end

    def find_batch(self, offset: int) -> RecordBatch | None:
        """Return the first batch that does not end before the offset. Raises `CorruptBatch`."""
        position = self._position_at_or_before(offset)
        window, start = b"", position
        while position < self._file.size:
            if position + HEADER_BYTES > start + len(window):
                window, start = self._file.read(position, _WINDOW_BYTES), position
            extent = read_extent(window, position - start)
            if extent.last_offset >= offset:
                batch = read_header(window, position - start, at=position)
                self._require_whole(batch)
                return batch
            position += extent.size_bytes
        return None

    def read(self, offset: int, max_bytes: int, below: int) -> bytes:
        """Return whole batches that start before `below`, from the batch with the offset or the next one on."""
        first = self.find_batch(offset)
        if first is None or first.base_offset >= below:
            return b""
        at_most = max(min(max_bytes, _MOST_READ_BYTES), first.size_bytes)
        wanted = min(at_most, self._end_below(below) - first.position)
        return drop_partial_batch(self._file.read(first.position, wanted))

    def read_at(self, position: int, length: int) -> bytes:
        return self._file.read(position, length)

    def find_end(self) -> None:
        """Find the last offset and the largest timestamp.

        Raises `CorruptBatch` if the segment does not end with a whole batch.
        """
        last = self.indexes.begin_recall()
        position = self._position_at_or_before(last.last_offset) if last else 0
        self.next_offset = self.base_offset
        self.indexes.begin_recall()
        for batch in self.batches(position):
            self.indexes.recall(batch)
            self.next_offset = batch.next_offset

    def cut(self, position: int, next_offset: int) -> None:
        """Truncate the segment durably at a position, which is the start of a batch with that offset."""
        self._first_timestamp_ms = None
        self.indexes.cut(next_offset)
        self._file.truncate(position)
        self._file.flush()
        self.find_end()

    def rebuild_indexes(self) -> None:
        """Rebuild the indexes from all readable headers."""
        self.indexes.forget()
        try:
            for batch in self.batches():
                self.indexes.add(batch, batch.position)
        except (CorruptBatch, UnsupportedFormat) as error:
            log.error("segment has bytes that are not batches", segment=str(self.path), reason=str(error))

    def has_valid_indexes(self) -> bool:
        """Return True if the indexes exist and their largest timestamp is right.

        Other errors are noticed when they are used.
        """
        if not self.indexes.are_there():
            return not self.size_bytes
        try:
            batch = self.find_batch(self.latest.offset)
        except CorruptBatch:
            return False
        return batch is not None and batch.max_timestamp_ms == self.latest.timestamp_ms

    def flush(self) -> None:
        """Flush the segment.

        The indexes of the last segment are written when it is sealed; after a crash they are rebuilt.
        """
        self._file.flush()
        self.indexes.flush()

    def close(self) -> None:
        self._file.close()
        self.indexes.close()

    def remove(self) -> None:
        """Remove the files. The batches go first: an index without a segment is removed when the log is opened."""
        self._file.close()
        self._disk.remove(self.path)
        self._disk.remove(self.path.with_suffix(ABORTED_SUFFIX))
        self.indexes.remove()

    def _end_below(self, below: int) -> int:
        """Return the position of the first batch that starts at an offset or after it."""
        if below >= self.next_offset or (batch := self.find_batch(below)) is None:
            return self._file.size
        return batch.end if batch.base_offset < below else batch.position

    def _position_at_or_before(self, offset: int) -> int:
        entry = self.indexes.floor(offset)
        if entry is not None and not self._is_batch_up_to(entry.position, entry.last_offset):
            log.warning("damaged index is rebuilt", segment=str(self.path))
            self.rebuild_indexes()
            entry = self.indexes.floor(offset)
        return entry.position if entry else 0

    def _is_batch_up_to(self, position: int, last_offset: int) -> bool:
        try:
            extent = read_extent(self._file.read(position, HEADER_BYTES) if position >= 0 else b"", 0)
        except CorruptBatch:
            return False
        return self.base_offset <= extent.base_offset and extent.last_offset <= last_offset

    def _require_whole(self, batch: RecordBatch) -> None:
        if batch.end > self._file.size:
            raise CorruptBatch(f"{self.path} ends within the batch at offset {batch.base_offset}")

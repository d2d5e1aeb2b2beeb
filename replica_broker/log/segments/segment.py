"""A segment: a file of record batches, and its indexes.

Whoever looks for an offset begins where the index says and reads headers from there. An index that leads astray, as one of
garbage may, is noticed by what is found there, and made anew. Nothing reads more of a file at once than was asked for.
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
    read_extent,
    read_header,
    whole_batches,
)
from replica_broker.log.segments.indexes import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, Indexes, Latest

log = structlog.get_logger()

LOG_SUFFIX: Final = ".log"
ABORTED_SUFFIX: Final = ".txnindex"
"""Which transactions were aborted, as a stock broker wrote it for its own later use."""
SUFFIXES: Final = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, ABORTED_SUFFIX)
"""Of the files of one segment."""
_MOST_READ_BYTES: Final = 64 << 20
"""Of batches at once, whatever is asked for; a single batch may have more."""
_WINDOW_BYTES: Final = 16 << 10
"""How much is read at once where headers are looked for."""


class Segment:
    """One segment. Its methods may raise `DiskError`, and `CorruptBatch` where the file has something else than batches."""

    def __init__(
        self, disk: Disk, folder: DiskPath, base_offset: int, *, index_interval_bytes: int, created_ms: int
    ) -> None:
        self.path = PurePath(folder) / f"{base_offset:020d}{LOG_SUFFIX}"
        self.base_offset = base_offset
        self.next_offset = base_offset
        """The offset that follows its last batch."""
        self.created_ms = created_ms
        """When it was made, or opened: its age where no batch says a time."""
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
        """The latest time of the first batch, from which the age of a segment counts; None where it says none."""
        if self._first_timestamp_ms is None and self._file.size:
            self._first_timestamp_ms = read_header(self._file.read(0, HEADER_BYTES)).max_timestamp_ms
        return self._first_timestamp_ms if (self._first_timestamp_ms or -1) >= 0 else None

    def has_room(self, batch: RecordBatch, pending_bytes: int, segment_bytes: int) -> bool:
        """Whether it may have a batch behind what is pending for it; an empty one takes whatever its indexes can count."""
        if batch.last_offset - self.base_offset > INT32_MAX:
            return False
        size_bytes = self._file.size + pending_bytes
        return not size_bytes or size_bytes + batch.size_bytes <= min(segment_bytes, MOST_SEGMENT_BYTES)

    def append(self, data: memoryview, batches: Sequence[RecordBatch]) -> None:
        """Writes batches, which are all that the bytes are; where they lie in them counts from the first."""
        position = self._file.size - batches[0].position
        self._file.append(data)
        for batch in batches:
            self.indexes.add(batch, position + batch.position)
        self.next_offset = batches[-1].next_offset

    def batches(self, position: int = 0) -> Iterator[RecordBatch]:
        """The batches from a position on, by their headers. Raises `CorruptBatch`, `UnsupportedFormat`."""
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

    def batch_of(self, offset: int) -> RecordBatch | None:
        """The first batch that does not end before the offset. Raises `CorruptBatch`."""
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
        """Whole batches from the one that has the offset, or the next one; none that begins at `below` or behind it."""
        first = self.batch_of(offset)
        if first is None or first.base_offset >= below:
            return b""
        at_most = max(min(max_bytes, _MOST_READ_BYTES), first.size_bytes)
        wanted = min(at_most, self._end_below(below) - first.position)
        return whole_batches(self._file.read(first.position, wanted))

    def read_at(self, position: int, length: int) -> bytes:
        return self._file.read(position, length)

    def find_end(self) -> None:
        """Learns the last offset and the latest time. Raises `CorruptBatch` where it does not end with a whole batch."""
        last = self.indexes.begin_recall()
        position = self._position_at_or_before(last.last_offset) if last else 0
        self.next_offset = self.base_offset
        self.indexes.begin_recall()
        for batch in self.batches(position):
            self.indexes.recall(batch)
            self.next_offset = batch.next_offset

    def cut(self, position: int, next_offset: int) -> None:
        """Takes away what stands at a position and behind it, which begins with an offset. It does not come back."""
        self._first_timestamp_ms = None
        self.indexes.cut(next_offset)
        self._file.truncate(position)
        self._file.flush()
        self.find_end()

    def make_indexes_anew(self) -> None:
        """Reads all headers, as far as there are any."""
        self.indexes.forget()
        try:
            for batch in self.batches():
                self.indexes.add(batch, batch.position)
        except (CorruptBatch, UnsupportedFormat) as error:
            log.error("segment has something else than batches", segment=str(self.path), reason=str(error))

    def has_true_indexes(self) -> bool:
        """Whether they are there, and what they say is the latest is so. What else is wrong is noticed when it is used."""
        if not self.indexes.are_there():
            return not self.size_bytes
        try:
            batch = self.batch_of(self.latest.offset)
        except CorruptBatch:
            return False
        return batch is not None and batch.max_timestamp_ms == self.latest.timestamp_ms

    def flush(self) -> None:
        """What is added to the indexes of the last segment is written when that is sealed; until then a crash has them
        made anew."""
        self._file.flush()
        self.indexes.flush()

    def close(self) -> None:
        self._file.close()
        self.indexes.close()

    def remove(self) -> None:
        """The batches go first: an index without a segment is removed when the log is opened."""
        self._file.close()
        self._disk.remove(self.path)
        self._disk.remove(self.path.with_suffix(ABORTED_SUFFIX))
        self.indexes.remove()

    def _end_below(self, below: int) -> int:
        """Where the first batch stands that begins at an offset or behind it."""
        if below >= self.next_offset or (batch := self.batch_of(below)) is None:
            return self._file.size
        return batch.end if batch.base_offset < below else batch.position

    def _position_at_or_before(self, offset: int) -> int:
        entry = self.indexes.floor(offset)
        if entry is not None and not self._is_batch_up_to(entry.position, entry.last_offset):
            log.warning("index leads astray, it is made anew", segment=str(self.path))
            self.make_indexes_anew()
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

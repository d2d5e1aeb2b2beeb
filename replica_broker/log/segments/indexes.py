"""The two indexes of a segment: from offsets to positions, and from timestamps to offsets.

An entry of the offset index has the last offset and the position of a batch. An entry of the time index has an offset
and the largest timestamp up to it. Both get an entry together, after every `index_interval_bytes` of batches.
"""

import struct
from pathlib import PurePath
from typing import Final, NamedTuple

from replica_broker.disk.disk import Disk, DiskPath
from replica_broker.log.record_batches import NO_TIMESTAMP, RecordBatch
from replica_broker.log.segments.sparse_index import SparseIndex

OFFSET_INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
_OFFSET_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")


class Latest(NamedTuple):
    """The largest timestamp in a segment, and the last offset of the first batch that has it."""

    timestamp_ms: int
    offset: int


class IndexedBatch(NamedTuple):
    last_offset: int
    position: int


class Indexes:
    """Both indexes, and the largest timestamp, which is added to them when they are sealed."""

    def __init__(self, disk: Disk, folder: DiskPath, base_offset: int, *, interval_bytes: int) -> None:
        stem = PurePath(folder) / f"{base_offset:020d}"
        self._base_offset = base_offset
        self._offsets = SparseIndex(disk, stem.with_suffix(OFFSET_INDEX_SUFFIX), _OFFSET_ENTRY)
        self._times = SparseIndex(disk, stem.with_suffix(TIME_INDEX_SUFFIX), _TIME_ENTRY)
        self._interval_bytes = interval_bytes
        self._unindexed_bytes = 0
        self._latest: Latest | None = None

    @property
    def latest(self) -> Latest:
        """The largest timestamp, or `NO_TIMESTAMP` if no batch has one."""
        if self._latest is None:
            timestamp_ms, relative = self._times.last() or (NO_TIMESTAMP, 0)
            self._latest = Latest(timestamp_ms, self._base_offset + relative)
        return self._latest

    def add(self, batch: RecordBatch, position: int) -> None:
        """Add a batch that was appended at this position of the file."""
        self._see(batch)
        if self._unindexed_bytes > self._interval_bytes:
            self._offsets.add(batch.last_offset - self._base_offset, position)
            self._add_latest()
            self._unindexed_bytes = 0
        self._unindexed_bytes += batch.size_bytes

    def recall(self, batch: RecordBatch) -> None:
        """Restore the state after a batch that was added before the file was closed. Adds no entry."""
        self._see(batch)
        self._unindexed_bytes += batch.size_bytes

    def begin_recall(self) -> IndexedBatch | None:
        """Return the last indexed batch, after which batches must be recalled; None: from the file's start."""
        self._latest = None
        self._unindexed_bytes = 0
        last = self._offsets.last()
        return IndexedBatch(self._base_offset + last[0], last[1]) if last else None

    def floor(self, offset: int) -> IndexedBatch | None:
        """Return the last indexed batch that does not end after the offset."""
        count = self._offsets.count_at_most(offset - self._base_offset)
        if not count:
            return None
        relative, position = self._offsets.read_entry(count - 1)
        return IndexedBatch(self._base_offset + relative, position)

    def offset_before(self, timestamp_ms: int) -> int:
        """Return an offset up to which every record is earlier. The first record at the timestamp follows closely."""
        count = self._times.count_at_most(timestamp_ms - 1)
        return self._base_offset + self._times.read_entry(count - 1)[1] if count else self._base_offset

    def cut(self, next_offset: int) -> None:
        """Remove the entries from that offset on."""
        last = next_offset - 1 - self._base_offset
        self._offsets.cut(self._offsets.count_at_most(last))
        self._times.cut(self._times.count_at_most(last, of=1))
        self._latest = None

    def forget(self) -> None:
        """Remove all entries so that the indexes can be rebuilt."""
        self._offsets.cut(0)
        self._times.cut(0)
        self._latest = None
        self._unindexed_bytes = 0

    def seal(self) -> None:
        """Write the indexes, with the largest timestamp of the segment as the last entry."""
        self._add_latest()
        self._offsets.write()
        self._times.write()

    def flush(self) -> None:
        self._offsets.flush()
        self._times.flush()

    def are_there(self) -> bool:
        """Return True if both files exist and the time index has an entry."""
        return self._offsets.is_there() and self._times.is_there() and self._times.count > 0

    def close(self) -> None:
        self._offsets.close()
        self._times.close()

    def remove(self) -> None:
        self._offsets.remove()
        self._times.remove()

    def _see(self, batch: RecordBatch) -> None:
        if batch.max_timestamp_ms > self.latest.timestamp_ms:
            self._latest = Latest(batch.max_timestamp_ms, batch.last_offset)

    def _add_latest(self) -> None:
        last = self._times.last()
        if self.latest.timestamp_ms >= 0 and (last is None or self.latest.timestamp_ms > last[0]):
            self._times.add(self.latest.timestamp_ms, self.latest.offset - self._base_offset)

"""A sparse index file of entries of one size. It is loaded into memory at its first use.

Added entries are written with the next `write`. They need no crash safety: after an unclean shutdown, indexes are
rebuilt from their segments.
"""

from struct import Struct
from typing import Final

from replica_broker.disk.disk import Disk, DiskPath, File, FileMissing

_MOST_BYTES: Final = 64 << 20
"""Limit of an index file; Kafka's default is 10 MiB. A larger file is not an index."""


class SparseIndex:
    """Pairs of numbers. Neither number falls from one pair to the next."""

    def __init__(self, disk: Disk, path: DiskPath, entry: Struct) -> None:
        self._disk = disk
        self._path = path
        self._entry = entry
        self._read: bytearray | None = None
        self._written_bytes = 0
        self._file: File | None = None

    @property
    def count(self) -> int:
        return len(self._entries) // self._entry.size

    def read_entry(self, number: int) -> tuple[int, int]:
        first, second = self._entry.unpack_from(self._entries, number * self._entry.size)
        return first, second

    def last(self) -> tuple[int, int] | None:
        return self.read_entry(self.count - 1) if self.count else None

    def add(self, first: int, second: int) -> None:
        self._entries.extend(self._entry.pack(first, second))

    def count_at_most(self, value: int, *, of: int = 0) -> int:
        """Return the number of entries whose first number (`of` 0) or second number (`of` 1) is at most the value."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self.read_entry(middle)[of] <= value:
                low = middle + 1
            else:
                high = middle
        return low

    def cut(self, count: int) -> None:
        """Keep only the first `count` entries."""
        size_bytes = count * self._entry.size
        del self._entries[size_bytes:]
        if size_bytes < self._written_bytes:
            self._open_file().truncate(size_bytes)
            self._written_bytes = size_bytes

    def is_there(self) -> bool:
        return self._disk.exists(self._path)

    def write(self) -> None:
        """Write the added entries. Creates the file even if there are none."""
        added = self._entries[self._written_bytes :]
        if added:
            self._open_file().append(added)
            self._written_bytes += len(added)
        elif not self.is_there():
            self._open_file()

    def flush(self) -> None:
        """Flush the written entries. May be called from another thread."""
        file = self._file
        if file is not None:
            file.flush()

    def close(self) -> None:
        """Close the file without writing. It is opened again when it is needed."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def remove(self) -> None:
        self.close()
        self._disk.remove(self._path)

    @property
    def _entries(self) -> bytearray:
        if self._read is None:
            self._read = self._load()
        return self._read

    def _load(self) -> bytearray:
        try:
            is_usable = (found_bytes := self._disk.size(self._path)) <= _MOST_BYTES
        except FileMissing:
            return bytearray()
        if not is_usable:
            self._open_file().truncate(0)
            return bytearray()
        read = bytearray(self._disk.read_whole(self._path))
        # A crash may have left a partial entry at the end.
        del read[found_bytes - found_bytes % self._entry.size :]
        self._written_bytes = len(read)
        if len(read) < found_bytes:
            self._open_file().truncate(len(read))
        return read

    def _open_file(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self._path)
        return self._file

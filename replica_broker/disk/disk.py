"""The interface of the file system, and its errors. `tests/contract/replica_broker/test_disk.py` tests them.

- Files only grow at their end, or are truncated. A write is visible at once, but only a flush makes it survive a crash.
- Small files are written whole (`write_whole`): after a crash there is the old content or the new one.
- Names need their own flush (`flush_folder`, or the file's own): without it, a crash may undo a created or new name.

Calls block. `File.flush` and `write_whole` may run beside any other call, `write_whole` once at a time for each path;
the other calls of one disk come from one thread at a time.
"""

from pathlib import PurePath
from typing import Protocol, TypeAlias

DiskPath: TypeAlias = PurePath | str


class DiskError(Exception):
    """A failed input or output. The log directory is offline from now on; the broker goes on."""


class DiskFull(DiskError):
    """The disk is full. Handled like any `DiskError`: a partial write must not be built upon."""


class FileMissing(DiskError):
    """A file or folder is missing. This is no failure of the disk; the caller handles it."""


class DirectoryInUse(DiskError):
    """Another process has the lock. Fatal at the start: two brokers would write the same files."""


class File(Protocol):
    """An open file. Every method except `close` may raise `DiskError`."""

    @property
    def size(self) -> int:
        """The size in bytes."""
        ...

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Write all of it at the end. A failed write is truncated again if possible."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes, or fewer at the end of the file."""
        ...

    def truncate(self, size: int) -> None:
        """Truncate the file to this size. Does nothing if it is smaller."""
        ...

    def flush(self) -> None:
        """Make all earlier writes, and the file's name, survive a crash. Does nothing on a closed file.

        While it runs, another thread may close the file and then rename its folder.
        """
        ...

    def close(self) -> None:
        """Close the file without a flush. Idempotent."""
        ...


class Lock(Protocol):
    """A lock of this process."""

    def require_in_place(self) -> None:
        """Raise `DiskError` if the lock's file is no longer at its path.

        Then somebody has moved or removed the folder. Open files still accept writes, but nobody will find them.
        """
        ...

    def release(self) -> None:
        """Release the lock. Idempotent. The end of the process releases it, too."""
        ...


class Disk(Protocol):
    """A file system. Every method may raise `DiskError`."""

    def open(self, path: DiskPath) -> File:
        """Open a file, and create it if it does not exist. Its folder must exist."""
        ...

    def exists(self, path: DiskPath) -> bool:
        """Return True if there is a file or folder."""
        ...

    def size(self, path: DiskPath) -> int:
        """Return the size of a file in bytes. Raises `FileMissing`."""
        ...

    def list(self, path: DiskPath) -> tuple[str, ...]:
        """Return the sorted names in a folder. Raises `FileMissing`."""
        ...

    def make_folder(self, path: DiskPath) -> None:
        """Create the folder and its missing parents."""
        ...

    def remove(self, path: DiskPath) -> None:
        """Remove a file if it exists."""
        ...

    def remove_folder(self, path: DiskPath) -> None:
        """Remove a folder and its content if it exists."""
        ...

    def rename(self, path: DiskPath, to: DiskPath) -> None:
        """Rename a file or folder. An existing file of that name is replaced; a folder is not."""
        ...

    def write_whole(self, path: DiskPath, content: bytes) -> None:
        """Create or replace a file. After a crash it has the old content or the new one."""
        ...

    def read_whole(self, path: DiskPath) -> bytes:
        """Return the content of a file. Raises `FileMissing`."""
        ...

    def flush_folder(self, path: DiskPath) -> None:
        """Make the names in the folder survive a crash."""
        ...

    def lock(self, path: DiskPath) -> Lock:
        """Take the lock of a file. Raises `DirectoryInUse` if another process, or this one, has it."""
        ...

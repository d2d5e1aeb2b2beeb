"""The seam for files: all that the broker asks of a file system, and the errors it may answer with.

Two implementations stand behind it: `replica_broker.disk.local_disk.LocalDisk`, and for tests
`simulation.replicas.disk.SimulatedDisk`. One contract suite (`tests/contract/replica_broker/test_disk.py`) holds both to
what is said here.

It differs from a general file system in three ways:

- **Files only grow at their end**, or are cut. What is written is there for every reader at once, and after a crash of the
  machine only where it was flushed; what was not may be there in part, cut at any byte.
- **Small files are written whole** (`write_whole`): after a crash there is the old content or the new one, never a part.
- **Names are flushed apart from content** (`flush_folder`), as file systems do it: a file that was created, renamed or
  removed is so after a crash where its folder, or the file itself, was flushed since.

Calls block: a small broker writes to the page cache, and has what takes long (`File.flush`, `write_whole`) done by a
thread. These two may be called beside anything else, `write_whole` once at a time for each path; all other calls of one
disk come from one thread at a time.
"""

from pathlib import PurePath
from typing import Protocol, TypeAlias

DiskPath: TypeAlias = PurePath | str


class DiskError(Exception):
    """An input or output that failed. Fatal for the log directory, which is offline from now on; not for the broker."""


class DiskFull(DiskError):
    """There is no room left. The same policy: what was cut off in the midst of a write is not to be built upon."""


class FileMissing(DiskError):
    """There is no such file or folder. No failure of the disk: the caller knows what it means."""


class DirectoryInUse(DiskError):
    """Another process has the lock. Fatal at start: two brokers would write the same files."""


class File(Protocol):
    """An open file. Every method but `close` may raise `DiskError`."""

    @property
    def size(self) -> int:
        """In bytes."""
        ...

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Writes all of it at the end. What a failed write left of it is cut off again where that is possible."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """So many bytes, or as many as there are from there."""
        ...

    def truncate(self, size: int) -> None:
        """Cuts what is behind so many bytes; does nothing to a file that has no more."""
        ...

    def flush(self) -> None:
        """After that a crash takes nothing of what was written before, nor the file's name. Nothing, once it is closed."""
        ...

    def close(self) -> None:
        """Flushes nothing. Idempotent."""
        ...


class Lock(Protocol):
    """A lock that this process holds."""

    def require_in_place(self) -> None:
        """Raises `DiskError` where the file that it stands for is not at its path any more: somebody has put another folder
        there, or none, and what is open still takes writes that nobody will find again."""
        ...

    def release(self) -> None:
        """Idempotent. The end of the process does it, too."""
        ...


class Disk(Protocol):
    """A file system. Every method may raise `DiskError`."""

    def open(self, path: DiskPath) -> File:
        """Opens a file, and creates it where there is none. Its folder is there."""
        ...

    def exists(self, path: DiskPath) -> bool:
        """Whether there is a file or a folder."""
        ...

    def size(self, path: DiskPath) -> int:
        """Of a file, in bytes. Raises `FileMissing`."""
        ...

    def list(self, path: DiskPath) -> tuple[str, ...]:
        """The names in a folder, sorted. Raises `FileMissing`."""
        ...

    def make_folder(self, path: DiskPath) -> None:
        """Makes the folder and those above it, where they are not there yet."""
        ...

    def remove(self, path: DiskPath) -> None:
        """Removes a file, where there is one."""
        ...

    def remove_folder(self, path: DiskPath) -> None:
        """Removes a folder with all that is in it, where there is one."""
        ...

    def rename(self, path: DiskPath, to: DiskPath) -> None:
        """Gives a file or folder another name. A file that has that name is replaced; a folder is not."""
        ...

    def write_whole(self, path: DiskPath, content: bytes) -> None:
        """Replaces a file's content, or creates it: after a crash there is the old one or the new one."""
        ...

    def read_whole(self, path: DiskPath) -> bytes:
        """Raises `FileMissing`."""
        ...

    def flush_folder(self, path: DiskPath) -> None:
        """After that a crash changes nothing about which names are in it."""
        ...

    def lock(self, path: DiskPath) -> Lock:
        """Takes the lock that a file stands for. Raises `DirectoryInUse` where another process, or this one, has it."""
        ...

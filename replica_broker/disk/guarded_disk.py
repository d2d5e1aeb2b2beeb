"""A disk that is not used again after its first failure, because the result of a failed write is unknown.

It wraps the disk of one log directory. The first `DiskError` of any call is remembered and reported to the owner of the
directory; every later call raises `DirectoryOffline`. A missing file or a taken lock is no failure.

A file's flush and `write_whole_in_background` may fail in another thread than the owner's. Such a failure is reported
by the next call, or by `report_failure`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from replica_broker.disk.disk import DirectoryInUse, Disk, DiskError, DiskPath, File, FileMissing, Lock


class DirectoryOffline(DiskError):
    """The disk failed before and is not used again."""


class GuardedDisk:
    """A `Disk` that stops at its first failure."""

    def __init__(self, disk: Disk, on_failure: Callable[[DiskError], object]) -> None:
        self.failure: DiskError | None = None
        self._disk = disk
        self._on_failure = on_failure
        self._is_told = False

    def report_failure(self) -> None:
        """Report a failure to the owner, once."""
        if self.failure is not None and not self._is_told:
            self._is_told = True
            self._on_failure(self.failure)

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Guard a call of the disk, or of a file on it."""
        self.report_failure()
        self.require_online()
        try:
            yield
        except (FileMissing, DirectoryInUse):
            raise
        except DiskError as error:
            self.failure = error
            self.report_failure()
            raise

    def flush(self, file: File) -> None:
        """Flush a file, possibly in another thread. A failure is only remembered."""
        with self._guard_silently():
            file.flush()

    @contextmanager
    def _guard_silently(self) -> Iterator[None]:
        self.require_online()
        try:
            yield
        except DiskError as error:
            self.failure = error
            raise

    def require_online(self) -> None:
        if self.failure is not None:
            raise DirectoryOffline(f"the log directory is offline: {self.failure}") from self.failure

    def open(self, path: DiskPath) -> File:
        with self.guard():
            return _GuardedFile(self, self._disk.open(path))

    def exists(self, path: DiskPath) -> bool:
        with self.guard():
            return self._disk.exists(path)

    def size(self, path: DiskPath) -> int:
        with self.guard():
            return self._disk.size(path)

    def list(self, path: DiskPath) -> tuple[str, ...]:
        with self.guard():
            return self._disk.list(path)

    def make_folder(self, path: DiskPath) -> None:
        with self.guard():
            self._disk.make_folder(path)

    def remove(self, path: DiskPath) -> None:
        with self.guard():
            self._disk.remove(path)

    def remove_folder(self, path: DiskPath) -> None:
        with self.guard():
            self._disk.remove_folder(path)

    def rename(self, path: DiskPath, to: DiskPath) -> None:
        with self.guard():
            self._disk.rename(path, to)

    def write_whole(self, path: DiskPath, content: bytes) -> None:
        with self.guard():
            self._disk.write_whole(path, content)

    def write_whole_in_background(self, path: DiskPath, content: bytes) -> None:
        """Replace a file from another thread. A failure is only remembered."""
        with self._guard_silently():
            self._disk.write_whole(path, content)

    def read_whole(self, path: DiskPath) -> bytes:
        with self.guard():
            return self._disk.read_whole(path)

    def flush_folder(self, path: DiskPath) -> None:
        with self.guard():
            self._disk.flush_folder(path)

    def lock(self, path: DiskPath) -> Lock:
        with self.guard():
            return _GuardedLock(self, self._disk.lock(path))


class _GuardedLock:
    def __init__(self, disk: GuardedDisk, lock: Lock) -> None:
        self._disk = disk
        self._lock = lock

    def require_in_place(self) -> None:
        with self._disk.guard():
            self._lock.require_in_place()

    def release(self) -> None:
        self._lock.release()


class _GuardedFile:
    def __init__(self, disk: GuardedDisk, file: File) -> None:
        self._disk = disk
        self._file = file

    @property
    def size(self) -> int:
        return self._file.size

    def append(self, data: bytes | bytearray | memoryview) -> None:
        with self._disk.guard():
            self._file.append(data)

    def read(self, offset: int, length: int) -> bytes:
        with self._disk.guard():
            return self._file.read(offset, length)

    def truncate(self, size: int) -> None:
        with self._disk.guard():
            self._file.truncate(size)

    def flush(self) -> None:
        self._disk.flush(self._file)

    def close(self) -> None:
        self._file.close()

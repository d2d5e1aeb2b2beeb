"""The file system of this machine. Only this module translates errors of the operating system.

The lock is of the kind that Java uses (POSIX record locks), so that a stock broker and this one exclude each other on
the same directory. Such a lock never excludes its own process, so this process also remembers its locks.
"""

import errno
import fcntl
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from replica_broker.disk.disk import DirectoryInUse, DiskError, DiskFull, DiskPath, FileMissing

TEMPORARY_SUFFIX: Final = ".tmp"
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_LOCKED: Final[set[tuple[int, int]]] = set()
"""Device and inode of the files that this process has locked."""


class LocalFile:
    """A file that is open for reading and appending."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._closing = threading.Lock()
        with _translate_errors("open", path):
            is_new = not path.exists()
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            self._size = os.fstat(self._descriptor).st_size
        self._is_name_flushed = not is_new

    @property
    def size(self) -> int:
        return self._size

    def append(self, data: bytes | bytearray | memoryview) -> None:
        with _translate_errors("append to", self._path):
            rest = memoryview(data).cast("B")
            try:
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError:
                with suppress(OSError):  # the directory is offline anyway, and recovery cuts off the rest
                    os.ftruncate(self._descriptor, self._size)
                raise
        self._size += len(data)

    def read(self, offset: int, length: int) -> bytes:
        wanted = min(length, self._size - offset)
        if wanted <= 0:
            return b""
        with _translate_errors("read", self._path):
            content = os.pread(self._descriptor, wanted, offset)
            while len(content) < wanted and (
                more := os.pread(self._descriptor, wanted - len(content), offset + len(content))
            ):
                content += more
        return content

    def truncate(self, size: int) -> None:
        if size < self._size:
            with _translate_errors("truncate", self._path):
                os.ftruncate(self._descriptor, size)
            self._size = size

    def flush(self) -> None:
        with _translate_errors("flush", self._path):
            with self._closing:
                if self._descriptor < 0:
                    return
                descriptor = os.dup(self._descriptor)  # another thread may close the original during the flush
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if not self._is_name_flushed:
                self._flush_name()

    def close(self) -> None:
        with self._closing:
            descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with suppress(OSError):  # everything that must survive was flushed before
                os.close(descriptor)

    def _flush_name(self) -> None:
        try:
            _flush_folder(self._path.parent)
        except FileNotFoundError:
            # The deletion of a log closes its files and then renames their folder, also while another thread flushes.
            if self._descriptor >= 0:
                raise
        self._is_name_flushed = True


class LocalLock:
    """A POSIX record lock on a whole file, and its entry among the locks of this process."""

    def __init__(self, path: Path) -> None:
        with _translate_errors("lock", path):
            # Opening and closing a file that this process has locked would release the lock, so this is checked
            # first.
            if path.exists() and _identity(path.stat()) in _LOCKED:
                raise DirectoryInUse(f"this process has the lock {path} already")
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._identity = _identity(os.fstat(self._descriptor))
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(self._descriptor)
                if error.errno in (errno.EACCES, errno.EAGAIN):
                    raise DirectoryInUse(f"another process has the lock {path}: is a broker running on it?") from error
                raise
        _LOCKED.add(self._identity)
        self._path = path

    def require_in_place(self) -> None:
        with _translate_errors("look at", self._path):
            if _identity(self._path.stat()) != self._identity:
                raise DiskError(f"{self._path} is not the file that this process has locked: the folder was replaced")

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            _LOCKED.discard(self._identity)
            os.close(descriptor)


class LocalDisk:
    """The real `Disk`."""

    def open(self, path: DiskPath) -> LocalFile:
        return LocalFile(Path(path))

    def exists(self, path: DiskPath) -> bool:
        with _translate_errors("look at", path):
            return Path(path).exists()

    def size(self, path: DiskPath) -> int:
        with _translate_errors("look at", path, may_miss=True):
            return Path(path).stat().st_size

    def list(self, path: DiskPath) -> tuple[str, ...]:
        with _translate_errors("list", path, may_miss=True):
            return tuple(sorted(os.listdir(path)))

    def make_folder(self, path: DiskPath) -> None:
        with _translate_errors("make the folder", path):
            Path(path).mkdir(parents=True, exist_ok=True)

    def remove(self, path: DiskPath) -> None:
        with _translate_errors("remove", path):
            Path(path).unlink(missing_ok=True)

    def remove_folder(self, path: DiskPath) -> None:
        with _translate_errors("remove the folder", path):
            if Path(path).exists():
                shutil.rmtree(path)

    def rename(self, path: DiskPath, to: DiskPath) -> None:
        with _translate_errors("rename", path):
            Path(path).rename(to)

    def write_whole(self, path: DiskPath, content: bytes) -> None:
        target = Path(path)
        temporary = target.with_name(target.name + TEMPORARY_SUFFIX)
        with _translate_errors("write", path):
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
            _flush_folder(target.parent)

    def read_whole(self, path: DiskPath) -> bytes:
        with _translate_errors("read", path, may_miss=True):
            return Path(path).read_bytes()

    def flush_folder(self, path: DiskPath) -> None:
        with _translate_errors("flush the folder", path):
            _flush_folder(Path(path))

    def lock(self, path: DiskPath) -> LocalLock:
        return LocalLock(Path(path))


def _identity(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_dev, stat.st_ino


def _flush_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _translate_errors(doing: str, path: DiskPath, *, may_miss: bool = False) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        kind = FileMissing if may_miss else DiskError
        raise kind(f"cannot {doing} {path}: there is no such file or folder") from error
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull(f"cannot {doing} {path}: the disk is full ({error.strerror})") from error
        raise DiskError(f"cannot {doing} {path}: {error.strerror or error}") from error

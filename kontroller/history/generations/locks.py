"""Locks of the operating system for writers and readers of a folder. A lock ends with its process.

They are `flock` on a file in the folder: after `kill -9` nothing is left to clean up. Processes on several machines
exclude each other if the file system supports locks, as NFS does. Addresses of other file systems have no locks: there
the second of two writers fails when it publishes its generation (`Store.begin_change`).
"""

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kontroller.history.generations.errors import NotWritten, StoreBusy


def find_local_folder(location: str) -> Path | None:
    """Return the folder of a location, or None if it is an address of another file system."""
    parts = urlsplit(location)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if "://" in location else Path(location)


@dataclass(slots=True)
class WriterLock:
    """A lock for the only process that may change a folder. It is reentrant within a process."""

    folder: Path | None
    """None if no lock is available."""
    _times: int = field(default=0, init=False)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lock while the block runs. Raises `StoreBusy` at once if another process holds it, and
        `NotWritten`."""
        # The process itself may change the folder in nested steps; `flock` on a second descriptor would refuse it.
        if self.folder is None or self._times:
            with self._count_use():
                yield
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise NotWritten(f"{self.folder} cannot be changed: {error}") from error
        try:
            _take(file, self.folder)
            with self._count_use():
                yield
        finally:
            os.close(file)

    @contextmanager
    def _count_use(self) -> Iterator[None]:
        self._times += 1
        try:
            yield
        finally:
            self._times -= 1


def _take(file: int, folder: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(file, 500, 0).decode(errors="replace").strip() or "another process"
        raise StoreBusy(f"{folder} is being changed by {holder}: run this command again after it has ended") from error
    except OSError as error:
        raise NotWritten(f"{folder} cannot be locked: {error}. Keep it on a file system that supports locks") from error
    now = datetime.now(UTC).isoformat(timespec="seconds")
    os.ftruncate(file, 0)
    os.pwrite(file, f"process {os.getpid()} on {socket.gethostname()} since {now}\n".encode(), 0)


@contextmanager
def read_lock(file: Path) -> Iterator[bool]:
    """Protect a file from removal while the block runs. Yields False if the file does not exist any more."""
    try:
        opened = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield False
        return
    try:
        fcntl.flock(opened, fcntl.LOCK_SH)
        # Somebody may have removed the file after it was opened here and before it was locked.
        yield file.exists()
    finally:
        os.close(opened)


@contextmanager
def removal_lock(file: Path) -> Iterator[bool]:
    """Yield True if no reader has the file. Then none gets it while the block runs."""
    opened = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(opened)

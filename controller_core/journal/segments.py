"""The journal as files: segments named by the epoch and number of their first record, rotated by size, with retention.

A failed write is cut off where it began, so that it can be retried. If a process was killed in the middle of a line,
the next writer cuts that line off. It knows that nobody else writes to the segment, because each open segment has a
lock that ends with its process.

The age of a segment depends on the wall clock, which may jump. So a segment counts as old only if both the wall clock
and the time since this process began say so: a jump in either direction deletes nothing.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import structlog

log = structlog.get_logger()

SUFFIX: Final = ".jsonl"
_TAIL_BYTES: Final = 1 << 20
"""Bytes that are read at once to find the end of the last whole line. Nearly all lines are much shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Whole lines of one epoch, written at once. `first_seq` is the number of the first line."""

    epoch: int
    first_seq: int
    data: bytes
    cluster_id: str | None = None


class Unwritable(Exception):
    """A sink never takes this as a whole. A part of it, and what follows, may be written."""


class Sink(Protocol):
    """Takes lines. Both methods may block and may raise `OSError`. A failed block was not written and comes again."""

    def write(self, block: Block) -> None:
        """Write a block. Raises `OSError` if it may be tried again, and `Unwritable`."""
        ...

    def close(self) -> None: ...


@dataclass(slots=True, kw_only=True)
class _Segment:
    path: Path
    descriptor: int
    size: int
    epoch: int


class SegmentFiles:
    """A `Sink` that writes a directory of segments."""

    def __init__(
        self,
        directory: Path,
        *,
        segment_bytes: int,
        retention_bytes: int | None = None,
        retention_ms: int | None = None,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._retention_bytes = retention_bytes
        self._retention_ms = retention_ms
        self._wall_s = wall_s
        self._began_s = wall_s() - time.monotonic()
        self._open: _Segment | None = None
        self._is_healed = False

    def __str__(self) -> str:
        return f"directory {self._directory}"

    def write(self, block: Block) -> None:
        segment = self._segment_for(block)
        try:
            _write_all(segment.descriptor, block.data)
        except OSError:
            self._cut_off(segment)
            raise
        segment.size += len(block.data)

    def close(self) -> None:
        segment, self._open = self._open, None
        if segment is not None:
            try:
                os.fsync(segment.descriptor)
            finally:
                os.close(segment.descriptor)

    def _segment_for(self, block: Block) -> _Segment:
        current = self._open
        is_full = current is not None and current.size and current.size + len(block.data) > self._segment_bytes
        if current is not None and not is_full and current.epoch == block.epoch:
            return current
        self.close()
        self._directory.mkdir(parents=True, exist_ok=True)
        if not self._is_healed:
            self._heal_all()
        path = self._directory / f"{block.epoch:010d}-{block.first_seq:015d}{SUFFIX}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            size = _cut_torn_line(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        self._open = _Segment(path=path, descriptor=descriptor, size=size, epoch=block.epoch)
        self._delete_old(path)
        return self._open

    def _cut_off(self, segment: _Segment) -> None:
        """Cut off the remains of a failed write. If that fails too, leave the segment: readers skip duplicates."""
        try:
            os.ftruncate(segment.descriptor, segment.size)
        except OSError as error:
            log.warning("journal segment could not be cut, it is left", segment=str(segment.path), error=str(error))
            self._open = None
            os.close(segment.descriptor)

    def _heal_all(self) -> None:
        for path in segments(self._directory):
            try:
                heal(path)
            except OSError as error:
                log.warning("torn line of a journal segment is left", segment=str(path), error=str(error))
        self._is_healed = True

    def _delete_old(self, present: Path) -> None:
        """Delete the oldest segments until the rest is within the limits. Never delete the present segment."""
        found = [(path, path.stat()) for path in segments(self._directory) if path != present]
        total = sum(stat.st_size for _, stat in found)
        now_s = min(self._wall_s(), self._began_s + time.monotonic())
        for path, stat in found:
            is_old = self._retention_ms is not None and (now_s - stat.st_mtime) * 1000 > self._retention_ms
            is_too_much = self._retention_bytes is not None and total > self._retention_bytes
            if not is_old and not is_too_much:
                return
            path.unlink(missing_ok=True)
            total -= stat.st_size


def segments(*directories: Path, suffixes: tuple[str, ...] = (SUFFIX,)) -> list[Path]:
    """Return the segments of one cluster's journals, oldest first: by epoch, then by number. Raises `OSError`."""
    found = [path for directory in directories for path in directory.iterdir() if path.name.endswith(suffixes)]
    return sorted(found, key=lambda path: (path.name, path))


def heal(path: Path) -> None:
    """Cut off a torn last line, unless another process is still writing the segment. Raises `OSError`."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        with contextlib.suppress(BlockingIOError):  # the owner of the lock is alive and will complete the line
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _cut_torn_line(descriptor)
    finally:
        os.close(descriptor)


def _cut_torn_line(descriptor: int) -> int:
    """Cut off everything after the last whole line. Return the remaining size in bytes."""
    size = end = os.fstat(descriptor).st_size
    found = 0
    while end > 0 and not found:
        start = max(end - _TAIL_BYTES, 0)
        found = os.pread(descriptor, end - start, start).rfind(b"\n") + 1
        end = start + found
    if end < size:
        os.ftruncate(descriptor, end)
    return end


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]

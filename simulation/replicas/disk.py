"""A `Disk` in memory: deterministic, full or broken on demand, with crashes that lose unflushed data.

`SimulatedDisk` is a machine's disk. It crashes when the test calls `crash`, or during a write that the test selects.
From then on every call raises `Crashed`. `restart` returns the disk of the restarted machine: flushed data, the part of
later writes that the test lets survive, and maybe no files with unflushed names.

Unlike some real file systems, it never keeps a later write without an earlier one. Logs detect that by CRCs, like
missing bytes.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TypeAlias

from replica_broker.disk.disk import DirectoryInUse, DiskError, DiskFull, DiskPath, FileMissing

Survival: TypeAlias = Callable[[str, int], int | None]
"""Returns how many of a file's unflushed bytes survive, given its path and their number.

None: its name was not flushed either, and the file is lost.
"""


class Crashed(Exception):  # no `DiskError`, because no code handles the end of the machine
    """The machine crashed."""


@dataclass(slots=True)
class _Content:
    data: bytearray = field(default_factory=bytearray)
    flushed: bytes = b""
    is_name_flushed: bool = False


class SimulatedDisk:
    """One machine's disk. Its attributes and methods set its faults."""

    def __init__(self) -> None:
        self.capacity_bytes: int | None = None
        """The limit above which writes raise `DiskFull`."""
        self.broken: Callable[[str], bool] = lambda _: False
        """Returns True for paths at which every call is an I/O error."""
        self.writes = 0
        """The number of writes: appends, whole files, truncations."""
        self._crash_at: tuple[int, int] | None = None
        self._is_crashed = False
        self._files: dict[PurePosixPath, _Content] = {}
        self._folders: set[PurePosixPath] = {PurePosixPath("/")}
        self._locked: set[PurePosixPath] = set()

    def crash_at(self, write: int, *, kept_bytes: int = 0) -> None:
        """Crash during a write after this many of its bytes. Writes are counted from 0, like `writes`."""
        self._crash_at = write, kept_bytes

    def crash(self) -> None:
        self._is_crashed = True

    def restart(self, survival: Survival = lambda _path, _unflushed: 0) -> "SimulatedDisk":
        """Return the disk after a crash, with flushed data and what survives of the rest."""
        self._is_crashed = True
        after = SimulatedDisk()
        after._folders = set(self._folders)
        for path, content in self._files.items():
            survived = survival(str(path), max(len(content.data) - len(content.flushed), 0))
            if survived is None and not content.is_name_flushed:
                continue
            kept = content.flushed
            if content.data.startswith(kept):
                kept = bytes(content.data[: len(kept) + (survived or 0)])
            after._files[path] = _Content(bytearray(kept), kept, True)
        return after

    def damage(self, path: DiskPath, data: bytes) -> None:
        """Replace a file's content from outside."""
        self._files[_whole(path)] = _Content(bytearray(data), data, True)

    def open(self, path: DiskPath) -> "SimulatedFile":
        where = _whole(path)
        with self.check_usable(path):
            self._require_folder(where.parent)
            return SimulatedFile(self, where, self._files.setdefault(where, _Content()))

    def exists(self, path: DiskPath) -> bool:
        with self.check_usable(path):
            return _whole(path) in self._files or _whole(path) in self._folders

    def size(self, path: DiskPath) -> int:
        return len(self.read_whole(path))

    def list(self, path: DiskPath) -> tuple[str, ...]:
        where = _whole(path)
        with self.check_usable(path):
            if where not in self._folders:
                raise FileMissing(f"there is no folder {path}")
            names = [found.name for found in (*self._files, *self._folders) if found.parent == where and found != where]
            return tuple(sorted(names))

    def make_folder(self, path: DiskPath) -> None:
        with self.check_usable(path):
            self._folders |= {_whole(path), *_whole(path).parents}

    def remove(self, path: DiskPath) -> None:
        with self.check_usable(path):
            self._files.pop(_whole(path), None)

    def remove_folder(self, path: DiskPath) -> None:
        with self.check_usable(path):
            for found in self._list_below(path):
                self._files.pop(found, None)
                self._folders.discard(found)

    def rename(self, path: DiskPath, to: DiskPath) -> None:
        where, target = _whole(path), _whole(to)
        with self.check_usable(path):
            self._require_folder(target.parent)
            if target in self._folders or not self.exists(path):
                raise DiskError(f"cannot rename {path} to {to}")
            for found in self._list_below(path):
                renamed = target / found.relative_to(where)
                if found in self._files:
                    self._files[renamed] = self._files.pop(found)
                else:
                    self._folders.remove(found)
                    self._folders.add(renamed)

    def write_whole(self, path: DiskPath, content: bytes) -> None:
        where = _whole(path)
        with self.check_usable(path):
            self._require_folder(where.parent)
            self.write(where, len(content) - len(self._files.get(where, _Content()).data), lambda _: None)
            self._files[where] = _Content(bytearray(content), bytes(content), True)

    def read_whole(self, path: DiskPath) -> bytes:
        with self.check_usable(path):
            content = self._files.get(_whole(path))
            if content is None:
                raise FileMissing(f"there is no file {path}")
            return bytes(content.data)

    def flush_folder(self, path: DiskPath) -> None:
        with self.check_usable(path):
            for found, content in self._files.items():
                content.is_name_flushed |= found.parent == _whole(path)

    def lock(self, path: DiskPath) -> "SimulatedLock":
        where = _whole(path)
        with self.check_usable(path):
            self._require_folder(where.parent)
            if where in self._locked:
                raise DirectoryInUse(f"the lock {path} is taken")
            locked = self._files.setdefault(where, _Content())
            self._locked.add(where)
            return SimulatedLock(self._locked, where, lambda: self._require_same(where, locked))

    def write(self, where: PurePosixPath, added_bytes: int, torn: Callable[[int], None]) -> None:
        """Count a write before it is done. If the machine crashes in it, do a part of it."""
        if self._crash_at is not None and self._crash_at[0] <= self.writes:
            torn(self._crash_at[1])
            self._is_crashed = True
            raise Crashed(f"the machine crashed while {where} was written")
        self.writes += 1
        used_bytes = sum(len(content.data) for content in self._files.values())
        if self.capacity_bytes is not None and used_bytes + added_bytes > self.capacity_bytes:
            raise DiskFull(f"cannot write {where}: the disk is full")

    @contextmanager
    def check_usable(self, path: DiskPath) -> Iterator[None]:
        """Require that the machine runs and that its disk works at the path."""
        if self._is_crashed:
            raise Crashed("the machine crashed")
        if self.broken(str(path)):
            raise DiskError(f"cannot use {path}: Input/output error")
        yield

    def _list_below(self, path: DiskPath) -> tuple[PurePosixPath, ...]:
        return tuple(found for found in (*self._files, *self._folders) if found.is_relative_to(_whole(path)))

    def _require_same(self, path: PurePosixPath, content: _Content) -> None:
        with self.check_usable(path):
            if self._files.get(path) is not content:
                raise DiskError(f"{path} is gone, or another file")

    def _require_folder(self, path: PurePosixPath) -> None:
        if path not in self._folders:
            raise DiskError(f"there is no folder {path}")


class SimulatedFile:
    """An open file."""

    def __init__(self, disk: SimulatedDisk, path: PurePosixPath, content: _Content) -> None:
        self._disk = disk
        self._path = path
        self._content = content
        self._is_closed = False

    @property
    def size(self) -> int:
        return len(self._content.data)

    def append(self, data: bytes | bytearray | memoryview) -> None:
        with self._check_open():
            written = bytes(data)
            self._disk.write(self._path, len(written), lambda kept: self._content.data.extend(written[:kept]))
            self._content.data.extend(written)

    def read(self, offset: int, length: int) -> bytes:
        with self._check_open():
            return bytes(self._content.data[offset : offset + max(length, 0)])

    def truncate(self, size: int) -> None:
        with self._check_open():
            self._disk.write(self._path, 0, lambda _: None)
            del self._content.data[size:]

    def flush(self) -> None:
        if not self._is_closed:
            with self._check_open():
                self._content.flushed = bytes(self._content.data)
                self._content.is_name_flushed = True

    def close(self) -> None:
        self._is_closed = True

    @contextmanager
    def _check_open(self) -> Iterator[None]:
        if self._is_closed:
            raise DiskError(f"{self._path} is closed")
        with self._disk.check_usable(self._path):
            yield


class SimulatedLock:
    """A lock of a process."""

    def __init__(self, locked: set[PurePosixPath], path: PurePosixPath, look: Callable[[], None]) -> None:
        self._locked = locked
        self._path = path
        self._look = look
        self._is_held = True

    def require_in_place(self) -> None:
        self._look()

    def release(self) -> None:
        if self._is_held:
            self._is_held = False
            self._locked.discard(self._path)


def _whole(path: DiskPath) -> PurePosixPath:
    return PurePosixPath("/") / path


async def run_at_once(act: Callable[[], None]) -> None:
    """Run a background act at once, because simulated time has no threads."""
    act()

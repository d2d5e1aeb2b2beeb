"""The folder that keeps downloads and builds, so that only the first run on a machine waits for them.

The name of an entry has its contents, its version and a hash of all its inputs, so a changed input makes a new entry
and never a stale hit. A build happens in a temporary folder under a file lock and is renamed into place when it is
complete. An interrupted build therefore leaves no half entry. If two runs need the same entry, one builds it and the
other waits.
"""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devcluster.building import progress
from devcluster.running.priority import lend_priority

_LENDING_INTERVAL_S = 1.0


def cache_folder() -> Path:
    """Return `$KONTROLLER_CACHE`, or `kontroller` in the user's cache folder; create it if it is missing."""
    chosen = os.environ.get("KONTROLLER_CACHE")
    user_cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(chosen) if chosen else user_cache / "kontroller"
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def digest(*inputs: str) -> str:
    """Return twelve hexadecimal digits that change when any of the inputs does."""
    return hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A folder of the cache, built or not."""

    name: str
    """The contents and their version."""
    inputs: tuple[str, ...]
    """The texts that determine the result."""
    build: Callable[[Path], None]
    """Fill the given empty folder. If it raises, the folder is removed and the error passes through."""

    @property
    def is_there(self) -> bool:
        """True if `folder` returns without building."""
        return self._path.exists()

    def folder(self) -> Path:
        """Return the entry's folder; build it first if it is missing."""
        path = self._path
        if not path.exists():
            with hold_lock(self.name, f"Waiting for another run that builds {self.name}"):
                if not path.exists():
                    _build(self.name, path, self.build)
        return path

    @property
    def _path(self) -> Path:
        return cache_folder() / f"{self.name}-{digest(*self.inputs)}"


def build_cached(name: str, *inputs: str, build: Callable[[Path], None]) -> Path:
    """Return the folder of the entry with this name and these inputs; build it first if it is missing."""
    return Entry(name=name, inputs=inputs, build=build).folder()


def _build(name: str, entry: Path, build: Callable[[Path], None]) -> None:
    parent = cache_folder() / "building"
    parent.mkdir(exist_ok=True)
    for leftover in parent.glob(f"{name}-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))
    try:
        build(folder)
        folder.rename(entry)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def hold_lock(name: str, waiting: str) -> Iterator[None]:
    """Hold an exclusive lock between processes. A waiting process shows `waiting`, and lends the holder its priority."""
    locks = cache_folder() / "locks"
    locks.mkdir(exist_ok=True)
    path = locks / name
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with progress.step(waiting), progress.every(_LENDING_INTERVAL_S, lambda: _lend_priority(path)):
                fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def _lend_priority(lock: Path) -> None:
    """Raise the priority of the process that holds the lock; its id is in the lock's file."""
    if holder := lock.read_text():
        lend_priority(int(holder))

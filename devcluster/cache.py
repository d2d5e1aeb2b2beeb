"""The folder that keeps what was downloaded or built, so that only the first run on a machine waits for it.

An entry is a folder named after what it holds, its version and a hash of everything that went into it, so a
changed input makes a new entry and never a stale hit. A build happens in a temporary folder under a file lock
and is renamed into place when it is complete: an interrupted build leaves no half entry, and of two runs that
need the same entry one builds and the other waits.
"""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from devcluster import progress


def cache_folder() -> Path:
    """`$KONTROLLER_CACHE`, else `kontroller` in the user's cache folder; made when it is not there."""
    chosen = os.environ.get("KONTROLLER_CACHE")
    user_cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(chosen) if chosen else user_cache / "kontroller"
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def digest(*inputs: str) -> str:
    """Twelve hexadecimal digits that change when any of the inputs does."""
    return hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:12]


def is_cached(name: str, *inputs: str) -> bool:
    """True when `cached` would return without building."""
    return _entry(name, inputs).exists()


def cached(name: str, *inputs: str, build: Callable[[Path], None]) -> Path:
    """The entry's folder, built first when it is missing.

    `name` says what and which version; `inputs` are the texts that determine the result. `build` fills the
    empty folder that it is given; what it raises passes through, and nothing of the attempt is kept.
    """
    entry = _entry(name, inputs)
    if entry.exists():
        return entry
    with _lock(name):
        if not entry.exists():
            _build(name, entry, build)
    return entry


def _entry(name: str, inputs: tuple[str, ...]) -> Path:
    return cache_folder() / f"{name}-{digest(*inputs)}"


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
def _lock(name: str) -> Iterator[None]:
    locks = cache_folder() / "locks"
    locks.mkdir(exist_ok=True)
    with (locks / name).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with progress.step(f"Waiting for another run that builds {name}"):
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield

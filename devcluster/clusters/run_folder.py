"""The folder of a run for its servers' data and logs: `run/<name>-...` in the cache folder.

The data is removed when the run ends, unless KEEP is set in the environment. The logs stay if the run failed, so that a
message which names a log file stays useful. A killed run cannot tidy up, so the next one does: it recognises dead runs
by a file lock that only a living run holds.
"""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devcluster.building.cache import cache_folder

_KEEP_LOGS_S = 24 * 3600.0


class RunFolder:
    """The folders of one run; `keep_logs` is for runners that see a failure without an exception, like pytest."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.logs_kept = False

    def data(self, name: str) -> Path:
        """Return the data folder of a server; create it if it is missing."""
        folder = self.path / "data" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def log(self, name: str) -> Path:
        """Return the path of a server's log file."""
        folder = self.path / "logs"
        folder.mkdir(exist_ok=True)
        return folder / f"{name}.log"

    def keep_logs(self) -> None:
        self.logs_kept = True


@contextmanager
def run_folder(name: str) -> Iterator[RunFolder]:
    """Make a new run folder; an error keeps its logs, and KEEP=1 in the environment keeps everything."""
    parent = cache_folder() / "run"
    parent.mkdir(exist_ok=True)
    _tidy_up_after_the_dead(parent)
    folder = RunFolder(Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent)))
    with (folder.path / "alive").open("w") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        try:
            yield folder
        except Exception:
            folder.keep_logs()
            raise
        finally:
            _leave(folder)


def is_data_kept() -> bool:
    """Return True if the user keeps the data with KEEP."""
    return os.environ.get("KEEP", "") not in ("", "0")


def _leave(folder: RunFolder) -> None:
    if is_data_kept():
        (folder.path / "kept").touch()
    elif folder.logs_kept:
        shutil.rmtree(folder.path / "data", ignore_errors=True)
    else:
        shutil.rmtree(folder.path, ignore_errors=True)


def _tidy_up_after_the_dead(parent: Path) -> None:
    for folder in parent.iterdir():
        if not (folder / "kept").exists() and _is_dead(folder):
            shutil.rmtree(folder / "data", ignore_errors=True)
            if time.time() - folder.stat().st_mtime > _KEEP_LOGS_S:
                shutil.rmtree(folder, ignore_errors=True)


def _is_dead(folder: Path) -> bool:
    try:
        with (folder / "alive").open() as alive:
            fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except (BlockingIOError, FileNotFoundError):
        # Locked: it lives. No file: it is being made or removed right now.
        return False

"""A disk that a test can fill: a file system of a few megabytes, visible only to the processes in its mount namespace.

It is a tmpfs, so a write without room fails with the kernel's own ENOSPC. An idle process holds the namespace, so the
files outlive the servers that use them. Without root, the namespace is made as the root of a new user namespace, if the
kernel allows that.
"""

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from devcluster.running.processes import ManagedProcess
from devcluster.running.servers import Startable

_IS_ROOT: Final = os.geteuid() == 0
_MAKE: Final = ["unshare", "--mount", *([] if _IS_ROOT else ["--map-root-user"])]
_ENTER: Final = ["nsenter", "--mount", *([] if _IS_ROOT else ["--user", "--preserve-credentials"])]
_ENDS_WITH_US: Final = ["setpriv", "--pdeathsig", "KILL", "--"]
_HOLD: Final = 'mount -t tmpfs -o "size=$1" tmpfs "$2" && exec setpriv --pdeathsig KILL -- sleep infinity'
_CHUNK: Final = bytes(64 * 1024)


def why_impossible() -> str | None:
    """Return the reason why this machine lets us mount no file system of our own, or None if it does."""
    try:
        tried = subprocess.run(
            [*_MAKE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, text=True, check=False
        )
    except OSError as error:
        return f"a full disk needs a file system of its own: {error}"
    return f"a full disk needs a file system of its own: {tried.stderr.strip()}" if tried.returncode else None


class SmallDisk(Startable):
    """A small disk; `folder` is empty outside, and the disk is mounted there in the namespace."""

    def __init__(self, folder: Path, *, size_bytes: int, log_path: Path) -> None:
        self._folder = folder
        command = [*_MAKE, "sh", "-c", _HOLD, "sh", str(size_bytes), str(folder)]
        self._holder = ManagedProcess(f"disk-{folder.name}", command, log_path=log_path, ready=self._is_mounted)

    def start(self) -> None:
        """Mount the disk. Raises StartError."""
        self._holder.start()

    def close(self) -> None:
        """Remove the disk, after the servers that use it have ended."""
        self._holder.kill()

    def command(self, command: Sequence[str]) -> list[str]:
        """Return the command line that starts a process in the disk's namespace."""
        return [*_ENTER, "--target", str(self._holder.pid), "--", *_ENDS_WITH_US, *command]

    def find_outside(self, path: Path) -> Path:
        """Return the path outside the namespace of a path on the disk."""
        return Path(f"/proc/{self._holder.pid}/root{path}")

    def fill(self) -> None:
        """Take all the remaining room."""
        descriptor = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            with suppress(OSError):  # ENOSPC, which every further write gets
                while os.write(descriptor, _CHUNK):
                    pass
        finally:
            os.close(descriptor)

    def make_room(self) -> None:
        """Give back the room that `fill` took."""
        self._ballast.unlink()

    @property
    def _ballast(self) -> Path:
        return self.find_outside(self._folder / "ballast")

    def _is_mounted(self) -> bool:
        return os.path.ismount(self.find_outside(self._folder))

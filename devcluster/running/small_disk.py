"""A disk that is full when a test wants it: a file system of its own, of a few megabytes, which only the processes see that
are started in its mount namespace.

It is a tmpfs, so a write for which there is no room is the kernel's own ENOSPC. A process that does nothing holds the
namespace: what is on the disk outlives the servers that use it. Who is not root makes the namespace as the root of a user
namespace of its own, where the kernel lets him.
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
    """Why this machine lets us mount no file system of our own; None where it does."""
    try:
        tried = subprocess.run(
            [*_MAKE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, text=True, check=False
        )
    except OSError as error:
        return f"a full disk needs a file system of its own: {error}"
    return f"a full disk needs a file system of its own: {tried.stderr.strip()}" if tried.returncode else None


class SmallDisk(Startable):
    """`folder` is an empty one; in the namespace the disk is mounted there."""

    def __init__(self, folder: Path, *, size_bytes: int, log_path: Path) -> None:
        self._folder = folder
        command = [*_MAKE, "sh", "-c", _HOLD, "sh", str(size_bytes), str(folder)]
        self._holder = ManagedProcess(f"disk-{folder.name}", command, log_path=log_path, ready=self._is_mounted)

    def start(self) -> None:
        """Mounts it. Raises StartError."""
        self._holder.start()

    def close(self) -> None:
        """Takes it away, when the servers that use it have ended."""
        self._holder.kill()

    def command(self, command: Sequence[str]) -> list[str]:
        """The command line that starts a process which has the disk."""
        return [*_ENTER, "--target", str(self._holder.pid), "--", *_ENDS_WITH_US, *command]

    def seen(self, path: Path) -> Path:
        """Where a path on the disk is found from outside."""
        return Path(f"/proc/{self._holder.pid}/root{path}")

    def fill(self) -> None:
        """Takes all the room that is left."""
        descriptor = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            with suppress(OSError):  # which is what it is to say from now on
                while os.write(descriptor, _CHUNK):
                    pass
        finally:
            os.close(descriptor)

    def make_room(self) -> None:
        """Gives back what `fill` took."""
        self._ballast.unlink()

    @property
    def _ballast(self) -> Path:
        return self.seen(self._folder / "ballast")

    def _is_mounted(self) -> bool:
        return os.path.ismount(self.seen(self._folder))

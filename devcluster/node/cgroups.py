"""A node's own cgroup in every hierarchy, below this process's cgroup. It contains the cgroups of the node's pods.

Cgroups are the only part of a node that the kernel keeps when its processes have ended: `remove` removes them, and
`remove_left_over` those of a run that was killed. Only version 1 is supported: in version 2 a cgroup with processes in
it cannot delegate controllers.
"""

import os
from contextlib import suppress
from pathlib import Path

_PREFIX = "kontroller-node-"
_MOUNT = Path("/sys/fs/cgroup")


class NodeCgroup:
    """The cgroup `kontroller-node-NAME` in each hierarchy."""

    def __init__(self, name: str) -> None:
        self._folders = [folder / (_PREFIX + name) for folder in _own_folders()]

    def make(self) -> None:
        """Make the missing ones. Raises OSError."""
        for folder in self._folders:
            folder.mkdir(exist_ok=True)
            for setting in ("cpuset.cpus", "cpuset.mems"):
                if (folder / setting).exists():
                    (folder / setting).write_text((folder.parent / setting).read_text())

    def join(self) -> None:
        """Move this process, and all its future children, into the cgroup."""
        for folder in self._folders:
            (folder / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self) -> bool:
        """Remove the cgroup and all below it. Return False if some still hold processes and stay."""
        for folder in self._folders:
            _remove_tree(folder)
        return not any(folder.exists() for folder in self._folders)


def is_version_1() -> bool:
    """Return True if this machine's controllers are in hierarchies of version 1."""
    return any(controllers for controllers, _path in hierarchies())


def hierarchies() -> list[tuple[str, str]]:
    """Return the hierarchies of version 1: the controllers (or `name=...`) of each, and this process's cgroup in it."""
    lines = (line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines())
    return [(controllers, path) for _number, controllers, path in lines if controllers]


def remove_left_over() -> None:
    """Remove the cgroups of nodes whose processes are gone. A node that runs keeps all, also those without a pod."""
    for folder in list(_MOUNT.glob(f"*/**/{_PREFIX}*")):
        if not any(file.read_text() for file in folder.rglob("cgroup.procs")):
            _remove_tree(folder)


def mount_name(controllers: str) -> str:
    """Return the folder below /sys/fs/cgroup in which the hierarchy is usually mounted."""
    return controllers.removeprefix("name=")


def _own_folders() -> list[Path]:
    return [_MOUNT / mount_name(controllers) / path.lstrip("/") for controllers, path in hierarchies()]


def _remove_tree(folder: Path) -> None:
    if folder.is_dir():
        for child in folder.iterdir():
            if child.is_dir():
                _remove_tree(child)
        with suppress(OSError):
            folder.rmdir()

"""An older revision of this project as a folder, which runs beside the present one.

It comes from the repository itself, so it is missing if the clone is shallow or the source was unpacked from an
archive.
"""

import io
import subprocess
import tarfile
from pathlib import Path
from typing import Final

_PROJECT: Final = Path(__file__).parents[2]
_PACKAGES: Final = ("kontroller", "controller_core", "controller_planner", "operator")
"""The folders of what ships. An older revision may lack some."""


class NoSuchRevision(Exception):
    """The repository lacks the revision; the message says how to get it."""


def export_revision(commit: str, into: Path) -> Path:
    """Write the tree of a commit below a folder, and return its path. Raises `NoSuchRevision`."""
    try:
        present = _run_git("ls-tree", "--name-only", commit, "--", *_PACKAGES).decode().split()
        if "kontroller" not in present:
            raise NoSuchRevision(f"revision {commit} is older than the package `kontroller`: name a later one")
        archive = _run_git("archive", "--format=tar", commit, *present)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoSuchRevision(
            f"revision {commit} is not here: fetch all of the history (git fetch --unshallow)"
        ) from error
    folder = into / commit
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return folder


def environment_of(folder: Path) -> dict[str, str]:
    """Return the environment variables that make Python run that tree instead of the present one."""
    return {"PYTHONPATH": f"{folder}:{folder / 'operator'}", "PYTHONSAFEPATH": "1"}


def _run_git(*arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(_PROJECT), *arguments], capture_output=True, check=True).stdout

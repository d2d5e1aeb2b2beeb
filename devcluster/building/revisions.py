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


class NoSuchRevision(Exception):
    """The repository lacks the revision; the message says how to get it."""


def export_revision(commit: str, into: Path) -> Path:
    """Write the tree of a commit below a folder, and return its path. Raises `NoSuchRevision`."""
    command = [
        "git",
        "-C",
        str(_PROJECT),
        "archive",
        "--format=tar",
        commit,
        "kontroller",
        "controller_core",
        "operator",
    ]
    try:
        archive = subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoSuchRevision(
            f"revision {commit} is not here, or is older than the package `kontroller`: "
            "fetch all of the history (git fetch --unshallow)"
        ) from error
    folder = into / commit
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return folder


def environment_of(folder: Path) -> dict[str, str]:
    """Return the environment variables that make Python run that tree instead of the present one."""
    return {"PYTHONPATH": f"{folder}:{folder / 'operator'}", "PYTHONSAFEPATH": "1"}

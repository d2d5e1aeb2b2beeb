"""An older revision of this project as a folder, to be run for real beside the present one.

It comes from the repository itself, and there is none where a clone is shallow or the source was unpacked from an archive.
"""

import io
import subprocess
import tarfile
from pathlib import Path
from typing import Final

_PROJECT: Final = Path(__file__).parents[2]


class NoSuchRevision(Exception):
    """The repository here does not have the revision; the message says how it would."""


def exported(commit: str, into: Path) -> Path:
    """Writes the tree of a commit below a folder, and returns where it is. Raises `NoSuchRevision`."""
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
    """What a Python needs in its environment to run that tree, and not the present one."""
    return {"PYTHONPATH": f"{folder}:{folder / 'operator'}", "PYTHONSAFEPATH": "1"}

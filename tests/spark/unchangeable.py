"""A folder that nothing can be removed from or renamed into, whoever asks."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def unchangeable(folder: Path) -> Iterator[None]:
    """For root, whom permissions do not keep from anything, by the flag that makes a folder immutable."""
    if os.geteuid() == 0:
        command = ["chattr", "+i", str(folder)]
        if subprocess.run(command, check=False, capture_output=True).returncode:  # a fixed command
            pytest.skip("root can change everything on this file system")
    mode = folder.stat().st_mode
    if os.geteuid():
        folder.chmod(0o555)
    try:
        yield
    finally:
        if os.geteuid():
            folder.chmod(mode)
        else:
            subprocess.run(["chattr", "-i", str(folder)], check=True)  # a fixed command

"""A folder in which nobody can remove or rename anything."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def unchangeable(folder: Path) -> Iterator[None]:
    """Make a folder immutable by its flag, because permissions do not stop root."""
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

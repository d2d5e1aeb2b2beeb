"""The check of types: its results are in the cache folder, and one process at a time uses them."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from scripts.checks import __main__ as checks

MYPY = """
import fcntl, pathlib, sys
folder = pathlib.Path(sys.argv[-1].removeprefix("--cache-dir="))
try:
    fcntl.flock(open(f"{folder}.lock"), fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    folder.mkdir()
sys.exit(3)
"""


def test_mypy_decides_and_has_its_results_in_the_cache_for_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KONTROLLER_CACHE", str(tmp_path))
    monkeypatch.setattr(checks, "python", lambda *arguments: [sys.executable, "-c", MYPY, *arguments])
    assert CliRunner().invoke(checks.application, ["types"]).exit_code == 3
    assert (tmp_path / "mypy").is_dir(), "another process could use the results at the same time"

"""`scripts/make-venv` makes a whole environment, whatever an earlier run left and another one does."""

import os
import subprocess
import textwrap
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "make-venv"


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """A stand-in for Python, whose environments get their `bin/python` some time before their pip."""
    path = tmp_path / "stand-in-python"
    path.write_text(
        textwrap.dedent("""\
            #!/bin/sh
            case "$*" in
                "-m venv --clear "*)
                    rm -f "$4/pip"
                    mkdir -p "$4/bin"
                    cp "$0" "$4/bin/python"
                    sleep 0.5
                    touch "$4/pip"
                    echo made >>"$4/../made"
                    ;;
                "-m pip "*) [ -e "$(dirname "$0")/../pip" ] ;;
            esac
            """)
    )
    path.chmod(0o755)
    return path


def start(python: Path, venv: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [SCRIPT, venv, "none.txt"],
        env={**os.environ, "PYTHON": str(python)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> None:
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out


def test_an_environment_whose_creation_was_interrupted_is_made_again(python: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").write_bytes(python.read_bytes())
    (venv / "bin" / "python").chmod(0o755)
    for _ in range(2):
        finish(start(python, venv))
        assert (tmp_path / "made").read_text() == "made\n", "a whole one is kept"


def test_two_runs_at_once_make_one_environment(python: Path, tmp_path: Path) -> None:
    for each in [start(python, tmp_path / "venv") for _ in range(2)]:
        finish(each)
    assert (tmp_path / "made").read_text() == "made\n"

"""Parts of a check that run side by side."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from devcluster.running.processes import spawn
from scripts.checks.parts import Part, minutes, python, run_parts, table
from scripts.checks.runs import Case, digest

PROJECT = Path(__file__).parents[4]


def test_parts_run_at_the_same_time_and_each_outcome_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    met = tmp_path / "met"
    waits = f"until [ -e {met} ]; do sleep 0.05; done; echo both are here"
    parts = [
        Part(name="waits", command=("sh", "-c", waits)),
        Part(name="comes", command=("sh", "-c", f"touch {met}; echo gone wrong; exit 3"), niceness=10),
    ]
    ended = {each.name: each for each in run_parts(parts, tmp_path / "logs")}
    assert (ended["waits"].has_passed, ended["comes"].exit_code) == (True, 3)
    printed = capsys.readouterr().out
    assert "both are here" in printed
    assert "gone wrong" in printed
    assert "FAILED" in table(ended.values())


def test_an_interrupted_check_ends_its_parts(tmp_path: Path) -> None:
    child = tmp_path / "pid"
    part = f"Part(name='long', command=('sh', '-c', 'echo $$ > {child}; exec sleep 600'))"
    # A check that a script starts with `&` ignores interrupts, and so would everything that it starts.
    script = (
        "import signal; from pathlib import Path; from scripts.checks.parts import *; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "
        f"run_parts([{part}], Path({str(tmp_path)!r}))"
    )
    check = spawn(python("-c", script), cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (child.exists() and child.read_text().strip()):
        assert check.poll() is None
        time.sleep(0.05)
    os.kill(check.pid, signal.SIGINT)
    check.wait()
    with pytest.raises(ProcessLookupError):
        os.kill(int(child.read_text()), 0)


def test_a_duration_is_printed_in_minutes_and_seconds() -> None:
    assert minutes(187.9) == "3:07"


def test_the_digest_depends_on_the_cases_and_not_on_their_order_or_duration() -> None:
    one, other = (Case(name=name, ended="passed", seconds=1, is_nightly=False) for name in ("a", "b"))
    slower = Case(name="a", ended="passed", seconds=2, is_nightly=False)
    assert digest([one, other]) == digest([other, slower]) != digest([one])


def test_this_python_runs_the_parts() -> None:
    assert python("-V") == [sys.executable, "-V"]

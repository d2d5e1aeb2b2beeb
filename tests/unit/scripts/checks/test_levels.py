"""The cases that the lists of the levels select."""

import json
import os
import subprocess
import sys
import time
from datetime import date, timedelta
from pathlib import Path

import pytest

from scripts.checks.runs import Case, list_unstarted, summary
from tests.levels import (
    MOST_QUARANTINED,
    QUARANTINE,
    ListError,
    Quarantined,
    files_of,
    matches,
    quarantine_problems,
    read_cases,
    read_quarantine,
)

PROJECT = Path(__file__).parents[4]
TODAY = date(2026, 3, 20)
TESTS = """
import pytest

@pytest.mark.parametrize("cluster", ["kafka", "ours", "ours-SSL"])
def test_a_topic(cluster): ...

@pytest.mark.nightly("slow")
def test_slow(): ...

def test_fails(): assert False

@pytest.fixture
def broken():
    yield
    assert False

def test_leaves_something(broken): ...
"""
CONFTEST = """
from tests import levels

def pytest_addoption(parser):
    levels.add_options(parser)

def pytest_configure(config):
    config.addinivalue_line("markers", "nightly(why)")
    levels.register(config)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project of its own with one file of tests and an empty quarantine."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "tests" / "test_x.py").write_text(TESTS)
    (tmp_path / "tests" / "quarantine.txt").touch()
    return tmp_path


def run(folder: Path, *arguments: str) -> tuple[int, str, dict[str, str]]:
    """Run pytest; return its exit status, what it printed, and how each case ended."""
    ran = folder / "ran.jsonl"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--ran={ran}", *arguments]
    environment = os.environ | {"PYTHONPATH": str(PROJECT)}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    rows = [json.loads(line) for line in ran.read_text().splitlines()] if ran.exists() else []
    return ended.returncode, ended.stdout + ended.stderr, {row["case"]: row["ended"] for row in rows}


def write_list(folder: Path, *lines: str) -> str:
    (folder / "list.txt").write_text("# Some cases\n" + "".join(f"{line}\n" for line in lines))
    return "--cases=list.txt"


def test_a_list_selects_exactly_the_cases_that_it_names(folder: Path) -> None:
    status, _, ran = run(
        folder, write_list(folder, "tests/test_x.py::test_a_topic[ours] # 3 s", "tests/test_x.py::test_slow")
    )
    assert status == 0
    assert set(ran) == {"tests/test_x.py::test_a_topic[ours]", "tests/test_x.py::test_slow"}


def test_a_line_that_names_no_test_is_an_error(folder: Path) -> None:
    status, printed, _ = run(folder, write_list(folder, "tests/test_x.py::test_renamed", "tests/test_x.py::test_slow"))
    assert status != 0
    assert "list.txt: tests/test_x.py::test_renamed names no test" in printed


def test_a_line_whose_file_is_gone_is_an_error(folder: Path) -> None:
    status, printed, _ = run(folder, write_list(folder, "tests/test_y.py", "tests/test_x.py::test_slow"))
    assert status != 0
    assert "list.txt: tests/test_y.py names no test" in printed


def test_a_line_of_a_file_that_is_not_collected_is_no_error(folder: Path) -> None:
    (folder / "tests" / "test_y.py").write_text("def test_y(): ...")
    cases = write_list(folder, "tests/test_y.py", "tests/test_x.py::test_slow")
    assert run(folder, cases, "tests/test_x.py")[0] == 0


def test_quarantined_cases_are_left_out_if_asked(folder: Path) -> None:
    quarantine = folder / "tests" / "quarantine.txt"
    quarantine.write_text("tests/test_x.py::test_fails 2026-03-19 an event came late\n")
    ran = run(folder, "--without-quarantined")[2]
    assert "tests/test_x.py::test_slow" in ran
    assert "tests/test_x.py::test_fails" not in ran


def test_a_case_that_fails_after_its_end_has_failed(folder: Path) -> None:
    ran = run(folder, f"--stop-at={time.monotonic() + 3600}")[2]
    assert ran["tests/test_x.py::test_leaves_something"] == "failed"
    assert "not started" not in ran.values()


@pytest.mark.parametrize(
    ("line", "case", "is_named"),
    [
        ("tests/a.py", "tests/a.py::test_b[c]", True),
        ("tests/a.py", "tests/a.pyx::test_b", False),
        ("tests/**", "tests/a.py::test_b", True),
        ("tests/a.py::test_b", "tests/a.py::test_b[c]", True),
        ("tests/a.py::test_b", "tests/a.py::test_b_too", False),
        ("tests/a.py::test_b[ours]", "tests/a.py::test_b[ours]", True),
        ("tests/a.py::test_b[ours]", "tests/a.py::test_b[o]", False),
        ("tests/a.py::test_b[ours-*]", "tests/a.py::test_b[ours-SSL-1]", True),
        ("tests/a.py::test_b[ours-*]", "tests/a.py::test_b[ours]", False),
        ("tests/a.py::TestB", "tests/a.py::TestB::test_c", True),
    ],
)
def test_a_line_names_a_file_a_folder_a_test_or_a_case(line: str, case: str, is_named: bool) -> None:
    assert matches(line, case) is is_named


def test_the_files_of_a_list_are_named_once() -> None:
    assert files_of(["a.py::test_b", "a.py::test_c[1]", "folder/**"]) == ["a.py", "folder"]


def make_quarantined(days: int, number: int = 0) -> Quarantined:
    return Quarantined(test=f"tests/test_{number}.py", since=TODAY - timedelta(days=days), reason="why")


def test_a_quarantine_lasts_seven_days() -> None:
    assert quarantine_problems([make_quarantined(7)], TODAY) == []
    (problem,) = quarantine_problems([make_quarantined(8)], TODAY)
    assert "tests/test_0.py is quarantined since 2026-03-12" in problem


def test_a_quarantine_has_ten_tests_at_most() -> None:
    few = [make_quarantined(0, number) for number in range(MOST_QUARANTINED)]
    assert quarantine_problems(few, TODAY) == []
    (problem,) = quarantine_problems([*few, make_quarantined(0, 99)], TODAY)
    assert "11 tests are quarantined, 10 are allowed" in problem


def test_a_line_without_date_or_reason_is_refused(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("tests/test_x.py::test_a[b c] why\n")
    with pytest.raises(ListError, match="write a test, a date such as"):
        read_quarantine(tmp_path / "q.txt")


def test_parameters_with_spaces_can_be_quarantined(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("tests/test_x.py::test_a[b c] 2026-03-19 an event came late\n")
    (found,) = read_quarantine(tmp_path / "q.txt")
    assert (found.test, found.since, found.reason) == (
        "tests/test_x.py::test_a[b c]",
        date(2026, 3, 19),
        "an event came late",
    )


def test_the_projects_quarantine_is_short_and_young() -> None:
    assert quarantine_problems(read_quarantine(PROJECT / QUARANTINE), date.today()) == []


@pytest.mark.parametrize("name", ["level1.txt", "chart.txt"])
def test_the_projects_lists_name_files_that_are_there(name: str) -> None:
    lines = read_cases(PROJECT / "tests" / name)
    assert lines
    assert [file for file in files_of(lines) if not (PROJECT / file).exists()] == []


NOTHING = ("-m", "nightly and not nightly")


def test_a_selection_that_is_empty_fails_unless_it_may_be(folder: Path) -> None:
    assert run(folder, *NOTHING)[0] == pytest.ExitCode.NO_TESTS_COLLECTED
    assert run(folder, "--may-select-none", *NOTHING)[0] == pytest.ExitCode.OK
    assert run(folder, "--may-select-none")[0] == pytest.ExitCode.TESTS_FAILED


def test_no_case_starts_when_the_time_of_the_run_is_over(folder: Path) -> None:
    status, _, ran = run(folder, f"--stop-at={time.monotonic()}", "--numprocesses=1")
    assert status == pytest.ExitCode.OK
    assert set(ran.values()) == {"not started"}


def test_files_with_cases_that_were_not_started_are_named_and_have_not_failed() -> None:
    ends = {"a.py::test_b": "passed", "a.py::test_c": "not started", "d.py::test_e": "passed"}
    cases = [Case(name=name, ended=ended, seconds=1, is_nightly=False) for name, ended in ends.items()]
    assert list_unstarted(cases) == ["a.py: 1 of 2 cases"]
    assert summary(cases).startswith("3 cases, 0 failed, 0 skipped, 1 not started; ")


def test_it_may_be_empty_in_several_processes_too(folder: Path) -> None:
    assert run(folder, "--may-select-none", "--numprocesses=1", *NOTHING)[0] == pytest.ExitCode.OK

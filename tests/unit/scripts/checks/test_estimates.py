"""The expected durations of test files."""

from datetime import UTC, datetime

import pytest

from scripts.checks.estimates import UNKNOWN_S, Estimates, count_cases
from scripts.checks.ledger import Ledger, Row

NOW = datetime(2026, 3, 20, tzinfo=UTC)


def make_row(seconds: float, quick_seconds: float) -> Row:
    return Row(ran=NOW, passed=NOW, seconds=seconds, quick_seconds=quick_seconds)


ROWS = {
    "tests/real/operator/test_a.py": make_row(100, 10),
    "tests/real/operator/test_b.py": make_row(200, 60),
    "tests/real/operator/moves/test_c.py": make_row(3000, 3000),
    "tests/real/operator/test_failed.py": Row(ran=NOW),
    "tests/spark/test_d.py": make_row(50, 20),
}
CASES = {
    "tests/real/operator/test_a.py": 1,
    "tests/real/operator/test_b.py": 2,
    "tests/real/operator/moves/test_c.py": 100,
    "tests/real/operator/test_failed.py": 3,
    "tests/real/operator/test_new.py": 4,
    "tests/real/operator/new/test_new.py": 2,
    "tests/unit/test_new.py": 7,
    "tests/spark/test_d.py": 1,
}


@pytest.fixture
def estimates() -> Estimates:
    return Estimates(ledger=Ledger(rows=ROWS), cases=CASES)


def test_a_file_with_servers_costs_what_its_quick_cases_took(estimates: Estimates) -> None:
    assert estimates.find_seconds("tests/real/operator/test_a.py") == 10


def test_a_file_without_servers_costs_what_all_its_cases_took(estimates: Estimates) -> None:
    assert estimates.find_seconds("tests/spark/test_d.py") == 50


@pytest.mark.parametrize(
    ("file", "seconds"),
    [("tests/real/operator/test_new.py", 4 * 30), ("tests/real/operator/test_failed.py", 3 * 30)],
)
def test_a_file_without_a_duration_costs_its_cases_times_the_median_of_its_folder(
    estimates: Estimates, file: str, seconds: float
) -> None:
    assert estimates.find_seconds(file) == seconds


def test_a_file_in_a_new_folder_is_estimated_by_the_folder_above(estimates: Estimates) -> None:
    assert estimates.find_seconds("tests/real/operator/new/test_new.py") == 2 * 30


def test_without_a_file_of_its_kind_the_estimate_is_fixed(estimates: Estimates) -> None:
    assert estimates.find_seconds("tests/unit/test_new.py") == UNKNOWN_S


PARAMETERS = """
@pytest.mark.parametrize("a", [1, 2, 3])
@pytest.mark.parametrize("b", range(1, 8))
def test_a(a, b): ...
"""
IN_A_CLASS = """
@pytest.mark.parametrize("a", ("x", "y"))
class TestA:
    def test_b(self, a): ...
    def test_c(self, a): ...
    def helper(self): ...
"""


@pytest.mark.parametrize(
    ("source", "cases"),
    [
        ("def helper(): ...", 1),
        ("def test_a(): ...\nasync def test_b(): ...", 2),
        (PARAMETERS, 21),
        (IN_A_CLASS, 4),
        ("@pytest.mark.parametrize('a', RELEASES)\n@nightly\ndef test_a(a): ...", 1),
        ("@pytest.mark.parametrize('a', range(LAST))\ndef test_a(a): ...", 1),
    ],
)
def test_parameters_that_are_written_out_are_cases(source: str, cases: int) -> None:
    assert count_cases(source) == cases

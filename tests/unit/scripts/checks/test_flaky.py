"""Repeated runs of tests: their bound, and their count over many sittings."""

from collections import Counter
from pathlib import Path

import pytest

from scripts.checks.flaky import (
    Record,
    Way,
    choose_next,
    count_run,
    digest_files,
    read_record,
    report,
    report_record,
    upper_bound,
    write_record,
)

ALONE = Way(name="alone")
BUSY = Way(name="beside 2 busy loops", busy_loops=2)
WAYS = (ALONE, BUSY)
A, B = "tests/real/test_a.py", "tests/real/test_b.py"


@pytest.mark.parametrize(
    ("failures", "runs", "bound"), [(0, 20, 0.1391), (1, 20, 0.2161), (5, 20, 0.4556), (20, 20, 1.0), (0, 1, 0.95)]
)
def test_the_bound_is_that_of_clopper_and_pearson(failures: int, runs: int, bound: float) -> None:
    assert upper_bound(failures, runs) == pytest.approx(bound, abs=2e-4)


def test_a_report_names_each_test_that_failed() -> None:
    assert report(Counter({"a": 1}), 20, "alone") == "1/20 alone: a (at most 21.6%)"
    assert report(Counter(), 20, "alone") == "0/20 alone: no test failed (each at most 13.9%)"


def start_record(*files: str) -> Record:
    return read_record(dict.fromkeys(files, "1"), Path("no-such-file"))


def test_runs_go_on_until_each_file_has_all_of_them_in_each_way() -> None:
    record, ran = start_record(A, B), Counter[tuple[str, str]]()
    while (chosen := choose_next(record, WAYS, 3)) is not None:
        way, files = chosen
        ran.update((way.name, file) for file in files)
        record = count_run(record, way, files, Counter())
    assert ran == {(way.name, file): 3 for way in WAYS for file in (A, B)}


def test_the_way_with_the_fewest_runs_is_next_with_the_files_that_lack_runs() -> None:
    record = count_run(start_record(A, B), ALONE, [A, B], Counter())
    assert choose_next(record, WAYS, 2) == (BUSY, [A, B])
    record = count_run(record, BUSY, [B], Counter())
    assert choose_next(record, WAYS, 1) == (BUSY, [A])


def test_a_failure_is_counted_for_its_file() -> None:
    failures = Counter({f"{A}::test_one[x]": 1, "tests/contract/test_c.py::test_two": 1})
    record = count_run(start_record(A, B, "tests/contract"), ALONE, [A, B, "tests/contract"], failures)
    assert {file: dict(each.ways["alone"].failures) for file, each in record.items()} == {
        A: {f"{A}::test_one[x]": 1},
        B: {},
        "tests/contract": {"tests/contract/test_c.py::test_two": 1},
    }


def test_the_count_goes_on_from_the_file_and_begins_again_for_a_file_that_changed(tmp_path: Path) -> None:
    path = tmp_path / "flaky.json"
    write_record(count_run(start_record(A, B), BUSY, [A, B], Counter({f"{A}::test_one": 1})), path)
    record = read_record({A: "1", B: "2"}, path)
    assert record[A].ways["beside 2 busy loops"].runs == 1
    assert record[B].ways == {}
    assert report_record(record, [BUSY]).splitlines() == [
        f"1/1 beside 2 busy loops (1 files): {A}::test_one (at most 100.0%)",
        "0/0 beside 2 busy loops (1 files): no test failed (each at most 100.0%)",
    ]


def test_the_content_of_a_folder_is_that_of_its_modules(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("a = 1")
    before = digest_files([str(tmp_path)])
    (tmp_path / "note.txt").write_text("no module")
    assert digest_files([str(tmp_path)]) == before
    (tmp_path / "test_a.py").write_text("a = 2")
    assert digest_files([str(tmp_path)]) != before

"""The rows of the ledger, the order of the nights, and the rows that a release waits for."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from scripts.checks.ledger import Ledger, Row, read_ledger, write_ledger
from scripts.checks.nightly import Shard, Step, group_of, groups, order_groups, record_step, run_step, step_of
from scripts.checks.runs import Case

NOW = datetime(2026, 3, 20, 4, 30, tzinfo=UTC)
DAY = timedelta(days=1)


def row(days_ago: float, *, has_passed: bool = True) -> Row:
    ran = NOW - days_ago * DAY
    return Row(ran=ran, passed=ran if has_passed else None, commit="abc", seconds=61.5, quick_seconds=20)


def case(name: str, ended: str = "passed", seconds: float = 1, *, is_nightly: bool = False) -> Case:
    return Case(name=name, ended=ended, seconds=seconds, is_nightly=is_nightly)


def test_a_ledger_is_read_as_it_was_written(tmp_path: Path) -> None:
    ledger = Ledger(green="abc", rows={"tests/a.py": row(1), "make demo": Row(ran=NOW)})
    write_ledger(ledger, tmp_path / "ledger.json")
    assert read_ledger(tmp_path / "ledger.json") == ledger


def test_a_ledger_has_a_line_for_each_row(tmp_path: Path) -> None:
    write_ledger(Ledger(rows={"b": row(1), "a": row(2)}), tmp_path / "ledger.json")
    lines = (tmp_path / "ledger.json").read_text().splitlines()
    assert [line.partition(":")[0].strip() for line in lines[1:3]] == ['"a"', '"b"']


def test_what_never_ran_runs_first_then_what_was_not_run_for_the_longest_time() -> None:
    ledger = Ledger(rows={"a": row(1), "b": row(3), "failed": row(2, has_passed=False)})
    assert ledger.longest_not_run(["a", "b", "failed", "new"]) == ["new", "b", "failed", "a"]


def test_a_release_waits_for_rows_that_have_not_passed_within_seven_days() -> None:
    rows = {"fresh": row(7), "old": row(7.01), "failed": row(1, has_passed=False)}
    assert Ledger(rows=rows).stale(["fresh", "old", "failed", "new"], NOW) == ["old", "failed", "new"]


def test_all_shards_together_run_everything_once() -> None:
    names = [f"tests/{number}.py" for number in range(10)]
    shares = [Shard(number=number, of=3).share(names) for number in (1, 2, 3)]
    assert sorted(name for share in shares for name in share) == names


@pytest.mark.parametrize("text", ["8/7", "0/7", "1/0", "2", "a/b", "-1/7", ""])
def test_a_shard_that_would_run_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="such as 2/7"):
        Shard.parse(text)


def test_a_shard_is_its_number_and_how_many_there_are() -> None:
    assert Shard.parse("2/7") == Shard(number=2, of=7)


def test_files_with_spark_run_alone_and_others_by_folder() -> None:
    files = ["tests/real/test_a.py", "tests/real/test_b.py", "tests/real/chart/test_a.py", "tests/spark/test_d.py"]
    assert groups([*files, "tests/unit/zk/test_b.py", "tests/unit/zk/test_c.py"]) == {
        "tests/real": ["tests/real/test_a.py", "tests/real/test_b.py"],
        "tests/real/chart": ["tests/real/chart/test_a.py"],
        "tests/spark/test_d.py": ["tests/spark/test_d.py"],
        "tests/unit/zk": ["tests/unit/zk/test_b.py", "tests/unit/zk/test_c.py"],
    }


def test_the_files_that_share_a_release_run_together() -> None:
    assert group_of("tests/e2e/test_1_installation.py") == group_of("tests/e2e/test_5_uninstall.py")
    assert group_of("tests/e2e/without_release/test_secured.py") == "tests/e2e/without_release/test_secured.py"


def test_what_was_not_run_for_the_longest_time_runs_first_but_a_release_s_files_keep_their_order() -> None:
    longest = [
        "tests/e2e/test_3.py",
        "make demo",
        "tests/real/test_b.py",
        "tests/e2e/test_1.py",
        "tests/real/test_a.py",
    ]
    grouped = {**groups(each for each in longest if each.endswith(".py")), "make demo": []}
    assert order_groups(grouped, longest) == [
        ("tests/e2e", ["tests/e2e/test_1.py", "tests/e2e/test_3.py"]),
        ("make demo", []),
        ("tests/real", ["tests/real/test_b.py", "tests/real/test_a.py"]),
    ]


def test_a_rehearsal_is_run_as_it_is_written() -> None:
    assert step_of("make demo KRAFT=1", [], seed=1, logs=Path("x"), stop_at_s=0).command == ("make", "demo", "KRAFT=1")


def test_a_file_that_passed_has_its_durations_and_one_that_failed_keeps_its_last_pass() -> None:
    step = Step(names=("a.py", "b.py", "c.py"), command=(), ran=Path("x"))
    cases = [case("a.py::x", seconds=2), case("a.py::y", seconds=5, is_nightly=True), case("b.py::x", "failed")]
    before = Ledger(rows={"b.py": row(3)})
    after = record_step(before, step, cases, ["b.py::x", "c.py"], Row(ran=NOW, commit="def")).rows
    assert after["a.py"] == Row(ran=NOW, passed=NOW, commit="def", seconds=7, quick_seconds=2)
    assert (after["b.py"].ran, after["b.py"].passed, after["b.py"].commit) == (NOW, NOW - 3 * DAY, "abc")
    assert (after["c.py"].ran, after["c.py"].passed) == (NOW, None)


def test_a_file_whose_cases_did_not_all_start_keeps_its_row() -> None:
    step = Step(names=("a.py", "b.py"), command=(), ran=Path("x"))
    cases = [case("a.py::x"), case("a.py::y", "not started", 0), case("b.py::x", "not started", 0)]
    before = Ledger(rows={"a.py": row(3)})
    assert record_step(before, step, cases, [], Row(ran=NOW, commit="def")) == before


def test_a_file_that_does_not_load_has_failed_and_the_others_have_passed(tmp_path: Path) -> None:
    said = {"case": "a.py::x", "ended": "passed", "seconds": 1, "nightly": False}
    writes = f"echo '{json.dumps(said)}' > {tmp_path}/ran; exit 2"
    step = Step(names=("a.py", "b.py"), command=("bash", "-c", writes), ran=tmp_path / "ran")
    ledger, failed = run_step(step, Ledger(rows={}), "def", tmp_path)
    assert failed == ["b.py"]
    assert ledger.rows["a.py"].passed is not None
    assert ledger.rows["b.py"].passed is None


def test_a_rehearsal_has_the_duration_of_its_run() -> None:
    step = Step(names=("make demo",), command=())
    after = record_step(Ledger(rows={}), step, [], [], Row(ran=NOW, commit="def", seconds=40)).rows
    assert (after["make demo"].passed, after["make demo"].seconds) == (NOW, 40)

"""Stamps of the year 58,210 in one cluster's journal: the report of the whole fleet has every other cluster and time."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kontroller.history.answers.options import Options
from kontroller.history.kept_history import KeptHistory
from kontroller.history.reports.report import ReportSummary
from tests.spark.clocks.journals import START_S, Journal, lines
from tests.spark.histories import make_lines

FAR_S = 58_210 * 365.2425 * 86_400 - 1970 * 365.2425 * 86_400 - START_S
RIGHT = Journal().begin().live(100).lead(0, -1).live(30).lead(0, 2).live(100).wait(5).begin().live(100)
ONE_STAMP = Journal().begin().live(100).alive(off_s=FAR_S).live(100)
LAST_STAMP = Journal().begin().live(100).gap(2).resign(off_s=FAR_S)
WHOLE_TERM = Journal().begin().live(100).wait(5).begin(ahead_s=FAR_S).live(50).wait(5).begin().live(100)
ALL_OF_IT = Journal().begin(ahead_s=FAR_S).lead(0, -1).live(100)
SECOND_CONTROLLER = Journal().begin().live(100).alive(off_s=FAR_S, controller_id=7).live(50)
CLUSTERS = {
    "right": RIGHT, "one stamp": ONE_STAMP, "last stamp": LAST_STAMP, "whole term": WHOLE_TERM, "all of it": ALL_OF_IT,
    "second controller": SECOND_CONTROLLER,
}  # fmt: skip


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> ReportSummary:
    kept = KeptHistory.open_history(spark, str(tmp_path_factory.mktemp("history")))
    kept.take_in_lines(make_lines(spark, *(lines(journal.records, name) for name, journal in CLUSTERS.items())))
    kept.fold()
    return kept.report(tmp_path_factory.mktemp("report"), Options(), kept.period(None, None, None))


def read_table(written: ReportSummary, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (written.page.parent / "tables" / f"{name}.json").read_text().splitlines()]


def test_every_file_was_written(written: ReportSummary) -> None:
    assert {path.with_suffix(".json") for path in written.tables} == {
        *Path(written.page.parent / "tables").glob("*.json")
    }
    assert "right" in written.page.read_text()


def test_no_table_has_a_time_that_was_not_believed(written: ReportSummary) -> None:
    for path in written.tables:
        assert "58210-" not in path.with_suffix(".json").read_text()
        assert "2026-" in path.with_suffix(".json").read_text() or not path.with_suffix(".json").read_text()


def test_terms_begin_and_end_with_what_is_believed_of_them(written: ReportSummary) -> None:
    terms = {(row["cluster_id"], row["controller_epoch"]): row for row in read_table(written, "controllers")}
    times = {key: (row["began"], row["ended"]) for key, row in terms.items()}
    begin = "2026-01-01T00:00:00Z"
    assert times["right", 1] == (begin, "2026-01-01T00:03:50Z")
    assert times["last stamp", 1] == (begin, "2026-01-01T00:01:40Z")
    assert times["whole term", 2] == (None, None)
    assert times["all of it", 1] == (None, None)


def test_the_outage_of_the_other_cluster_is_told(written: ReportSummary) -> None:
    down = (row for row in read_table(written, "incidents") if row["began"] < row["ended"])
    (incident,) = (row for row in down if row["cluster_id"] == "right" and row["problem"] == "leaderless")
    assert (incident["began"], incident["ended"]) == ("2026-01-01T00:01:40Z", "2026-01-01T00:02:10Z")

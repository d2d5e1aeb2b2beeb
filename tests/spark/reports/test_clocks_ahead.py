"""Clusters whose whole clock is ahead: the report of the fleet ends now, and names them."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kontroller.history.answers.options import Options
from kontroller.history.kept_history import KeptHistory
from kontroller.history.reports.period import moment_of
from kontroller.history.reports.report import ReportSummary
from tests.spark.clocks.journals import START_S, Journal, lines
from tests.spark.histories import make_lines

AHEAD_S = {"a year": 366 * 86_400, "7,900 years": 7_900 * 366 * 86_400, "an hour": 3_600}
RIGHT = Journal().begin().live(100).lead(0, -1).live(30).lead(0, 2).live(70)
NOW_S = 200
CLUSTERS = {"right": RIGHT, **{name: Journal().begin(ahead_s=ahead_s).live(100) for name, ahead_s in AHEAD_S.items()}}


def begin_year(year: int) -> datetime:
    return datetime(year, 1, 1, tzinfo=UTC)


def find_moment(seconds: int) -> datetime:
    return moment_of((START_S + seconds) * 1_000_000)


@pytest.fixture(scope="module")
def kept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> KeptHistory:
    kept = KeptHistory.open_history(spark, str(tmp_path_factory.mktemp("history")))
    kept.take_in_lines(make_lines(spark, *(lines(journal.records, name) for name, journal in CLUSTERS.items())))
    kept.fold()
    return kept


@pytest.fixture(scope="module")
def written(kept: KeptHistory, tmp_path_factory: pytest.TempPathFactory) -> ReportSummary:
    now = find_moment(NOW_S)
    period = kept.period(None, None, None, now)
    return kept.report(tmp_path_factory.mktemp("report"), Options(), period, now=now)


def read_page(path: Path) -> str:
    return path.read_text().replace("<wbr>", "")


def read_table(written: ReportSummary, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (written.page.parent / "tables" / f"{name}.json").read_text().splitlines()]


@pytest.mark.parametrize(("now_s", "ended_s"), [(200, 200), (150, 150), (7_200, 3_700)])
def test_the_period_ends_with_what_is_known_until_now(kept: KeptHistory, now_s: int, ended_s: int) -> None:
    period = kept.period(None, None, None, find_moment(now_s))
    assert (period.began, period.ended) == (find_moment(0), find_moment(ended_s) + timedelta(microseconds=1))


@pytest.mark.parametrize(
    ("began", "ended", "days", "why"),
    [
        (begin_year(1), begin_year(9999), None, "has more than 36,500 days"),
        (begin_year(1), None, None, "has more than 36,500 days"),
        (None, begin_year(50), 36_500, "has no 36500 days before"),
    ],
)
def test_a_period_that_is_too_long_is_refused(
    kept: KeptHistory, began: datetime | None, ended: datetime | None, days: int | None, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        kept.period(began, ended, days, find_moment(NOW_S))


def test_a_clock_that_is_hardly_ahead_is_believed(kept: KeptHistory) -> None:
    end_s = max(AHEAD_S.values()) + 100
    period = kept.period(None, None, None, find_moment(end_s - 300))
    assert period.ended == find_moment(end_s) + timedelta(microseconds=1)


def test_the_page_names_clusters_whose_clock_is_ahead(written: ReportSummary) -> None:
    page = read_page(written.page)
    assert "its clock is ahead of the clock here: records until 2027-01-02 00:01:40" in page
    assert "its clock is ahead of the clock here: records until 2026-01-01 01:01:40" in page


def test_the_others_are_not_silent(written: ReportSummary) -> None:
    assert "silent since" not in read_page(written.page)
    levels = [row for row in read_table(written, "service_levels") if row["cluster_id"] == "right"]
    assert {row["as_of"] for row in levels} == {"2026-01-01T00:03:20Z"}

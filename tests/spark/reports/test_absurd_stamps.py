"""Clusters with absurd stamps beside a good one: the report ends, names them, and says of the good one what it says of
it alone."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from pyspark.sql import SparkSession

from kontroller.history.answers.options import Options
from kontroller.history.kept_history import KeptHistory
from tests.spark.clocks.journals import Journal, lines
from tests.spark.clocks.oracle import Record
from tests.spark.histories import make_lines

GOOD: Final = "good"
STAMPS_US: Final = {
    "least": -(2**63),
    "year 1": -62_135_596_800_000_000,
    "before 1970": -1,
    "1970": 0,
    "2255": 8_993_721_600_000_000,
    "9999": 253_402_300_799_000_000,
    "most": 2**63 - 1,
    "too large": 2**63,
}
BEFORE: Final = "the last record before the resignation"
RESIGNATION: Final = "the resignation"
REFUSED: Final = {"least": "impossible", "year 1": "impossible", "before 1970": "impossible", "too large": "unreadable"}
"""The finding about a record that is left out because of its stamp."""
CASES: Final = [(where, stamp) for where in (BEFORE, RESIGNATION) for stamp in STAMPS_US]
UNNAMED: Final = [(RESIGNATION, stamp) for stamp in ("2255", "9999", "most")]
"""A resignation long after the record before it counts as late, whatever its stamp, and makes no finding."""
Rows = list[dict[str, Any]]


class Written(NamedTuple):
    """A report: the rows of its tables, and the bounds of its period."""

    tables: Mapping[str, Rows]
    period: tuple[str, str]

    def select_cluster(self, name: str) -> dict[str, Rows]:
        of = {table: [row for row in rows if row.get("cluster_id") == name] for table, rows in self.tables.items()}
        return {table: rows for table, rows in of.items() if rows}


def write_records() -> list[Record]:
    journal = Journal().begin().live(100).lead(0, -1).live(30).lead(0, 2).live(100).resign()
    return journal.wait(5).begin().live(100).records


def write_stamped(where: str, stamp_us: int) -> list[Record]:
    """Return the same records, one of them with another stamp."""
    records = write_records()
    resigned = next(place for place, record in enumerate(records) if record["kind"] == "controller_resigned")
    records[resigned - (where == BEFORE)]["event_time_us"] = stamp_us
    return records


def write_report(spark: SparkSession, folder: Path, clusters: Mapping[str, list[Record]]) -> Written:
    kept = KeptHistory.open_history(spark, str(folder / "history"))
    kept.take_in_lines(make_lines(spark, *(lines(records, name) for name, records in clusters.items())))
    kept.fold()
    period = kept.period(None, None, None)
    written = kept.report(folder / "report", Options(), period)
    files = {path.stem: path.with_suffix(".json").read_text().splitlines() for path in written.tables}
    tables = {name: [json.loads(line) for line in text] for name, text in files.items()}
    return Written(tables, (period.began.isoformat(), period.ended.isoformat()))


@pytest.fixture(scope="module")
def alone(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_report(spark, tmp_path_factory.mktemp("alone"), {GOOD: write_records()})


@pytest.fixture(scope="module")
def beside(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Written:
    bad = {f"{where}: {stamp}": write_stamped(where, STAMPS_US[stamp]) for where, stamp in CASES}
    return write_report(spark, tmp_path_factory.mktemp("beside"), {GOOD: write_records(), **bad})


def test_a_good_cluster_has_the_figures_that_it_has_alone(alone: Written, beside: Written) -> None:
    assert beside.select_cluster(GOOD) == alone.select_cluster(GOOD)
    (day,) = (row for row in alone.select_cluster(GOOD)["availability_daily"])
    assert (day["leaderless_seconds"], day["partition_seconds"]) == (30, 670)


def test_no_absurd_stamp_makes_the_period_longer(beside: Written) -> None:
    assert beside.period == ("2026-01-01T00:00:00+00:00", "2026-01-01T00:05:35.000001+00:00")


@pytest.mark.parametrize(("where", "stamp"), [case for case in CASES if case not in UNNAMED])
def test_the_report_names_each_cluster_with_the_absurd_stamp(beside: Written, where: str, stamp: str) -> None:
    found = beside.select_cluster(f"{where}: {stamp}")["findings"]
    expected = {REFUSED[stamp]: 1} if stamp in REFUSED else {"clock_not_believed": 1}
    if stamp in REFUSED and where == BEFORE:
        expected["gap"] = 1
    if (where, stamp) == (BEFORE, "1970"):
        expected["clock_not_believed"] = 2  # a resignation long after its predecessor shares the doubt about that
    assert {row["problem"]: row["count"] for row in found} == expected


@pytest.mark.parametrize(("where", "stamp"), CASES)
def test_the_outage_beside_an_absurd_stamp_lasts_as_long_as_it_did(beside: Written, where: str, stamp: str) -> None:
    (day,) = beside.select_cluster(f"{where}: {stamp}")["availability_daily"]
    assert day["leaderless_seconds"] == 30

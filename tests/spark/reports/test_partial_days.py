"""A report covers exactly its period, even an hour of a day, or a period that begins and ends in the middle of days."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet
import pytest
from pyspark.sql import DataFrame, SparkSession

from kontroller.history import schemas
from kontroller.history.answers.all import answer_all
from kontroller.history.answers.options import Options
from kontroller.history.reports.limits import Limits
from kontroller.history.reports.period import Period
from kontroller.history.reports.report import write_report
from kontroller.history.reports.selection import rows
from kontroller.history.reports.selection.partial_days import restrict_to_period
from kontroller.history.reports.selection.tables import Tables, tables_of
from tests.spark.answers.literals import DAY, DAY_1, Histories, broker, event, make_time, partition, span, table

HOUR: Final = 3600

HISTORY: Final = [
    span(0, 3 * DAY),
    *(broker(number, rack, 0, 3 * DAY) for number, rack in ((1, "a"), (2, "b"), (3, "c"))),
    event(10.5 * HOUR, "broker_removed", broker=1, seq=500, correlation_id="1-5"),
    *partition(
        (0, {}),
        (10.5 * HOUR, {"leader": -1, "isr": [1], "cause": "broker_failed", "correlation_id": "1-5"}),
        (11.5 * HOUR, {"leader": 1, "isr": [1, 2, 3]}),
        (20 * HOUR, {"isr": [1, 2]}),
        (DAY + 20 * HOUR, {"isr": [1, 2, 3]}),
        (2 * DAY + HOUR, None),
        (2 * DAY + 3 * HOUR, {}),
        until=3 * DAY,
    ),
]
PERIODS: Final = {
    "the outage's first hour": (10, 11),
    "its second": (11, 12),
    "two nights": (23, 2 * 24 + 2),
    "in the unknown": (2 * 24 + 2, 2 * 24 + 4),
}


@pytest.fixture(scope="module")
def given(spark: SparkSession) -> Mapping[str, DataFrame]:
    histories = Histories(spark, {"c": HISTORY})
    layers = {
        schemas.EVENTS: histories.events,
        schemas.KNOWN_SPANS: histories.spans,
        schemas.PARTITION_INTERVALS: histories.partitions,
        schemas.BROKER_INTERVALS: histories.brokers,
    }
    answered = {table: found.localCheckpoint() for table, found in answer_all(layers).items()}
    return {table.name: found for table, found in (layers | answered).items()}


def period(hours: tuple[float, float]) -> Period:
    began, ended = (DAY_1 + timedelta(hours=hour) for hour in hours)
    return Period(began=began, ended=ended)


@pytest.fixture(scope="module")
def exact(given: Mapping[str, DataFrame]) -> Iterator[Mapping[str, Tables]]:
    with ExitStack() as stack:
        cut = {name: tables_of(given, period(hours)) for name, hours in PERIODS.items()}
        yield {name: stack.enter_context(restrict_to_period(tables, given, Options())) for name, tables in cut.items()}


@pytest.mark.parametrize("until", [10.5, 11.5, 12])
def test_the_incidents_of_adjacent_periods_are_those_of_both_together(
    given: Mapping[str, DataFrame], until: float
) -> None:
    counts = [rows.incidents(tables_of(given, period(hours))).count() for hours in ((9, until), (until, 13))]
    assert sum(counts) == rows.incidents(tables_of(given, period((9, 13)))).count() == 1


def test_an_incident_without_length_counts_in_one_of_adjacent_periods(spark: SparkSession) -> None:
    incident = {"problem": "leaderless", "began": make_time(11 * HOUR), "ended": make_time(11 * HOUR)}
    given = {schemas.INCIDENTS.name: table(spark, schemas.INCIDENTS, {"c": [incident]})}
    counts = [rows.incidents(tables_of(given, period(hours))).count() for hours in ((9, 11), (11, 13))]
    assert counts == [0, 1]


def only(found: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in columns) for row in found.collect())


def test_an_hour_with_half_an_hour_down_was_available_for_half_of_it(exact: Mapping[str, Tables]) -> None:
    names = ("availability", "leaderless_seconds", "known_us")
    for half in ("the outage's first hour", "its second"):
        assert only(rows.uptimes(exact[half], "cluster_id"), *names) == [(0.5, 1800, HOUR * 10**6)]
        causes = only(rows.causes(exact[half]), "cause", "leaderless_seconds")
        assert causes == [("broker_failed", 1800)]
        assert only(rows.exposures(exact[half]), "most", "replica_seconds") == [(1, 1800)]
        assert only(rows.racks(exact[half]), "rack", "in_sync") == [("a", 1), ("b", 0.5), ("c", 0.5)]
        shares = only(rows.leadership(exact[half]), "broker", "leader_us", "replica_us")
        assert shares == [(1, 1800 * 10**6, HOUR * 10**6), (2, 0, HOUR * 10**6), (3, 0, HOUR * 10**6)]


def test_what_came_before_the_period_is_still_known_of_what_happens_in_it(exact: Mapping[str, Tables]) -> None:
    names = ("broker", "shrinks", "expansions", "flaps", "out_seconds")
    assert only(rows.flaps(exact["the outage's first hour"]), *names) == [(2, 1, 0, 0, 1800), (3, 1, 0, 0, 1800)]
    assert only(rows.flaps(exact["its second"]), *names) == [(2, 0, 1, 1, 1800), (3, 0, 1, 1, 1800)]
    racks = only(rows.racks(exact["in the unknown"]), "rack", "replica_us", "unknown_us")
    assert racks == [(rack, 2 * HOUR * 10**6, HOUR * 10**6) for rack in "abc"]


def test_a_crash_counts_in_the_period_in_which_it_may_have_been(exact: Mapping[str, Tables]) -> None:
    assert only(rows.uptimes(exact["the outage's first hour"], "cluster_id"), "detection_us") == [(18 * 10**6,)]
    assert only(rows.uptimes(exact["its second"], "cluster_id"), "detection_us") == [(0,)]


def test_whole_days_between_the_ends_of_a_period_count_whole(exact: Mapping[str, Tables]) -> None:
    nights = exact["two nights"]
    whole = only(rows.uptimes(nights, "cluster_id"), "exist_us", "unknown_us")
    assert whole == [(27 * HOUR * 10**6, HOUR * 10**6)]
    days = only(rows.uptimes(nights, "cluster_id", "day"), "exist_us")
    assert days == [(HOUR * 10**6,), (2 * HOUR * 10**6,), (DAY * 10**6,)]
    [[out]] = only(rows.flaps(nights), "out_seconds")
    assert out == 21 * HOUR


def test_a_period_of_whole_days_is_what_was_answered(given: Mapping[str, DataFrame]) -> None:
    tables = tables_of(given, period((24, 48)))
    with restrict_to_period(tables, given, Options()) as found:
        assert found is tables
    assert only(rows.uptimes(tables, "cluster_id"), "exist_us") == [(DAY * 10**6,)]


def test_without_the_intervals_days_stay_whole_and_the_tables_say_so(given: Mapping[str, DataFrame]) -> None:
    answers = {table.name: given[table.name] for table in schemas.ANSWERS}
    tables = tables_of(answers, period((10, 11)))
    with restrict_to_period(tables, answers, Options()) as found:
        assert found.has_whole_days
        assert only(rows.uptimes(found, "cluster_id"), "exist_us") == [(DAY * 10**6,)]


def test_the_page_of_an_hour_is_of_that_hour_and_its_files_are_of_whole_days(
    given: Mapping[str, DataFrame], tmp_path: Path
) -> None:
    written = write_report(given, tmp_path, period=period((10, 11)), limits=Limits(table_rows=5))
    assert (written.availability, written.leaderless_seconds) == (0.5, 1800)
    page = written.page.read_text()
    assert "50.00 %" in page
    assert "at least 49.50 %, with at most 18 s until each crash was noticed" in page
    kept = pyarrow.parquet.read_table(tmp_path / "tables/availability_daily.parquet")
    assert kept.column("partition_seconds").to_pylist() == [DAY]

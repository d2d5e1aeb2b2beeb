"""A page of several clusters: each has a row, even one that fell silent before the period, and the size of the drawing
is bounded."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession

from kontroller.history import schemas
from kontroller.history.answers.all import answer_all
from kontroller.history.answers.options import Options
from kontroller.history.kept_history import KeptHistory, NoHistory
from kontroller.history.reports.limits import Limits
from kontroller.history.reports.period import Period
from kontroller.history.reports.report import write_report
from kontroller.history.reports.selection.before import figures_before
from kontroller.history.reports.selection.clusters import clusters, find_silent_partitions, totals
from kontroller.history.reports.selection.tables import tables_of
from tests.spark.answers.literals import DAY, DAY_1, Histories, Row, broker, partition, span, table

HOUR: Final = 3600
BROKERS: Final = [broker(number, None, 0, 60 * DAY) for number in (1, 2, 3)]
FLAP: Final = ((HOUR, {"isr": [1, 2]}), (2 * HOUR, {"isr": [1, 2, 3]}))
FLEET: Final[Mapping[str, Iterable[Row]]] = {
    "well": [span(0, 60 * DAY), *BROKERS, *partition((0, {}), until=60 * DAY)],
    "down": [
        span(0, 60 * DAY),
        *BROKERS,
        *partition(
            (0, {}), *FLAP, (59 * DAY + HOUR, {"leader": -1}), (59 * DAY + 2 * HOUR, {"leader": 1}), until=60 * DAY
        ),
    ],
    "silent": [
        span(0, 59 * DAY - HOUR),
        broker(1, None, 0, 59 * DAY - HOUR),
        *partition((0, {}), until=59 * DAY - HOUR),
    ],
    "given up": [span(0, DAY), broker(1, None, 0, DAY), *partition((0, {}), until=DAY)],
    "two holes": [
        span(0, 59 * DAY + HOUR),
        span(59 * DAY + 3 * HOUR, 59 * DAY + 4 * HOUR),
        span(59 * DAY + 5 * HOUR, 60 * DAY),
        *BROKERS,
        *partition((0, {}), (59 * DAY + HOUR, None), (59 * DAY + 5 * HOUR, {}), until=60 * DAY),
    ],
}
LAST_DAY: Final = Period(began=DAY_1 + timedelta(days=59), ended=DAY_1 + timedelta(days=60))


@pytest.fixture(scope="module")
def given(spark: SparkSession) -> Mapping[str, DataFrame]:
    histories = Histories(spark, {name: list(rows) for name, rows in FLEET.items()})
    layers = {
        schemas.EVENTS: histories.events,
        schemas.KNOWN_SPANS: histories.spans,
        schemas.PARTITION_INTERVALS: histories.partitions,
        schemas.BROKER_INTERVALS: histories.brokers,
        schemas.FINDINGS: table(spark, schemas.FINDINGS, {"down": findings()}),
        schemas.VIOLATIONS: table(spark, schemas.VIOLATIONS, {"well": [{"invariant": "i", "event_time": DAY_1}]}),
    }
    answered = {one: found.localCheckpoint() for one, found in answer_all(layers).items()}
    return {one.name: found for one, found in (layers | answered).items()}


def findings() -> list[Row]:
    """Return a finding on each of two days, and two of unknown time."""
    times = (DAY_1 + timedelta(days=58, hours=1), LAST_DAY.began, None)
    rows = [{"problem": "gap", "event_time": when, "count": 1, "detail": str(when)} for when in times]
    return [*rows, {"problem": "clock_not_believed", "event_time": None, "count": 9, "detail": "of 1970"}]


@pytest.fixture(scope="module")
def rows(given: Mapping[str, DataFrame]) -> Mapping[str, Mapping[str, Any]]:
    found = clusters(tables_of(given, LAST_DAY)).collect()
    assert len({row["cluster_id"] for row in found}) == len(found)
    return {row["cluster_id"]: row.asDict() for row in found}


def test_a_cluster_that_fell_silent_before_the_period_has_a_row_and_one_that_was_given_up_has_none(
    rows: Mapping[str, Mapping[str, Any]],
) -> None:
    assert rows.keys() == {"well", "down", "silent", "two holes"}
    silent = rows["silent"]
    assert (silent["availability"], silent["unknown_share"]) == (None, 1)
    assert silent["known_until"].timestamp() == (LAST_DAY.began - timedelta(hours=1)).timestamp()


def test_a_row_has_what_says_whether_a_cluster_needs_a_look(rows: Mapping[str, Mapping[str, Any]]) -> None:
    names = ("leaderless_seconds", "unclean", "violations", "findings", "unknown_share")
    assert [rows["down"][name] for name in names] == [3600, 0, 0, 3, 0]
    assert rows["two holes"]["unknown_share"] == pytest.approx(3 / 24)
    assert rows["well"]["known_until"].timestamp() == LAST_DAY.ended.timestamp()
    assert rows["down"]["concern_us"] > rows["two holes"]["concern_us"]


def test_what_was_not_audited_has_no_count_of_violations(given: Mapping[str, DataFrame]) -> None:
    unaudited = {name: found for name, found in given.items() if name != schemas.VIOLATIONS.name}
    found = clusters(tables_of(unaudited, LAST_DAY)).select("violations", "findings").distinct().collect()
    assert {row["violations"] for row in found} == {None}


def test_flaps_and_findings_of_the_period_before_are_compared(given: Mapping[str, DataFrame]) -> None:
    before = figures_before(given, LAST_DAY)
    assert before is not None
    assert before.counts["findings"] == 1  # without those of unknown time, which are in every period
    assert before.counts["flaps"] == 0
    half = DAY_1 + timedelta(hours=2, minutes=30)
    later = figures_before(given, Period(began=half, ended=half + timedelta(hours=1)))
    assert later is not None
    assert later.counts["flaps"] == 1  # in the middle of a day


def test_without_intervals_flaps_are_not_compared(given: Mapping[str, DataFrame]) -> None:
    alone = figures_before({schemas.FINDINGS.name: given[schemas.FINDINGS.name]}, LAST_DAY)
    assert alone is not None
    assert alone.counts == {"findings": 1}


def test_the_time_of_a_cluster_that_fell_silent_before_the_period_is_unknown(given: Mapping[str, DataFrame]) -> None:
    tables = tables_of(given, LAST_DAY)
    assert totals(tables) == (3, 1, (3 * HOUR + DAY) * 10**6)
    assert find_silent_partitions(tables) == 1


def test_the_page_draws_few_clusters_and_leads_to_all(given: Mapping[str, DataFrame], tmp_path: Path) -> None:
    limits = Limits(clusters=2, brokers=2, table_rows=3)
    written = write_report(given, tmp_path, period=LAST_DAY, limits=limits, options=Options())
    assert written.clusters == 3  # clusters with data in the period
    # An hour without a leader, a hole of four hours, and the day of the silent cluster's only partition.
    assert written.bounds == pytest.approx((1 - (HOUR + 4 * HOUR + DAY) / (4 * DAY), 1 - HOUR / (4 * DAY)))
    source = written.page.read_text()
    assert "3 of 4 clusters need attention" in source
    assert "silent since 2026-02-28 23:00:00" in source
    top = source.split("Risk of data loss")[0]
    order = [top.index(f">{name}</a>") for name in ("down", "silent", "two holes")]
    assert order == sorted(order)
    assert source.count('aria-label="Share of leaders by broker"') == 1  # the other one that is drawn is silent
    assert "1 of 3 brokers" in source
    holes = source.split('id="unknown"')[1].split("</section>")[0]
    assert holes.count("two holes") == 2  # though it is not drawn


def test_a_report_of_one_cluster_has_nothing_of_others(
    spark: SparkSession, given: Mapping[str, DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeptHistory.open_history(spark, str(tmp_path / "history"))
    with kept.store.begin_change() as change:
        for layer in schemas.LAYERS:
            change.write(layer, given.get(layer.name, spark.createDataFrame([], layer.schema)))
    found = given[schemas.VIOLATIONS.name]
    monkeypatch.setattr(KeptHistory, "audit", lambda _, clusters: found.where(found.cluster_id.isin(*clusters)))
    written = kept.report(tmp_path / "page", Options(), LAST_DAY, clusters=["down"])
    assert (written.clusters, written.findings) == (1, 3)
    source = written.page.read_text()
    assert "<h1>down</h1>" in source
    assert "two holes" not in source
    assert "2 without a known time" in source
    assert "of 1970" in source
    with pytest.raises(NoHistory, match="has no cluster nobody"):
        kept.report(tmp_path / "page", Options(), LAST_DAY, clusters=["down", "nobody"])

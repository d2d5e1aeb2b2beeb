"""The plans of the commands' tables: no task gets all records, even if most are of one topic or partition."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kontroller.history import kept_history
from kontroller.history.answers.options import Options
from kontroller.history.audit.partition_history import partition_history, select_known
from kontroller.history.folding import embedded
from kontroller.history.folding.tables import RAW_EVENTS
from kontroller.history.kept_history import KeptHistory
from kontroller.history.schemas import ANSWERS, EVENTS, KNOWN_SPANS, LAYERS, VIOLATIONS, Table
from kontroller.history.sources import journal_files
from kontroller.history.store import Change
from tests.spark.histories import random_cluster
from tests.spark.planned.plans import Window, windows

WITHIN_TOPICS = {"partition", "partition_key", "hour"}
"""The columns that divide the rows of a topic."""


def is_over_most_of_a_history(window: Window) -> bool:
    """Return True if one task gets all records about the partitions of one topic, or more."""
    if window.keys & WITHIN_TOPICS or not window.keys & {"topic", "topic_key"}:
        return False
    is_of_sums = bool(window.sums_by) and window.sums_by <= window.keys | {"hour"}
    return "topic" not in window.is_over_alone and not is_of_sums


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> KeptHistory:
    return KeptHistory.open_history(spark, str(tmp_path_factory.mktemp("history")))


@pytest.fixture(scope="module")
def made(
    spark: SparkSession, history: KeptHistory, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, list[Window]]:
    """The windows of each table that `kontroller history ingest` and `report` make, by name."""
    journal = tmp_path_factory.mktemp("journal") / "segment.jsonl"
    journal.write_bytes(b"".join(random_cluster(5, cluster_id="planned", events=20).lines))
    found: dict[str, list[Window]] = {}

    def watch_writes(write: Callable[..., str]) -> Callable[..., str]:
        def write_watched(change: Change, table: Table, rows: DataFrame, *how: Any) -> str:
            found.setdefault(table.name, []).extend(windows(rows))
            return write(change, table, rows, *how)

        return write_watched

    def report(tables: Mapping[str, DataFrame], _: Path, **how: object) -> None:
        for table in (*ANSWERS, VIOLATIONS):
            found[table.name] = windows(tables[table.name])

    with pytest.MonkeyPatch.context() as shipped:
        shipped.setattr(embedded, "LARGEST_BYTES", 0)  # Spark folds very large clusters, so plans matter for them
        shipped.setattr(Change, "_write", watch_writes(Change._write))
        shipped.setattr(kept_history, "write_report", report)
        history.take_in_lines(journal_files.lines(spark, [str(journal.parent)]))
        history.fold()
        history.report(journal.parent, Options(), history.period(None, None, None))
    return found


def test_no_window_is_over_a_topic_which_may_have_most_of_all_records(made: Mapping[str, list[Window]]) -> None:
    assert made.keys() >= {table.name for table in (RAW_EVENTS, *LAYERS, *ANSWERS, VIOLATIONS)}
    assert sum(map(len, made.values())) > 30, "or this looks at nothing"
    assert {
        table: window.text for table, found in made.items() for window in found if is_over_most_of_a_history(window)
    } == {}


def test_the_audit_has_no_window_over_what_a_broker_was_chosen_for(made: Mapping[str, list[Window]]) -> None:
    of_brokers = [window for window in made[VIOLATIONS.name] if "broker" in window.keys]
    assert of_brokers
    assert [window.text for window in of_brokers if "broker" not in window.is_over_alone] == []


@pytest.mark.usefixtures("made")
class TestWhatIsFound:
    """The sums by topic and day, and the lives of topics, are small. A window over anything else is found."""

    def test_a_window_over_the_partitions_of_a_topic(self, history: KeptHistory) -> None:
        events = history.store.read(EVENTS).where("kind IN ('topic', 'leadership')")
        rows = events.selectExpr("last(czxid) OVER (PARTITION BY cluster_id, topic ORDER BY seq) AS life")
        assert [is_over_most_of_a_history(window) for window in windows(rows)] == [True]

    def test_a_window_over_sums_by_partition(self, history: KeptHistory) -> None:
        sums = history.store.read(EVENTS).groupBy("cluster_id", "topic", "partition").count()
        rows = sums.selectExpr("sum(count) OVER (PARTITION BY cluster_id, topic) AS count")
        assert [is_over_most_of_a_history(window) for window in windows(rows)] == [True]

    def test_and_not_one_over_what_topics_say_of_themselves(self, history: KeptHistory) -> None:
        certain = select_known(history.store.read(EVENTS), history.store.read(KNOWN_SPANS))
        of_topics = [window for window in windows(partition_history(certain)) if "topic" in window.is_over_alone]
        assert of_topics
        assert not any(is_over_most_of_a_history(window) for window in of_topics)

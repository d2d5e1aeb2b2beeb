"""A kept history is the same, in whatever order and however often journals come, and however an ingest ended."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from typer.testing import CliRunner

from kontroller.command_line import main
from kontroller.history import store
from kontroller.history.folding import embedded, fold
from kontroller.history.folding.tables import RAW_EVENTS
from kontroller.history.generations.errors import ChangedMeanwhile, Damaged, NotWritten, StoreBusy
from kontroller.history.generations.locks import WriterLock
from kontroller.history.kept_history import KeptHistory, NoHistory
from kontroller.history.schemas import (
    EVENTS,
    FINDINGS,
    KNOWN_SPANS,
    LAYERS,
    PARTITION_INTERVALS,
    Table,
)
from kontroller.history.session import SMALL_SETTINGS
from kontroller.history.store import Change, Store
from kontroller.history.transforms import lines
from tests.spark.histories import make_lines, random_cluster
from tests.spark.unchangeable import unchangeable

SEED = 5
MADE_OF_MARKS = (KNOWN_SPANS, FINDINGS)
"""Python computes spans and doubts from marks, of which there are a few for each epoch or span."""
Write = Callable[..., Any]


class Stop(Exception):
    """The process ends here."""


def stop_after(write: Write, times: int = 1) -> Write:
    """Ends the process when so many tables are written."""
    written: list[str] = []

    def write_until_stopped(change: Change, table: Table, *given: Any) -> Any:
        found = write(change, table, *given)
        written.append(table.name)
        if len(written) == times:
            raise Stop
        return found

    return write_until_stopped


@pytest.fixture(scope="module")
def journal() -> list[bytes]:
    """The lines of a cluster's journal, of several terms."""
    return list(random_cluster(SEED, cluster_id="kept", events=60).lines)


def take_in(kept: KeptHistory, some: Iterable[bytes]) -> None:
    kept.take_in(*lines.judge(lines.check_lines(make_lines(kept.store.spark, list(some)))))


def rows_of(kept: KeptHistory) -> list[list[tuple[object, ...]]]:
    """Return the rows of the tables that depend on everything, in the tables' order."""
    tables = (EVENTS, KNOWN_SPANS, PARTITION_INTERVALS)
    return [
        [tuple(row) for row in kept.store.read(table).drop("source").sort(*table.order).collect()] for table in tables
    ]


@pytest.fixture(scope="module")
def plans() -> dict[str, str]:
    """Return the plans by which Spark made the tables of `at_once`, by name."""
    return {}


def plan_of(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().executedPlan().toString())


@contextmanager
def watch_plans(plans: dict[str, str]) -> Iterator[pytest.MonkeyPatch]:
    """Collect the plans of the tables that are written while the block runs."""

    def watch_places(place: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
        def place_watched(table: Table, *given: Any) -> DataFrame:
            rows = place(table, *given)
            plans[table.name] = plan_of(rows)
            return rows

        return place_watched

    with pytest.MonkeyPatch.context() as watched:
        watched.setattr(store, "divide_by_cluster", watch_places(store.divide_by_cluster))
        watched.setattr(store, "divide_by_day", watch_places(store.divide_by_day))
        yield watched


@pytest.fixture(scope="module")
def at_once(
    spark: SparkSession, journal: list[bytes], plans: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> KeptHistory:
    """A history that is a large one, by its records and bytes: several files to a table, which Spark makes."""
    kept = KeptHistory.open_history(spark, str(tmp_path_factory.mktemp("at-once")))
    with watch_plans(plans) as large:
        large.setattr(fold, "ROWS_IN_A_FILE", len(journal) // 4)
        large.setattr(embedded, "LARGEST_BYTES", 0)
        take_in(kept, journal)
        kept.fold()
    return kept


class TestHowTablesAreMade:
    """The plans of the command itself, from records that were taken in to every table that is written."""

    def test_large_ones_are_several_files(self, at_once: KeptHistory) -> None:
        files = {}
        for table in (FINDINGS, PARTITION_INTERVALS):
            (part,) = at_once.store.at_present.parts[table.name]
            files[table] = {path.parent.name for path in Path(at_once.store.path(table), part).rglob("*.parquet")}
        assert len(files[PARTITION_INTERVALS]) > 1
        assert files[FINDINGS] - {"file=0"}, "of the few rows of which a file may have none"

    @pytest.mark.usefixtures("at_once")
    @pytest.mark.parametrize("table", [*LAYERS, RAW_EVENTS], ids=lambda table: table.name)
    def test_nothing_is_done_in_one_place_or_by_python(self, table: Table, plans: dict[str, str]) -> None:
        check_plan(plans[table.name], by_python={"apply_to_group"} if table in MADE_OF_MARKS else set())

    def test_nor_are_the_events_of_a_cluster_with_several_journals_of_one_epoch(
        self, spark: SparkSession, journal: list[bytes], at_once: KeptHistory, tmp_path: Path
    ) -> None:
        """Python computes which accounts of an epoch are used, of which there are a few."""
        kept = KeptHistory.open_history(spark, str(tmp_path))
        plans: dict[str, str] = {}
        few: list[str] = []

        def compute_watched(rows: DataFrame) -> DataFrame:
            few.append(plan_of(rows))
            return rows.localCheckpoint()

        two_thirds = len(journal) * 2 // 3
        with watch_plans(plans) as watched:
            watched.setattr(fold, "_compute", compute_watched)
            parts = make_lines(spark, journal[:two_thirds], journal[-two_thirds:])
            kept.take_in(*lines.judge(lines.check_lines(parts)))
            kept.fold()
        check_plan(plans[EVENTS.name], by_python=set())
        by_python = [plan for plan in few if "EvalPython" in plan]
        assert by_python
        for plan in by_python:
            check_plan(plan, by_python={"apply_to_group"})
        assert rows_of(kept)[1:] == rows_of(at_once)[1:]


def test_the_settings_for_large_histories_come_to_the_same(
    spark: SparkSession, journal: list[bytes], at_once: KeptHistory, tmp_path: Path
) -> None:
    small = {name: value for name, value in SMALL_SETTINGS.items() if name.startswith("spark.sql.")}
    kept = KeptHistory.open_history(spark, str(tmp_path))
    try:
        for name in small:
            spark.conf.unset(name)
        take_in(kept, journal)
        kept.fold()
    finally:
        for name, value in small.items():
            spark.conf.set(name, value)
    assert rows_of(kept) == rows_of(at_once)


def check_plan(plan: str, *, by_python: set[str]) -> None:
    """Check that Spark does all of a table in several places, and these functions of groups alone in Python."""
    for sign in ("CartesianProduct", "BroadcastNestedLoopJoin", "InArrow", "InPandas"):
        assert sign not in plan
    found = re.findall(r"EvalPython \[(\w+)\(group#", plan)
    assert len(found) == plan.count("EvalPython"), "of each record"
    assert set(found) == by_python
    in_one_place = re.findall(r"SinglePartition.*\n(.*)", plan)
    assert len(in_one_place) == plan.count("SinglePartition")
    assert all("partial_bloom_filter_agg" in rows for rows in in_one_place), (
        "more than the few bytes of a join's filter"
    )


def test_late_and_repeated_journals_come_to_the_same(
    spark: SparkSession, journal: list[bytes], at_once: KeptHistory, tmp_path: Path
) -> None:
    kept = KeptHistory.open_history(spark, str(tmp_path))
    half = len(journal) // 2
    take_in(kept, journal[half - 5 :])
    take_in(kept, journal[: half + 5])
    kept.fold()
    assert rows_of(kept) == rows_of(at_once)


def test_records_from_before_the_cluster_had_an_id_are_its_own_also_when_that_is_known_later(
    spark: SparkSession, journal: list[bytes], at_once: KeptHistory, tmp_path: Path
) -> None:
    kept = KeptHistory.open_history(spark, str(tmp_path))
    early = [line.replace(b'"cluster_id":"kept"', b'"cluster_id":null') for line in journal[:10]]
    assert early != journal[:10]
    take_in(kept, early)
    take_in(kept, [*early, *journal[10:]])
    kept.fold()
    assert rows_of(kept) == rows_of(at_once)


class TestLinesThatAreTakenIn:
    """The same journal in three parts that overlap, with a line that is no record in the first two."""

    @pytest.fixture(scope="class")
    def in_parts(
        self, spark: SparkSession, journal: list[bytes], tmp_path_factory: pytest.TempPathFactory
    ) -> KeptHistory:
        kept, third = KeptHistory.open_history(spark, str(tmp_path_factory.mktemp("in-parts"))), len(journal) // 3
        kept.take_in_lines(make_lines(spark, [*journal[:third], b"no record\n"]))
        kept.take_in_lines(make_lines(spark, [*journal[third - 5 : 2 * third], b"no record\n"]))
        kept.take_in_lines(make_lines(spark, journal[2 * third - 5 :]))
        kept.fold()
        return kept

    def test_are_kept_once(self, in_parts: KeptHistory, journal: list[bytes]) -> None:
        assert in_parts.raw.read(RAW_EVENTS).count() == len(journal)

    def test_come_to_the_same_history(self, in_parts: KeptHistory, at_once: KeptHistory) -> None:
        assert rows_of(in_parts) == rows_of(at_once)

    def test_are_a_finding_where_they_are_no_record(self, in_parts: KeptHistory) -> None:
        found = in_parts.store.read(FINDINGS).where("problem = 'unreadable'").collect()
        assert [(row.cluster_id, row["count"]) for row in found] == [("kept", 1)]

    def test_leave_the_days_alone_of_which_they_say_nothing_new(
        self, in_parts: KeptHistory, journal: list[bytes]
    ) -> None:
        before = in_parts.raw.at_present.parts[RAW_EVENTS.name]
        in_parts.take_in_lines(make_lines(in_parts.store.spark, journal))
        assert in_parts.raw.at_present.parts[RAW_EVENTS.name] == before


def test_a_recorders_journal_is_one_also_when_its_parts_are_taken_in_by_themselves(
    spark: SparkSession, tmp_path: Path
) -> None:
    kept = KeptHistory.open_history(spark, str(tmp_path))
    recorded = list(random_cluster(SEED, cluster_id="seen", events=20, is_recorded=True).lines)
    half = len(recorded) // 2
    later = [line for line in recorded[half:] if b"recorder_started" not in line]
    seen_itself = [line.replace(b',"inferred":true', b"") for line in later]
    assert seen_itself != later
    kept.take_in_lines(make_lines(spark, recorded[:half]))
    kept.take_in_lines(make_lines(spark, seen_itself))
    kept.fold()
    assert {row.origin for row in kept.store.read(EVENTS).select("origin").distinct().collect()} == {"recorder"}


def test_an_ingest_that_is_stopped_keeps_what_was_there_and_is_run_again(
    spark: SparkSession, journal: list[bytes], at_once: KeptHistory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeptHistory.open_history(spark, str(tmp_path))
    half = len(journal) // 2
    take_in(kept, journal[:half])
    with monkeypatch.context() as stopped:
        stopped.setattr(Change, "write_days", stop_after(Change.write_days))
        with pytest.raises(Stop):
            take_in(kept, journal[half:])
    assert kept.raw.read(RAW_EVENTS).count() == half
    take_in(kept, journal[half:])
    assert kept.raw.read(RAW_EVENTS).count() == at_once.raw.read(RAW_EVENTS).count()


def test_layers_are_never_replaced_by_those_of_older_records(
    spark: SparkSession, journal: list[bytes], at_once: KeptHistory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = replace(KeptHistory.open_history(spark, str(tmp_path)), lock=WriterLock(folder=None))
    take_in(kept, journal[: len(journal) // 2])
    look = Store.open_snapshot

    @contextmanager
    def be_overtaken_after_a_look(raw: Store) -> Iterator[Store]:
        with look(raw) as found:
            slow.undo()
            take_in(kept, journal)
            kept.fold()
            yield found

    with monkeypatch.context() as slow:
        slow.setattr(Store, "open_snapshot", be_overtaken_after_a_look)
        with pytest.raises(ChangedMeanwhile, match="run this one again"):
            kept.fold()
    assert rows_of(kept) == rows_of(at_once)


def test_a_history_whose_folders_cannot_be_changed_loses_nothing_and_says_so(
    spark: SparkSession, journal: list[bytes], at_once: KeptHistory, tmp_path: Path
) -> None:
    kept = KeptHistory.open_history(spark, str(tmp_path))
    third = len(journal) // 3
    take_in(kept, journal[:third])
    take_in(kept, journal[third : 2 * third])
    (old,) = Path(kept.raw.path(RAW_EVENTS)).glob("1-*/of=kept")
    with unchangeable(old), pytest.raises(NotWritten, match="cannot be removed") as told:
        take_in(kept, journal[2 * third :])
    assert "No stored data is lost" in str(told.value)
    assert kept.raw.read(RAW_EVENTS).count() == 2 * third
    take_in(kept, journal[2 * third :])
    assert kept.raw.read(RAW_EVENTS).count() == at_once.raw.read(RAW_EVENTS).count()


class TestWhileAHistoryChanges:
    """A history that is folded, then grows, is folded until it is stopped, and then to its end."""

    @pytest.fixture(scope="class")
    def changed(
        self, spark: SparkSession, journal: list[bytes], tmp_path_factory: pytest.TempPathFactory
    ) -> dict[str, object]:
        kept = KeptHistory.open_history(spark, str(tmp_path_factory.mktemp("changing")))
        seen: dict[str, object] = {"kept": kept}
        take_in(kept, journal[: len(journal) // 2])
        kept.fold()
        seen["half"] = rows_of(kept)
        with kept.open_snapshot() as before:
            take_in(kept, journal)
            seen["taken in"] = rows_of(kept)
            with pytest.MonkeyPatch.context() as stopped:
                stopped.setattr(Change, "replace_clusters", stop_after(Change.replace_clusters, times=4))
                with pytest.raises(Stop):
                    kept.fold()
            seen["stopped"] = rows_of(kept)
            kept.fold()
            seen["reader"] = rows_of(before)
        seen["folded"] = rows_of(kept)
        return seen

    def test_its_tables_are_those_of_before_until_all_are_made(self, changed: dict[str, object]) -> None:
        assert changed["taken in"] == changed["half"]
        assert changed["stopped"] == changed["half"]

    def test_then_all_of_them_are_new(self, changed: dict[str, object], at_once: KeptHistory) -> None:
        assert changed["folded"] == rows_of(at_once)

    def test_who_began_to_read_before_reads_the_tables_of_before(self, changed: dict[str, object]) -> None:
        assert changed["reader"] == changed["half"]

    def test_a_second_command_that_would_change_it_is_told_who_does(self, at_once: KeptHistory) -> None:
        other = KeptHistory.open_history(at_once.store.spark, at_once.location)
        with (
            at_once.hold_lock(),
            pytest.raises(StoreBusy, match=f"is being changed by process {os.getpid()} on "),
            other.hold_lock(),
        ):
            pass

    def test_a_second_command_that_only_asks_is_answered(self, at_once: KeptHistory) -> None:
        other = KeptHistory.open_history(at_once.store.spark, at_once.location)
        with at_once.hold_lock(), other.open_snapshot() as read:
            assert read.store.read(KNOWN_SPANS).count() > 0


def test_the_command_says_in_one_line_what_it_cannot_do(
    at_once: KeptHistory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kontroller.history.session.session", lambda *_, **__: nullcontext(at_once.store.spark))
    (tmp_path / "journal").mkdir()
    ingest = ["history", "ingest", "--history", at_once.location, "--journal", str(tmp_path / "journal")]
    with at_once.hold_lock():
        ended = CliRunner().invoke(main, ingest)
    assert (ended.exit_code, ended.stderr.count("\n")) == (1, 1)
    assert f"is being changed by process {os.getpid()} on " in ended.stderr


def test_a_history_in_the_layout_of_another_version_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "raw_events").mkdir()
    with pytest.raises(Damaged, match="another layout"), KeptHistory.open_history(spark, str(tmp_path)).hold_lock():
        pass


def test_a_history_that_was_never_begun_says_how_to_begin(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NoHistory, match="ingest a journal first"):
        KeptHistory.open_history(spark, str(tmp_path)).layers()


def test_journals_without_records_make_an_empty_history_that_later_ones_fill(
    spark: SparkSession, tmp_path: Path, journal: list[bytes]
) -> None:
    kept = KeptHistory.open_history(spark, str(tmp_path))
    with kept.hold_lock():
        take_in(kept, [])
        kept.fold()
    assert kept.summary().startswith("The history has no records")
    with kept.hold_lock():
        take_in(kept, journal)
        kept.fold()
    assert " records of 1 cluster. " in kept.summary()

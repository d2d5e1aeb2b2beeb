"""A history in a folder: journals go in, tables come out.

    raw_events, raw_findings    every readable record of every journal, and the unreadable lines
    the layers                  derived from them by cluster (`folding.fold`): intervals, proofs
    answers, violations         computed from the layers on request, and not stored

The key of a record is its journal, epoch and number, so intake is idempotent and works in any order. The raw tables are
one store and the layers another; each change is atomic. One process at a time changes a history: the lock excludes the
others, and without a lock the second to publish fails. Readers use one generation and wait for nobody. Only `compacting`
removes records.
"""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from controller_core.model.wording import format_count
from kontroller.history.answers.all import answer_all
from kontroller.history.answers.options import Options
from kontroller.history.audit.audit import audit
from kontroller.history.compacting.compact import Compacted, compact
from kontroller.history.compacting.proven import drop_removed_entries
from kontroller.history.folding.fold import fold
from kontroller.history.folding.tables import RAW_EVENTS, RAW_FINDINGS, TALLIES
from kontroller.history.generations.errors import Damaged
from kontroller.history.generations.generation import day_of, is_without_day
from kontroller.history.generations.keeping import Keeping
from kontroller.history.generations.locks import WriterLock, find_local_folder
from kontroller.history.progress import Steps
from kontroller.history.reports.attention import SILENT_AFTER_US
from kontroller.history.reports.names import Names
from kontroller.history.reports.objective import Objective
from kontroller.history.reports.period import MOST_DAYS, Period, micros, moment_of
from kontroller.history.reports.report import ReportSummary, write_report
from kontroller.history.schemas import (
    EVENTS,
    KNOWN_SPANS,
    LAYERS,
    LONG,
    PROOFS,
    TEXT,
    VIOLATIONS,
    Table,
    columns,
)
from kontroller.history.store import Change, Store
from kontroller.history.transforms import journals, lines

_CHECKED: Final = Table(
    name=RAW_EVENTS.name,
    schema=StructType([*EVENTS.schema, *columns(line=LONG, bad_line=TEXT)]),
    order=RAW_EVENTS.order,
    by_day="event_time",
)
"""Raw events as checked lines, beside the lines that are no events."""
_DAY_OF_EVENTS: Final = "if(bad_line is null, to_date(event_time), null)"
RAW: Final = (RAW_EVENTS, RAW_FINDINGS)
_SAME_RECORD: Final = ["cluster_id", "journal", "controller_epoch", "seq", "kind", "event_time"]
"""The columns that two copies of one record share, and two records of one journal never do."""


class NoHistory(Exception):
    """The folder has no history yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptHistory:
    """The tables of a history. Raises `StoreError` if they cannot be read or written, and Spark's own errors."""

    location: str
    raw: Store
    store: Store
    """The store of the layers."""
    steps: Steps
    copies: Path | None
    """The folder for copies of served journals: beside the tables if those are on this machine."""
    lock: WriterLock

    @classmethod
    def open_history(cls, spark: SparkSession, location: str, asked: Keeping | None = None) -> "KeptHistory":
        """Return the history in a folder, or at an address that Spark can write to.

        `asked`: the format of its tables from now on; None: no change."""
        location = location.rstrip("/") or "/"
        here = find_local_folder(location)
        return cls(
            location=location,
            raw=Store(spark=spark, location=f"{location}/raw", tables=RAW, asked=asked or Keeping()),
            store=Store(spark=spark, location=f"{location}/layers", tables=LAYERS),
            steps=Steps(spark),
            copies=here and here / "copies",
            lock=WriterLock(folder=here),
        )

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Hold the lock of the history while the block runs, if it is on a local file system.

        Raises `StoreBusy` at once if another process holds it."""
        with self.lock.hold():
            self._refuse_other_layouts()
            yield

    @contextmanager
    def open_snapshot(self) -> Iterator["KeptHistory"]:
        """Yield this history as it is now, unaffected by intake while the block runs. Raises `NoHistory`."""
        with self.store.open_snapshot() as store, self.raw.open_snapshot() as raw:
            kept = replace(self, store=store, raw=raw)
            kept.layers()
            yield kept

    def take_in_lines(self, journals_lines: DataFrame) -> None:
        """Add the lines of journals (`schemas.LINES`). `fold` makes the layers of them afterwards.

        Each line is read once, and written once if its day is new here."""
        with self._begin_intake() as change:
            written = change.add_days(_CHECKED, lines.check_lines(journals_lines), _DAY_OF_EVENTS)
            if any(map(is_without_day, written)):
                _, findings = lines.judge(change.read_parts(_CHECKED, written))
                _keep_findings(change, findings)
            # Days that the history already has may hold copies of these records, so only they are joined and written
            # again.
            days = {day_of(part): part for part in written if not is_without_day(part)}
            kept = tuple(part for part in change.parts_of(RAW_EVENTS) if day_of(part) in days)
            again = tuple(days.pop(day_of(part)) for part in kept)
            change.replace_days(RAW_EVENTS, tuple(days.values()))
            if again:
                _keep_events(change, change.read_parts(RAW_EVENTS, kept), change.read_parts(RAW_EVENTS, again))

    def take_in(self, events: DataFrame, findings: DataFrame) -> None:
        """Add the events and findings of a source. `fold` makes the layers of them afterwards."""
        with self._begin_intake() as change:
            _keep_findings(change, findings)
            _keep_events(change, change.read(RAW_EVENTS), events)

    @contextmanager
    def _begin_intake(self) -> Iterator[Change]:
        step = self.steps.step("Reading, checking and keeping the records")
        with self.hold_lock(), step, self.raw.begin_change() as change:
            yield change

    def compact(self, forget_days: int | None = None) -> Compacted:
        """Remove records that are not needed (`compacting`), and fold what is left. Raises `NoHistory`."""
        self._refuse_nothing()
        with self.hold_lock():
            # The layers say what is needed of exactly these records.
            raw = replace(self.raw, generation=self.raw.at_present)
            self.fold()
            with self.steps.step("Finding records that are not needed"), self.store.open_snapshot() as store:
                gone = compact(raw, store, forget_days)
            self.fold()
        return gone

    def fold(self) -> None:
        """Make the layers of the clusters with new records (`folding.fold`). They have the format of the raw tables."""
        with self.hold_lock():
            # The layers are looked at before the records. So without a lock, layers of newer records are never replaced.
            layers = replace(self.store, generation=self.store.at_present)
            with self.raw.open_snapshot() as raw:
                fold(raw, replace(layers, asked=raw.at_present.keeping), self.steps)
        # Py4J's objects refer to themselves. Until Python collects them, Java keeps the plans of all their queries.
        gc.collect()

    def layers(self) -> dict[Table, DataFrame]:
        """Return the layers. Raises `NoHistory`."""
        self._refuse_nothing()
        return {table: self.store.read(table) for table in LAYERS}

    def audit(self, clusters: Sequence[str] = ()) -> DataFrame:
        """Return the violations of these clusters; empty: of all. Raises `NoHistory`, also for an unknown cluster."""
        kept = self._read_layers_of(clusters)
        raw = self.raw.read(RAW_EVENTS)
        recorded = lines.add_origins(_select_clusters(journals.assign_clusters(raw, raw), clusters))
        return audit(kept[EVENTS], kept[KNOWN_SPANS], kept[PROOFS], recorded=recorded)

    def report(
        self,
        output: Path,
        options: Options,
        period: Period,
        objective: Objective | None = None,
        *,
        clusters: Sequence[str] = (),
        names: Names | None = None,
        now: datetime | None = None,
    ) -> ReportSummary:
        """Compute answers and violations, and write the report of a period. Raises `NoHistory`, also for a cluster that
        is not in the history, and `OSError`.

        `clusters`: the clusters to report; empty: all. `now`: as for `period`."""
        kept = self._read_layers_of(clusters)
        with self.steps.step("Computing the answers and writing the report"):
            audited = self.audit(clusters).persist()  # for this period and the one before
            tables = kept | answer_all(kept, options) | {VIOLATIONS: audited}
            named = {table.name: rows for table, rows in tables.items()}
            try:
                return write_report(
                    named, output, period=period, options=options, objective=objective, names=names, now=now
                )
            finally:
                audited.unpersist()

    def period(
        self, began: datetime | None, ended: datetime | None, days: int | None, now: datetime | None = None
    ) -> Period:
        """Return the period from the first known time to the last one, unless bounds are given.

        `days`: the length of the period if `began` is not given. `now`: the time by this machine's clock. The period
        ends with it if a cluster's clock is ahead of it, because that cluster would make all others look silent.
        Raises `NoHistory`, and `ValueError` for an empty period, or one of more than `MOST_DAYS` if a bound is given."""
        began_us, ended_us = f.unix_micros("began").alias("began_us"), f.unix_micros("ended").alias("ended_us")
        spans = self.layers()[KNOWN_SPANS].where("has_time").select(began_us, ended_us)
        known = _find_bounds(spans)
        if known is None:
            raise NoHistory(f"{self.location} has no known time; its table findings says why")
        is_limited = (began, ended, days) != (None, None, None)
        if now is not None and known[1] > micros(now) + SILENT_AFTER_US:
            now_us = f.lit(micros(now))
            # If all of it is ahead, there is nobody to protect.
            past = spans.where(f.col("began_us") < now_us).withColumn("ended_us", f.least("ended_us", now_us))
            known = _find_bounds(past) or known
        ended = ended or moment_of(known[1] + 1)
        if began is None:
            began = moment_of(known[0]) if days is None else _subtract_days(ended, days)
        if is_limited and ended - began > timedelta(days=MOST_DAYS):
            raise ValueError(f"The period {began} to {ended} has more than {MOST_DAYS:,} days: give a shorter one")
        return Period(began=began, ended=ended)

    def _read_layers_of(self, clusters: Sequence[str]) -> dict[Table, DataFrame]:
        """Return the layers of these clusters."""
        kept = {table: _select_clusters(rows, clusters) for table, rows in self.layers().items()}
        if clusters:
            known = {row["cluster_id"] for row in kept[KNOWN_SPANS].select("cluster_id").distinct().collect()}
            if missing := [name for name in clusters if name not in known]:
                raise NoHistory(
                    f"{self.location} has no cluster {', '.join(missing)}: a report without --cluster lists all"
                )
        return kept

    def summary(self) -> str:
        """Return a summary of the history for people."""
        if not self.store.has(EVENTS):
            return "The history has no records: all that was read is empty."
        sums = (f"coalesce(sum({name}), 0)" for name in ("records", "checksums", "proven", "findings"))
        told = self.store.read(TALLIES).selectExpr("count_if(records > 0)", *sums).collect()
        clusters, records, checksums, proven, findings = told[0]
        return (
            f"The history has {format_count(records, 'record')} of {format_count(clusters, 'cluster')}. It matches the "
            f"controller's own state at {proven} of {format_count(checksums, 'checksum')}. "
            f"{format_count(findings, 'finding')}."
        )

    def _refuse_nothing(self) -> None:
        if not self.store.has(EVENTS):
            raise NoHistory(f"{self.location} has no history: ingest a journal first (kontroller history ingest)")

    def _refuse_other_layouts(self) -> None:
        here = find_local_folder(self.location)
        is_flat = here is not None and (here / RAW_EVENTS.name).exists()
        if is_flat or not all(map(day_of, self.raw.at_present.parts.get(RAW_FINDINGS.name, ()))):
            raise Damaged(
                f"{self.location} is a history of an older version, with another layout: ingest its journals into a "
                "new folder"
            )


def _subtract_days(moment: datetime, days: int) -> datetime:
    try:
        return moment - timedelta(days=days)
    except OverflowError as error:
        raise ValueError(f"The calendar has no {days} days before {moment}: give fewer days") from error


def _find_bounds(spans: DataFrame) -> tuple[int, int] | None:
    """Return the first and the last known time, in microseconds since 1970."""
    row = spans.agg(f.min("began_us"), f.max("ended_us")).first()
    return None if row is None or row[0] is None else (row[0], row[1])


def _select_clusters(rows: DataFrame, clusters: Sequence[str]) -> DataFrame:
    return rows.where(f.col("cluster_id").isin(*clusters)) if clusters else rows


def _keep_findings(change: Change, findings: DataFrame) -> None:
    """Add findings that are not kept yet. Only the clusters that get some are written again."""
    kept = change.read(RAW_FINDINGS)
    new = findings.subtract(kept).localCheckpoint()
    clusters = [row.cluster_id for row in new.select("cluster_id").distinct().collect()]
    if clusters:
        same = kept.where(f.col("cluster_id").isin(*clusters))
        change.write_clusters(RAW_FINDINGS, same.unionByName(new), clusters)


def _keep_events(change: Change, kept: DataFrame, events: DataFrame) -> None:
    """Add events that are not kept yet. Only the days that get some are written again."""
    new = drop_removed_entries(events.join(kept.select(*_SAME_RECORD), _SAME_RECORD, "left_anti"), kept)
    days = new.select("cluster_id", f.to_date("event_time").alias("day")).distinct()
    same_day = (kept.cluster_id == days.cluster_id) & (f.to_date(kept.event_time) == days.day)
    change.write_days(RAW_EVENTS, kept.join(f.broadcast(days), same_day, "left_semi").unionByName(new))

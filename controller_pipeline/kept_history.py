"""A history that is kept in a folder: journals go in, tables come out, one step after the other.

    raw_events, raw_findings    every readable record of every journal, and what was not readable; nothing is ever removed
    the layers                  made anew from those: checked, each record once, folded into intervals, proven
    answers, violations         made anew from the layers

Taking something in again, late, or in another order changes nothing: a record is known by its journal, epoch and number.
Nothing is lost when it is killed: what is to replace raw_findings and days of raw_events is written elsewhere first, as a
whole, and put in their place afterwards, by the next run if need be.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.storagelevel import StorageLevel

from controller_core.model.wording import counted
from controller_pipeline.answers.all import answer_all
from controller_pipeline.answers.options import Options
from controller_pipeline.audit.audit import audit
from controller_pipeline.progress import Steps
from controller_pipeline.reports.objective import Objective
from controller_pipeline.reports.period import Period, moment_of
from controller_pipeline.reports.report import ReportSummary, write_report
from controller_pipeline.schemas import (
    CONFIG_INTERVALS,
    EVENTS,
    FINDINGS,
    KNOWN_SPANS,
    LAYERS,
    PROOFS,
    VIOLATIONS,
    Table,
)
from controller_pipeline.sources import text_logs
from controller_pipeline.store import Store
from controller_pipeline.transforms import journals, layers, lines
from controller_pipeline.transforms.config_intervals import config_intervals
from controller_pipeline.transforms.known_spans import known_spans

_ORDER: Final = (*EVENTS.order, "journal", "event_time")
RAW_EVENTS: Final = Table(name="raw_events", schema=EVENTS.schema, order=_ORDER, by_day="event_time")
NEXT_RAW_EVENTS: Final = Table(name="next_raw_events", schema=EVENTS.schema, order=_ORDER, by_day="event_time")
RAW_FINDINGS: Final = Table(name="raw_findings", schema=FINDINGS.schema, order=FINDINGS.order)
NEXT_RAW_FINDINGS: Final = Table(name="next_raw_findings", schema=FINDINGS.schema, order=FINDINGS.order)
_SAME_RECORD: Final = ["cluster_id", "journal", "controller_epoch", "seq", "kind", "event_time"]
"""What two copies of a record have in common, and two records of one journal never have."""


class NoHistory(Exception):
    """Nothing was ever taken in here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptHistory:
    """The tables of a history. Spark's own errors are raised for what cannot be read or written."""

    store: Store
    steps: Steps
    copies: Path | None
    """Where copies of served journals are: beside the tables, if those are on this machine."""

    @classmethod
    def at(cls, spark: SparkSession, location: str) -> "KeptHistory":
        """The history in a folder, or at an address that Spark can write to."""
        copies = None if "://" in location else Path(location, "copies")
        return cls(store=Store(spark=spark, location=location), steps=Steps(spark), copies=copies)

    def take_in_lines(self, journals_lines: DataFrame) -> None:
        """`take_in` of the lines of journals (`schemas.LINES`); each is read once."""
        checked = lines.checked(journals_lines).persist(StorageLevel.DISK_ONLY)
        self.take_in(*lines.judged(checked))
        checked.unpersist()

    def take_in(self, events: DataFrame, findings: DataFrame) -> None:
        """Adds what a source has to what is kept; `fold` makes the layers of it."""
        self._put_in_place()
        with self.steps.step("Reading and checking the records"):
            together = self.store.read_if_kept(RAW_FINDINGS).unionByName(findings).distinct()
            self.store.write(NEXT_RAW_FINDINGS, together)
            self.store.write(NEXT_RAW_EVENTS, self._with_their_days(events))
        with self.steps.step("Keeping them"):
            self._put_in_place()

    def fold(self) -> None:
        """Makes the layers anew from the raw events."""
        self._put_in_place()
        raw, unreadable = self._raw_events(), text_logs.counted(self.store.read_if_kept(RAW_FINDINGS))
        events, repeated = journals.once(journals.of_their_clusters(raw))
        events = self._keep({EVENTS: events})[EVENTS]
        spans = self._keep({KNOWN_SPANS: known_spans(events)})[KNOWN_SPANS]
        configs = self._keep({CONFIG_INTERVALS: config_intervals(events, spans)})[CONFIG_INTERVALS]
        derived = layers.derive(events, unreadable.unionByName(repeated), spans, configs)
        kept = (EVENTS, KNOWN_SPANS, CONFIG_INTERVALS)
        self._keep({table: derived.of(table) for table in LAYERS if table not in kept})

    def layers(self) -> dict[Table, DataFrame]:
        """The layers as they are kept. Raises `NoHistory`."""
        if not self.store.is_whole(EVENTS):
            raise NoHistory(
                f"{self.store.location} has no history: take a journal in first (kontroller history ingest)"
            )
        return {table: self.store.read(table) for table in LAYERS}

    def audit(self) -> DataFrame:
        """Computes and keeps the violations. Raises `NoHistory`."""
        kept = self.layers()
        return self._keep({VIOLATIONS: audit(kept[EVENTS], kept[KNOWN_SPANS], kept[PROOFS])})[VIOLATIONS]

    def report(
        self, output: Path, options: Options, period: Period, objective: Objective | None = None
    ) -> ReportSummary:
        """Computes and keeps answers and violations, and writes those of a period. Raises `NoHistory`, `OSError`."""
        tables = self.layers() | self._keep(answer_all(self.layers(), options))
        tables[VIOLATIONS] = self.audit()
        with self.steps.step("Writing the report"):
            named = {table.name: rows for table, rows in tables.items()}
            return write_report(named, output, period=period, objective=objective)

    def period(self, began: datetime | None, ended: datetime | None, days: int | None) -> Period:
        """From the beginning of what is known to its end, but for what is given; `days`: so many before the end.

        Raises `NoHistory`, and `ValueError` for a period that is empty."""
        spans = self.layers()[KNOWN_SPANS].agg(f.min("began").alias("began"), f.max("ended").alias("ended"))
        known = spans.select(f.unix_micros("began"), f.unix_micros("ended")).first()
        if known is None or known[0] is None:
            raise NoHistory(
                f"{self.store.location} has no time of which anything is known; its table findings says why"
            )
        ended = ended or moment_of(known[1] + 1)
        earliest = moment_of(known[0]) if days is None else ended - timedelta(days=days)
        return Period(began=began or earliest, ended=ended)

    def summary(self) -> str:
        """What there is, for people."""
        kept = self.layers()
        events = kept[EVENTS].agg(f.count("*"), f.count_distinct("cluster_id")).first()
        is_proven = f.col("folded_checksum") == f.col("checksum")
        proofs = kept[PROOFS].agg(f.count("folded_checksum"), f.count_if(is_proven)).first()
        findings = kept[FINDINGS].count()
        assert events is not None
        assert proofs is not None
        return (
            f"The history has {counted(events[0], 'record')} of {counted(events[1], 'cluster')}. It comes to the "
            f"controller's own state at {proofs[1]} of {counted(proofs[0], 'checksum')}. {counted(findings, 'finding')}."
        )

    def _raw_events(self) -> DataFrame:
        """All that was taken in; what Kafka's logs say is numbered now, as every line of theirs may change that."""
        raw = self.store.read_if_kept(RAW_EVENTS)
        of_logs = raw.where(f.col("origin") == lines.LOGS)
        if of_logs.isEmpty():
            return raw
        others = raw.where(f.col("origin") != lines.LOGS)
        return others.unionByName(text_logs.numbered(of_logs).localCheckpoint())

    def _keep(self, tables: Mapping[Table, DataFrame]) -> dict[Table, DataFrame]:
        for table, rows in tables.items():
            with self.steps.step(f"Making the table {table.name}"):
                self.store.write(table, rows)
        return {table: self.store.read(table) for table in tables}

    def _with_their_days(self, events: DataFrame) -> DataFrame:
        """The events that are not kept yet, and all that is kept of their days."""
        kept = self.store.read_if_kept(RAW_EVENTS)
        days = events.select("cluster_id", f.to_date("event_time").alias("day")).distinct()
        same_day = (kept.cluster_id == days.cluster_id) & (f.to_date(kept.event_time) == days.day)
        kept = kept.join(f.broadcast(days), same_day, "left_semi")
        return kept.unionByName(events.join(kept.select(*_SAME_RECORD), _SAME_RECORD, "left_anti"))

    def _put_in_place(self) -> None:
        if self.store.is_whole(NEXT_RAW_EVENTS):
            self.store.move_days(NEXT_RAW_EVENTS, RAW_EVENTS)
        self.store.remove(NEXT_RAW_EVENTS)
        if self.store.is_whole(NEXT_RAW_FINDINGS):
            self.store.move(NEXT_RAW_FINDINGS, RAW_FINDINGS)
        self.store.remove(NEXT_RAW_FINDINGS)

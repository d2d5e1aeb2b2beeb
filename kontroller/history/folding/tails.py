"""Finds the midnight from which a cluster is folded again, if nothing before can have changed: its *tail*.

New records are nearly always later than all earlier ones, so only those stamped after a midnight are read and written.
A tail is valid under these conditions; otherwise the cluster is folded from its first record on.
- No new record is stamped before the midnight, and a known span covers it, so no record is missing there.
- The tail begins with the same record as before, without regard to requests, and no record stamped earlier follows it
  in order (`is_early`).
- Each term of the tail is in one journal, without duplicates, so there is nothing to choose between.
- The controller, the writer and the alive interval of the term that spans midnight stay the same.
- No clock was set within a term of the tail, as far as uptimes show it.
Then the breaks before midnight stay as they were, and the tail has all later ones, with the record before each.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f

from controller_core.journal.changes import Kind
from kontroller.history.schemas import LONG, TEXT, columns
from kontroller.history.transforms.continuity.breaks import BREAK, END, SNAPSHOT
from kontroller.history.transforms.continuity.neighbours import EPOCH, is_request
from kontroller.history.transforms.continuity.set_clocks import BOOT, differences, is_set
from kontroller.history.transforms.lines import CONTROLLER, LOGS, RECORDER

LEFT_OUT: Final = ("two_records", "two_journals")
"""The findings about records that were left out."""
_TAILS: Final = columns(of_cluster=TEXT, day=TEXT, from_epoch=LONG, from_seq=LONG, interval_ms=LONG)
_IS_LATER: Final = "struct(controller_epoch, seq) > struct(from_epoch as controller_epoch, from_seq as seq)"
_IS_EARLIER: Final = "struct(controller_epoch, seq) < struct(from_epoch as controller_epoch, from_seq as seq)"
_IS_FIRST: Final = "controller_epoch = from_epoch and seq = from_seq"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The records of a cluster that are stamped at `day` (such as 2026-01-31) or later."""

    cluster_id: str
    day: str
    controller_epoch: int
    seq: int
    """The number of its first record. The epoch above is of the same record."""
    alive_interval_ms: int | None = None
    """The alive interval of its first term, if a record says it."""
    records_before: int = 0
    checked_day: str = ""
    """The day on which the last snapshot before it ended. All later records are of this day or a later one."""


def propose_spans(spans: DataFrame, changed_from: Mapping[str, str]) -> dict[str, Row]:
    """Return the latest midnight of each cluster within a span that was known before.

    The midnight is at or before the first day with new records (9999-12-31: none). The row has the `controller_epoch`,
    `controller_id` and `origin` of the span."""
    given = spans.sparkSession.createDataFrame([*changed_from.items()], columns(of_cluster=TEXT, changed=TEXT))
    rows = spans.join(f.broadcast(given), f.expr("cluster_id = of_cluster")).selectExpr(
        "*", "date_trunc('day', least(ended - interval 1 microsecond, timestamp(changed))) as midnight"
    )
    rows = rows.where(f"has_time and origin <> '{LOGS}' and began < midnight")
    found = f.struct("midnight", "controller_epoch", "controller_id", "origin", "first_seq", "last_seq")
    latest = rows.groupBy("cluster_id").agg(f.max(found).alias("latest"))
    named = latest.selectExpr("cluster_id", "date_format(latest.midnight, 'yyyy-MM-dd') as day", "latest.*")
    return {row.cluster_id: row for row in named.collect()}


def terms(events: DataFrame) -> dict[str, list[Row]]:
    """Return the properties of the terms of tails by cluster: a row for each term, in their order.

    `seq` and `kind` are null if a term has nothing but requests."""
    of = events.groupBy(*EPOCH).agg(
        f.count("*").alias("records"),
        f.count_distinct("seq").alias("numbers"),
        f.count_distinct("journal").alias("journals"),
        f.min("journal").alias("journal"),
        f.max(f.col("origin") == LOGS).alias("is_of_logs"),
        f.min(_starts()).alias("seq"),
        f.min_by("kind", _starts()).alias("kind"),
        f.collect_set("controller_id").alias("controllers"),
        f.collect_set("alive_interval_ms").alias("intervals_ms"),
    )
    found: dict[str, list[Row]] = {}
    for row in of.collect():
        found.setdefault(row.cluster_id, []).append(row)
    return {cluster: sorted(rows, key=lambda row: row.controller_epoch) for cluster, rows in found.items()}


def begins(events: DataFrame) -> dict[str, Row]:
    """Return the epoch and number of the `first` record of each cluster that can begin a tail, and the number of its
    `records`."""
    place = f.when(~is_request(), f.struct("controller_epoch", "seq"))
    found = events.groupBy("cluster_id").agg(f.min(place).alias("first"), f.count("*").alias("records"))
    return {row.cluster_id: row for row in found.where("first is not null").collect()}


def _starts() -> Column:
    """Return the number of a record that a tail may begin with, else null.

    The time of a request is that of the last sign of life, which a tail does not have if it begins with the request."""
    return f.when(~is_request(), f.col("seq"))


def begins_as_before(span: Row, began: tuple[int, int], first: Row) -> bool:
    """Return True if a tail begins with the same record as before (`began`), and that record does not depend on earlier
    ones.

    It must be within the span that goes on over midnight."""
    if first.seq is None:
        return False
    is_within = span.controller_epoch == first.controller_epoch and span.first_seq < first.seq <= span.last_seq
    is_the_same = began == (first.controller_epoch, first.seq)
    return is_within and is_the_same and first.kind != Kind.CONTROLLER_RESIGNED.value


def is_once(of: Sequence[Row]) -> bool:
    """Return True if each raw record of these terms exists once."""
    return all(term.journals == 1 and term.numbers == term.records and not term.is_of_logs for term in of)


def changes_nothing_before(span: Row, marked: Row, of: Sequence[Row], recorded: Iterable[str]) -> bool:
    """Return True if the tail leaves the properties of whole terms unchanged, and no record from before midnight is in
    it.

    `span` and `marked` come from `propose_spans` and `read_earlier_marks`. `recorded`: the journals of recorders."""
    first, *later = of
    origin = RECORDER if first.journal in set(recorded) else CONTROLLER
    is_same = set(first.controllers) == {span.controller_id} and origin == span.origin
    is_same = is_same and set(first.intervals_ms) <= {marked.interval_ms}
    is_same = is_same and not marked.is_early and marked.checked_day is not None
    if marked.longest_ms is None:
        return is_same and not any(term.intervals_ms for term in later)
    return is_same and all(term.intervals_ms and max(term.intervals_ms) <= marked.longest_ms for term in later)


def read_earlier_marks(marks: DataFrame, tails: Iterable[Tail]) -> dict[str, Row]:
    """Return the properties of earlier marks by cluster: `interval_ms`, `longest_ms`, `checked_day`, `is_early`.

    `interval_ms` is of the tail's first term, `longest_ms` of the cluster, `checked_day` of the last snapshot that
    ended before the tail. `is_early`: a record is stamped before the tail's midnight but ordered after its first
    record, or stamped before `checked_day` but ordered after that snapshot."""
    ended = f"if(mark = '{SNAPSHOT[1]}' and {_IS_EARLIER}, struct(controller_epoch, seq, time_us), null)"
    of = _join_tails(marks, tails).selectExpr("*", f"max({ended}) over (partition by cluster_id) as checked")
    of = of.selectExpr("*", "date_format(timestamp_micros(checked.time_us), 'yyyy-MM-dd') as checked_day")
    is_since = "struct(controller_epoch, seq) > struct(checked.controller_epoch, checked.seq)"
    of = of.selectExpr("*", f"case when {_IS_LATER} then day when {is_since} then checked_day end as since")
    is_early = f"mark <> '{END}' and coalesce(time_us < unix_micros(timestamp(since)), false)"
    found = of.groupBy("cluster_id").agg(
        f.max("checked_day").alias("checked_day"),
        f.expr("max(if(controller_epoch = from_epoch, alive_interval_ms, null))").alias("interval_ms"),
        f.max("alive_interval_ms").alias("longest_ms"),
        f.max(f.expr(is_early)).alias("is_early"),
    )
    return {row.cluster_id: row for row in found.collect()}


def find_set_clocks(events: DataFrame, kept: DataFrame) -> set[str]:
    """Return the clusters in which a clock was set within a term of the tail, or in the term that spans midnight.

    `events`: the raw records of tails, some of which are new. `kept`: the events from before. The new records of the
    term that spans midnight must agree with the earlier ones, whose first and last difference is not known here."""
    before = differences(kept).withColumnsRenamed({"least": "least_before", "most": "most_before"})
    now = differences(events).join(before, list(BOOT), "left")
    is_other = f.coalesce(
        (f.col("least") < f.col("least_before")) | (f.col("most") > f.col("most_before")), f.lit(False)
    )
    found = now.where(is_other | is_set(f.col("least"), f.col("most"))).select("cluster_id")
    were_set = kept.where("set_us is not null").select("cluster_id")
    return {row.cluster_id for row in found.unionByName(were_set).distinct().collect()}


def find_left_out(findings: DataFrame, tails: Iterable[Tail]) -> set[str]:
    """Return the clusters in which a record was left out in favour of one of the tail, or of its first term."""
    of = _join_tails(findings.where(f.col("problem").isin(*LEFT_OUT)), tails)
    found = of.where(f"controller_epoch = from_epoch and problem = 'two_journals' or {_IS_FIRST} or {_IS_LATER}")
    return {row.cluster_id for row in found.select("cluster_id").distinct().collect()}


def add_interval(events: DataFrame, tails: Iterable[Tail]) -> DataFrame:
    """Return the records of tails. Those of first terms get the alive interval, which a record before midnight may
    state."""
    interval = "if(controller_epoch = from_epoch, interval_ms, alive_interval_ms)"
    return _join_tails(events, tails).withColumn("alive_interval_ms", f.expr(interval)).select(*events.columns)


def merge_marks(kept: DataFrame, new: DataFrame, tails: Iterable[Tail]) -> DataFrame:
    """Return all marks of the clusters: the `kept` ones of earlier records, and the `new` ones of the tails."""
    known = _join_tails(kept, tails).where(f"not ({_IS_LATER}) and (not ({_IS_FIRST}) or mark = '{BREAK}')")
    # The first record of a tail, or a request before it, always breaks in `new`: it has no predecessor there.
    told = _join_tails(new, tails).where(f"not ({_IS_EARLIER}) and not ({_IS_FIRST} and mark = '{BREAK}')")
    return known.select(*kept.columns).unionByName(told.select(*kept.columns))


def select_earlier(rows: DataFrame, tails: Iterable[Tail]) -> DataFrame:
    """Return the rows, with `EPOCH` and `seq`, that are before tails."""
    return _join_tails(rows, tails).where(_IS_EARLIER).select(*rows.columns)


def select_others(rows: DataFrame, tails: Iterable[Tail]) -> DataFrame:
    """Return the rows that are not before a tail, including those of clusters without tails."""
    of = [(tail.cluster_id, tail.day, tail.controller_epoch, tail.seq, tail.alive_interval_ms) for tail in tails]
    given = rows.sparkSession.createDataFrame(of, _TAILS)
    return rows.join(f.broadcast(given), f.expr(f"cluster_id = of_cluster and {_IS_EARLIER}"), "left_anti")


def _join_tails(rows: DataFrame, tails: Iterable[Tail]) -> DataFrame:
    """Join the rows of clusters that have tails with their tails."""
    of = [(tail.cluster_id, tail.day, tail.controller_epoch, tail.seq, tail.alive_interval_ms) for tail in tails]
    given = rows.sparkSession.createDataFrame(of, _TAILS)
    return rows.join(f.broadcast(given), f.expr("cluster_id = of_cluster"))

"""From which midnight on a cluster is folded again, where nothing of before can have changed: its *tail*.

What comes in is nearly always later than all that a cluster has. Then its history is the same up to a midnight before that,
and only what is stamped later is read and written again. A tail holds where all of this is so; else the cluster is folded
from its first record on:

- Nothing new is stamped before that midnight, and the state was known at it: it lies within a known span (`proposed`). So
  no record is missing there, and the first record of the tail is no break.
- The tail begins with the same record as before, and what was known to be stamped earlier is earlier in order too: a record
  from before midnight that came after one of the tail's would be among the marks, as any is that is earlier than the one
  before it. So the days before hold exactly what comes before the tail's first record.
- Each of the tail's terms is in one journal, each number once, and no other record was left out for one of them. So each
  record is there once already, and no account is to be chosen.
- What holds for the term that goes on over midnight is not changed by the tail: its controller, who wrote it, and after
  how long without a record its writer was silent; nor that interval of the cluster, which other terms may go by.

Then whatever says that a history breaks at a record before midnight is as it was, and for all later ones it is in the
tail, as the record before each is (`merged`). All that is known of times follows from these marks, and they are few: so
known spans and findings of clocks are made of all marks, whatever a late stamp may say of earlier ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f

from controller_core.journal.changes import Kind
from kontroller.history.schemas import LONG, TEXT, columns
from kontroller.history.transforms.continuity.breaks import BREAK, END, SNAPSHOT
from kontroller.history.transforms.continuity.neighbours import EPOCH
from kontroller.history.transforms.lines import CONTROLLER, LOGS, RECORDER

LEFT_OUT: Final = ("two_records", "two_journals")
"""Findings about records that are not taken."""
_TAILS: Final = columns(of_cluster=TEXT, day=TEXT, from_epoch=LONG, from_seq=LONG, interval_ms=LONG)
_IS_LATER: Final = "struct(controller_epoch, seq) > struct(from_epoch as controller_epoch, from_seq as seq)"
_IS_EARLIER: Final = "struct(controller_epoch, seq) < struct(from_epoch as controller_epoch, from_seq as seq)"
_IS_FIRST: Final = "controller_epoch = from_epoch and seq = from_seq"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """Of a cluster, all that is stamped at `day` (as 2026-01-31) or later."""

    cluster_id: str
    day: str
    controller_epoch: int
    seq: int
    """Of its first record, as the epoch."""
    alive_interval_ms: int | None = None
    """Of its first term, as far as anybody says it."""
    records_before: int = 0
    checked_day: str = ""
    """When the last snapshot before it ended; all later records are of this day or a later one."""


def proposed(spans: DataFrame, changed_from: Mapping[str, str]) -> dict[str, Row]:
    """The latest midnight within a known span of each cluster, of what was known before, up to the first day that
    something new is of (9999-12-31: nothing). Of the span: `controller_epoch`, `controller_id`, `origin`."""
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
    """What is asked of the records of tails, by cluster: a row for each of its terms, in their order."""
    of = events.groupBy(*EPOCH).agg(
        f.count("*").alias("records"),
        f.count_distinct("seq").alias("numbers"),
        f.count_distinct("journal").alias("journals"),
        f.min("journal").alias("journal"),
        f.max(f.col("origin") == LOGS).alias("is_of_logs"),
        f.min("seq").alias("seq"),
        f.min_by("kind", "seq").alias("kind"),
        f.collect_set("controller_id").alias("controllers"),
        f.collect_set("alive_interval_ms").alias("intervals_ms"),
    )
    found: dict[str, list[Row]] = {}
    for row in of.collect():
        found.setdefault(row.cluster_id, []).append(row)
    return {cluster: sorted(rows, key=lambda row: row.controller_epoch) for cluster, rows in found.items()}


def begins(events: DataFrame) -> dict[str, Row]:
    """The epoch and number of the `first` record of each cluster, and how many `records` it has."""
    place = f.struct("controller_epoch", "seq")
    found = events.groupBy("cluster_id").agg(f.min(place).alias("first"), f.count("*").alias("records"))
    return {row.cluster_id: row for row in found.collect()}


def begins_as_before(span: Row, began: tuple[int, int], first: Row) -> bool:
    """Whether a tail begins with the same record as before (`began`), within the span that goes on over midnight, and one
    that does not depend on those before it."""
    is_within = span.controller_epoch == first.controller_epoch and span.first_seq < first.seq <= span.last_seq
    is_the_same = began == (first.controller_epoch, first.seq)
    return is_within and is_the_same and first.kind != Kind.CONTROLLER_RESIGNED.value


def is_once(of: Sequence[Row]) -> bool:
    """Whether all that was taken in of these terms is there once."""
    return all(term.journals == 1 and term.numbers == term.records and not term.is_of_logs for term in of)


def changes_nothing_before(span: Row, marked: Row, of: Sequence[Row], recorded: Iterable[str]) -> bool:
    """Whether the terms of a tail leave as it was what holds for whole terms, and nothing from before midnight is later.

    `span`, `marked`: as `proposed` and `marked_before` give them. `recorded`: journals of who looked on."""
    first, *later = of
    origin = RECORDER if first.journal in set(recorded) else CONTROLLER
    is_same = set(first.controllers) == {span.controller_id} and origin == span.origin
    is_same = is_same and set(first.intervals_ms) <= {marked.interval_ms}
    is_same = is_same and not marked.is_early and marked.checked_day is not None
    if marked.longest_ms is None:
        return is_same and not any(term.intervals_ms for term in later)
    return is_same and all(term.intervals_ms and max(term.intervals_ms) <= marked.longest_ms for term in later)


def marked_before(marks: DataFrame, tails: Iterable[Tail]) -> dict[str, Row]:
    """Of the marks from before, by cluster: `interval_ms` of the tail's first term, `longest_ms` of the cluster,
    `checked_day` of the last snapshot that ended before the tail; and whether something `is_early`: stamped before the
    tail's midnight and later in order than its first record, or before that day and later than that snapshot."""
    ended = f"if(mark = '{SNAPSHOT[1]}' and {_IS_EARLIER}, struct(controller_epoch, seq, time_us), null)"
    of = _with(marks, tails).selectExpr("*", f"max({ended}) over (partition by cluster_id) as checked")
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


def with_left_out(findings: DataFrame, tails: Iterable[Tail]) -> set[str]:
    """The clusters of which a record was left out for one of the tail's, or for one of its first term's."""
    of = _with(findings.where(f.col("problem").isin(*LEFT_OUT)), tails)
    found = of.where(f"controller_epoch = from_epoch and problem = 'two_journals' or {_IS_FIRST} or {_IS_LATER}")
    return {row.cluster_id for row in found.select("cluster_id").distinct().collect()}


def with_their_interval(events: DataFrame, tails: Iterable[Tail]) -> DataFrame:
    """The records of tails, those of their first terms with the alive interval that one before midnight may say."""
    interval = "if(controller_epoch = from_epoch, interval_ms, alive_interval_ms)"
    return _with(events, tails).withColumn("alive_interval_ms", f.expr(interval)).select(*events.columns)


def merged(kept: DataFrame, new: DataFrame, tails: Iterable[Tail]) -> DataFrame:
    """All marks of clusters, of those that were `kept` and the `new` ones of their tails' records."""
    known = _with(kept, tails).where(f"not ({_IS_LATER}) and (not ({_IS_FIRST}) or mark = '{BREAK}')")
    # The first one's break is only that it is the first here.
    told = _with(new, tails).where(f"not ({_IS_FIRST} and mark = '{BREAK}')")
    return known.select(*kept.columns).unionByName(told.select(*kept.columns))


def earlier(rows: DataFrame, tails: Iterable[Tail]) -> DataFrame:
    """The rows, with `EPOCH` and `seq`, of what comes before tails."""
    return _with(rows, tails).where(_IS_EARLIER).select(*rows.columns)


def others(rows: DataFrame, tails: Iterable[Tail]) -> DataFrame:
    """Those of clusters without tails, and of what is not before them."""
    of = [(tail.cluster_id, tail.day, tail.controller_epoch, tail.seq, tail.alive_interval_ms) for tail in tails]
    given = rows.sparkSession.createDataFrame(of, _TAILS)
    return rows.join(f.broadcast(given), f.expr(f"cluster_id = of_cluster and {_IS_EARLIER}"), "left_anti")


def _with(rows: DataFrame, tails: Iterable[Tail]) -> DataFrame:
    """The rows of clusters that have tails, with those."""
    of = [(tail.cluster_id, tail.day, tail.controller_epoch, tail.seq, tail.alive_interval_ms) for tail in tails]
    given = rows.sparkSession.createDataFrame(of, _TAILS)
    return rows.join(f.broadcast(given), f.expr("cluster_id = of_cluster"))

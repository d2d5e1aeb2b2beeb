"""The records of partitions, each with all that was known of the partition at and just before it.

A partition's life ends with its topic (`audit/lives.py`), or with its removal from a topic that stays: a partition that
is added with its number begins at leader epoch 0.

Records of unknown time, from a gap to the next snapshot, cannot be judged and are left out. States before and after it
are still compared, because epochs never fall.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from controller_core.journal.changes import Kind
from controller_core.journal.records import FIELDS
from kontroller.history.audit.invariants import RECORD
from kontroller.history.audit.lives import OF_TOPICS, add_lives

LEADERSHIP: Final = FIELDS[Kind.LEADERSHIP]
ASSIGNMENT: Final = ("replicas", "adding", "removing")
_ENVELOPE: Final = (
    "cluster_id", "topic", "partition", "life", "span", "known_until", "origin", "controller_id", "controller_epoch", "seq",
    "event_time", "at", "source", "kind", "cause", "inferred", "snapshot", "unclean",
)  # fmt: skip


def select_known(events: DataFrame, known_spans: DataFrame) -> DataFrame:
    """Return the events of known times with `span`, `span_seq` (its first number), `at` and `known_until`.

    `at` is the time by trusted clocks, and `known_until` the end of the known time. A span continues over unknown time
    without a missing record, because the state does not depend on clocks. The record of a controller's election is
    known as well, though its state is not. Kafka's text logs have no snapshots, so their records are kept without a
    span."""
    in_epoch = Window.partitionBy("cluster_id", "controller_epoch").orderBy("first_seq")
    of_snapshot = Window.partitionBy("cluster_id", "controller_epoch", "snapshot_seq")
    spans = known_spans.where("not origin <=> 'logs'").withColumn(
        "from_seq", f.coalesce(f.lag("last_seq").over(in_epoch), f.lit(-1)) + 1
    )
    spans = spans.select(
        "cluster_id", "controller_epoch", "first_seq", "last_seq", "from_seq", f.col("ended").alias("known_until"), "began",
        f.min("span").over(of_snapshot).alias("span"), f.min("from_seq").over(of_snapshot).alias("span_seq"),
    ).alias("spans")  # fmt: skip
    joined = events.alias("events").join(
        f.broadcast(spans),
        f.expr(
            "events.cluster_id = spans.cluster_id AND events.controller_epoch = spans.controller_epoch "
            "AND events.seq BETWEEN spans.from_seq AND spans.last_seq"
        ),
        "left",
    )
    is_known = f.expr(
        "events.origin = 'logs' OR events.kind = 'controller_elected' "
        "OR (spans.span IS NOT NULL AND (events.snapshot OR events.seq >= first_seq))"
    )
    return joined.where(is_known).select(
        *(f.coalesce(f.col(f"events.{name}"), f.lit(False)).alias(name) if name in _FLAGS else f"events.{name}"
          for name in events.columns),
        "span", "known_until", "span_seq",
        f.expr("if(span is null, event_time, greatest(began, least(event_time, known_until)))").alias("at"),
    )  # fmt: skip


_FLAGS: Final = ("inferred", "snapshot", "unclean")


def partition_history(known_events: DataFrame) -> DataFrame:
    """Return each `leadership` and `assignment` record with these columns:

    - `now` and `assigned`: leadership and assignment from this record on; null if there is none or none is known;
    - `was` and `assigned_was`: those just before it in the same life, even before an unknown time;
    - `record`, `was_record`, `assigned_record`: this record, the previous one of the leadership, that of the
    assignment;
    - `last_leader`: the last broker that led before it, its leader epoch, and the record of that;
    - `is_news`: True if it states something new, unlike most entries of a snapshot;
    - `follows`: True if `was` is the state that this record changed, with nothing unseen between them;
    - `lasts_seconds`: the time for which its state is known to have lasted."""
    told = known_events.where(f.col("kind").isin(*_KINDS))
    records = add_lives(told, ("cluster_id", "topic"), _ORDER).select(
        *_ENVELOPE, *LEADERSHIP, *ASSIGNMENT, f.expr(RECORD).alias("record")
    )
    return _compare(_fold(records)).where(f.col("kind").isin("leadership", "assignment"))


_KINDS: Final = ("leadership", "leadership_removed", "assignment", "assignment_removed", *OF_TOPICS)
_ORDER: Final = ("controller_epoch", "seq")
_OF_ONE: Final = ("cluster_id", "topic", "life", "partition")


def _fold(records: DataFrame) -> DataFrame:
    so_far = Window.partitionBy(*_OF_ONE).orderBy(*_ORDER).rowsBetween(Window.unboundedPreceding, 0)

    def state_of(kind: str, names: tuple[str, ...]) -> Column:
        last_kind = f.last(f.when(f.col("kind").startswith(kind), f.col("kind")), ignorenulls=True).over(so_far)
        fields = f.struct(*(f.last(name, ignorenulls=True).over(so_far).alias(name) for name in names))
        return f.when(last_kind == kind, fields)

    def record_of(kind: str) -> Column:
        return f.last(f.when(f.col("kind") == kind, f.col("record")), ignorenulls=True).over(so_far)

    return records.select(
        *_ENVELOPE,
        "record",
        f.sum((f.col("kind") == "assignment_removed").cast("int")).over(so_far).alias("times_removed"),
        state_of("leadership", LEADERSHIP).alias("now"),
        state_of("assignment", ASSIGNMENT).alias("assigned"),
        record_of("leadership").alias("now_record"),
        record_of("assignment").alias("assigned_record"),
    )


def _compare(folded: DataFrame) -> DataFrame:
    order = Window.partitionBy(*_OF_ONE).orderBy(*_ORDER)
    of_one_life = Window.partitionBy(*_OF_ONE, "times_removed").orderBy(*_ORDER)
    before = of_one_life.rowsBetween(Window.unboundedPreceding, -1)
    leads = f.struct(f.col("now.leader").alias("leader"), f.col("now.leader_epoch").alias("leader_epoch"), "record")
    compared = folded.withColumns(
        {
            "was": f.lag("now").over(order),
            "was_record": f.lag("now_record").over(order),
            "was_span": f.lag("span").over(order),
            "assigned_was": f.lag("assigned").over(order),
            "assigned_was_record": f.lag("assigned_record").over(order),
            "last_leader": f.last(
                f.when((f.col("kind") == "leadership") & (f.col("now.leader") >= 0), leads), ignorenulls=True
            ).over(before),
            "next_at": f.lead("at").over(order),
        }
    )
    return compared.withColumns(
        {
            "is_news": f.expr(
                "NOT snapshot OR (kind = 'leadership' AND NOT now <=> was) "
                "OR (kind = 'assignment' AND NOT assigned <=> assigned_was)"
            ),
            "follows": f.expr(
                "NOT snapshot AND was IS NOT NULL AND span <=> was_span AND now.partition_epoch >= 0 "
                "AND now.partition_epoch <= was.partition_epoch + 1"
            ),
            "lasts_seconds": f.expr("(unix_micros(least(next_at, known_until)) - unix_micros(at)) / 1e6"),
        }
    )

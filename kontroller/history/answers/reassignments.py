"""The reassignments of partitions: their target, outcome, and longest time without progress.

A reassignment runs while replicas are being added or removed. Unknown time does not end it if it still runs afterwards.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kontroller.history.answers.intervals.days import micros_between, seconds
from kontroller.history.answers.intervals.states import (
    PARTITION,
    add_stretches,
    interval_order,
    is_of_same_topic,
    members,
    same_brokers,
)
from kontroller.history.answers.options import Options
from kontroller.history.schemas import ASKED_BY, REASSIGNMENTS

_MICROS: Final = 1_000_000


def reassignments(partition_intervals: DataFrame, options: Options) -> DataFrame:
    """Return REASSIGNMENTS, one row for each."""
    of_order = f.struct("began", "ended", "controller_epoch", "seq")
    last = f.struct("followed_by", "_next", "_wait", "replicas")
    one_row = (
        _select_running(add_stretches(partition_intervals))
        .groupBy(*PARTITION, "_reassignment")
        .agg(
            f.min("began").alias("began"),
            f.max("ended").alias("_ended"),
            f.min_by("_origin", of_order).alias("origin"),
            f.min_by("_target", of_order).alias("target"),
            f.min_by("controller_epoch", of_order).alias("controller_epoch"),
            f.min_by("seq", of_order).alias("seq"),
            *(f.min_by(name, of_order).alias(name) for name in ASKED_BY),
            f.max_by(last, of_order).alias("_last"),
            seconds(f.max("_wait")).alias("longest_wait_seconds"),
        )
    )
    return one_row.withColumns({
        "outcome": _outcome(options.stalled_after_seconds * _MICROS),
        "ended": f.when(f.col("_last.followed_by") != "end", f.col("_ended")),
    }).select(*REASSIGNMENTS.schema.fieldNames())  # fmt: skip


def _select_running(rows: DataFrame) -> DataFrame:
    """Return the intervals of running reassignments with the number of each. `_wait`: the time since the ISR changed.
    `_next`."""
    order = interval_order()
    is_running = (members("adding") > 0) | (members("removing") > 0)
    target = f.when(is_running, f.array_except("replicas", f.coalesce("removing", f.array().cast("array<int>"))))
    rows = rows.withColumn("_target", target)
    linked = f.lag("followed_by").over(order).isin("change", "unknown")
    is_linked = linked & is_of_same_topic(f.lag("topic_id").over(order))
    goes_on = f.coalesce(is_linked & (f.lag("_target").over(order) == f.col("_target")), f.lit(False))
    rows = rows.withColumn("_begins", f.col("_target").isNotNull() & ~goes_on)
    isr_changed = ~same_brokers(f.lag("isr").over(order), f.col("isr"))
    return rows.withColumns({
        "_origin": f.when(f.col("_begins"), _origin()),
        "_reassignment": f.sum(f.col("_begins").cast("long")).over(order),
        "_moved_at": f.last(f.when(f.col("_begins") | isr_changed, f.col("began")), ignorenulls=True).over(order),
        "_next": f.struct(f.lead("_target").over(order).alias("target"), f.lead("replicas").over(order).alias("replicas")),
    }).where("_target is not null").withColumn("_wait", micros_between("_moved_at", "ended"))  # fmt: skip


def _origin() -> Column:
    """Return the replicas before the reassignment in their order. If they were not seen, return those that it does not
    add."""
    order = interval_order()
    was_idle = f.lag("followed_by").over(order).isin("change") & f.lag("_target").over(order).isNull()
    from_this = f.array_except("replicas", f.coalesce("adding", f.array().cast("array<int>")))
    return f.when(was_idle, f.lag("replicas").over(order)).otherwise(from_this)


def _outcome(stalled_after_micros: int) -> Column:
    """Return the outcome, from what followed the last interval."""
    followed_by, after = f.col("_last.followed_by"), f.col("_last._next.replicas")
    is_stalled = f.col("_last._wait") > stalled_after_micros
    return (
        f.when(followed_by == "end", f.when(is_stalled, "stalled").otherwise("running"))
        .when(followed_by == "deletion", "deleted")
        .when(followed_by == "unknown", "unknown")
        .when(f.col("_last._next.target").isNotNull(), "replaced")
        .when(same_brokers(after, f.col("target")), "done")
        .when(same_brokers(after, f.col("origin")), "cancelled")
        .otherwise("unknown")
    )

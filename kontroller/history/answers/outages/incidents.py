"""The times in which a partition had no leader or refused producers, with the cause of each."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kontroller.history.answers.intervals.states import (
    PARTITION,
    add_leaderless_time,
    add_stretches,
    interval_order,
    is_leaderless,
    is_under_min_isr,
    next_value,
)
from kontroller.history.schemas import ASKED_BY, INCIDENTS

UNKNOWN_CAUSE: Final = "unknown"
DELETED: Final = "topic_deleted"


def incidents(partition_intervals: DataFrame, known_spans: DataFrame) -> DataFrame:
    """Return INCIDENTS of `partition_intervals`. `known_spans` shows if an incident began at a snapshot or was found by
    it."""
    order = interval_order()
    problem = f.when(is_leaderless(), "leaderless").when(is_under_min_isr(), "under_min_isr")
    rows = add_stretches(add_leaderless_time(partition_intervals))
    rows = _mark_found_by_snapshots(rows, known_spans).withColumn("problem", problem)
    same_problem = f.lag("problem").over(order) == f.col("problem")
    same_stretch = f.lag("stretch").over(order) == f.col("stretch")
    rows = rows.withColumns({
        "_continues": f.coalesce(same_problem & same_stretch, f.lit(False)),
        "_is_old": f.coalesce(same_problem & (same_stretch | _nothing_was_written()), f.lit(False)),
        "_ended_by": f.coalesce(next_value("cause"), f.when(f.col("followed_by") == "deletion", DELETED)),
    }).where("problem is not null")  # fmt: skip
    begun_by = f.struct(
        f.when(f.col("_is_found"), UNKNOWN_CAUSE).otherwise(f.col("cause")).alias("cause"),
        "correlation_id",
        *(f.when(~f.col("_is_found"), f.col(name)).alias(name) for name in ASKED_BY),
    )
    rows = rows.withColumns({
        "_incident": f.sum((~f.col("_continues")).cast("long")).over(order),
        "_begun_by": f.last(f.when(~f.col("_is_old"), begun_by), ignorenulls=True).over(order),
    })  # fmt: skip
    return _merge_intervals(rows)


def _mark_found_by_snapshots(rows: DataFrame, known_spans: DataFrame) -> DataFrame:
    """Add `_is_found`: True if an interval began together with a known span, so that its real beginning is unknown."""
    spans = known_spans.where("not origin <=> 'logs'").groupBy(
        f.col("cluster_id").alias("_cluster_id"), f.col("began").alias("_span_began")
    )
    starts = spans.agg(f.lit(True).alias("_at_start"))
    is_start = (f.col("cluster_id") == f.col("_cluster_id")) & (f.col("began") == f.col("_span_began"))
    is_first = f.lag("stretch").over(interval_order()).isNull() | (
        f.lag("stretch").over(interval_order()) != f.col("stretch")
    )
    return (
        rows.withColumn("_is_first", is_first)
        .join(f.broadcast(starts), is_start, "left")
        .withColumn("_is_found", f.col("_is_first") & f.coalesce("_at_start", f.lit(False)))
        .selectExpr("* except (_cluster_id, _span_began, _at_start, _is_first)")
    )


def _nothing_was_written() -> Column:
    """Return True if the version of the partition's znode is the same before and after the unknown time."""
    order = interval_order()
    same_topic = f.lag("topic_id").over(order).eqNullSafe(f.col("topic_id"))
    is_told = f.col("partition_epoch") >= 0
    return same_topic & is_told & (f.lag("partition_epoch").over(order) == f.col("partition_epoch"))


def _merge_intervals(rows: DataFrame) -> DataFrame:
    """Merge the intervals of each incident into one row."""
    of_order = f.struct("began", "ended", "seq")
    return (
        rows.groupBy(*PARTITION, "problem", "_incident")
        .agg(
            f.min("began").alias("began"),
            f.max("ended").alias("ended"),
            f.bool_or("is_last").alias("is_last"),
            f.min_by("_begun_by", of_order).alias("_begun_by"),
            f.max_by("_ended_by", of_order).alias("ended_by"),
            f.min_by("controller_epoch", of_order).alias("controller_epoch"),
            f.min_by("seq", of_order).alias("seq"),
        )
        .select("*", "_begun_by.*")
        .select(*INCIDENTS.schema.fieldNames())
    )

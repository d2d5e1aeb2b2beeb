"""The controllers over time, and the time that each takeover took."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from kontroller.history.answers.intervals.days import seconds
from kontroller.history.schemas import CONTROLLERS
from kontroller.history.transforms.continuity.breaks import SKEW_US
from kontroller.history.transforms.continuity.clock_runs import YEAR_US


def controllers(known_spans: DataFrame, events: DataFrame) -> DataFrame:
    """Return CONTROLLERS: each controller epoch that has a record.

    A term begins and ends with its first and last record. If a clock is not believed there, it begins or ends with its
    known time; without any, that time is null."""
    is_leader_change = (
        (f.col("kind") == "leadership")
        & ~f.coalesce("snapshot", f.lit(False))
        & f.col("leader").isNotNull()
        & (f.coalesce("partition_epoch", f.lit(1)) > 0)  # at 0 the partition was created
    )
    terms = events.groupBy("cluster_id", "controller_epoch").agg(
        f.min_by("controller_id", "seq").alias("controller_id"),
        f.min_by("event_time", "seq").alias("_first"),
        f.max_by("event_time", "seq").alias("_last"),
        (f.count("*") + f.coalesce(f.sum("left_out"), f.lit(0))).alias("records"),
        f.count_if(is_leader_change).alias("leader_changes"),
    )
    spans = known_spans.groupBy("cluster_id", "controller_epoch").agg(
        f.max_by("ended_by", "span").alias("ended_by"),
        f.min("began").alias("_known_from"),
        f.max(f.when(~f.col("origin").eqNullSafe("logs"), f.col("ended"))).alias("_known_until"),
        f.min(f.when(f.col("has_time"), f.unix_micros("began"))).alias("_began_us"),
        f.max(f.when(f.col("has_time"), f.unix_micros("ended"))).alias("_ended_us"),
    )
    rows = _add_bounds(terms.join(spans, ["cluster_id", "controller_epoch"], "left")).withColumns({
        "began": f.coalesce(_moment("_first"), f.timestamp_micros("_began_us")),
        "ended": f.coalesce(_moment("_last"), f.timestamp_micros("_ended_us")),
    })  # fmt: skip
    earlier = Window.partitionBy("cluster_id").orderBy("controller_epoch").rowsBetween(Window.unboundedPreceding, -1)
    last_known = f.when(f.col("_known_from").isNotNull(), f.coalesce("_known_until", "ended"))
    without = f.unix_micros("_known_from") - f.unix_micros(f.last(last_known, ignorenulls=True).over(earlier))
    return rows.withColumn("takeover_seconds", seconds(without)).select(*CONTROLLERS.schema.fieldNames())


def _add_bounds(rows: DataFrame) -> DataFrame:
    """Add the bounds between which a term's stamps are believed: the believed times of the terms before and after it,
    or a year if there are none."""
    by_epoch = Window.partitionBy("cluster_id").orderBy("controller_epoch")
    until_now = by_epoch.rowsBetween(Window.unboundedPreceding, 0)
    before = f.max("_ended_us").over(by_epoch.rowsBetween(Window.unboundedPreceding, -1))
    after = f.min("_began_us").over(by_epoch.rowsBetween(1, Window.unboundedFollowing))
    rows = rows.withColumns({"_before_us": before, "_after_us": after})
    nearest_before = f.max("_ended_us").over(until_now)
    return rows.withColumns({
        "_low_us": f.coalesce(f.col("_before_us") - SKEW_US, f.coalesce("_began_us", "_after_us") - YEAR_US),
        "_high_us": f.coalesce(f.col("_after_us") + SKEW_US, nearest_before + YEAR_US),
    })  # fmt: skip


def _moment(stamp: str) -> Column:
    return f.when(f.unix_micros(f.col(stamp)).between(f.col("_low_us"), f.col("_high_us")), f.col(stamp))

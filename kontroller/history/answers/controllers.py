"""The controllers over time, and the time that each takeover took."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from kontroller.history.answers.intervals.days import seconds
from kontroller.history.schemas import CONTROLLERS


def controllers(known_spans: DataFrame, events: DataFrame) -> DataFrame:
    """Return CONTROLLERS: each controller epoch that has a record."""
    is_leader_change = (
        (f.col("kind") == "leadership")
        & ~f.coalesce("snapshot", f.lit(False))
        & f.col("leader").isNotNull()
        & (f.coalesce("partition_epoch", f.lit(1)) > 0)  # at 0 the partition was created
    )
    terms = events.groupBy("cluster_id", "controller_epoch").agg(
        f.min_by("controller_id", "seq").alias("controller_id"),
        f.min("event_time").alias("began"),
        f.max("event_time").alias("ended"),
        (f.count("*") + f.coalesce(f.sum("left_out"), f.lit(0))).alias("records"),
        f.count_if(is_leader_change).alias("leader_changes"),
    )
    spans = known_spans.groupBy("cluster_id", "controller_epoch").agg(
        f.max_by("ended_by", "span").alias("ended_by"),
        f.min("began").alias("_known_from"),
        f.max(f.when(~f.col("origin").eqNullSafe("logs"), f.col("ended"))).alias("_known_until"),
    )
    rows = terms.join(spans, ["cluster_id", "controller_epoch"], "left")
    earlier = Window.partitionBy("cluster_id").orderBy("controller_epoch").rowsBetween(Window.unboundedPreceding, -1)
    last_known = f.when(f.col("_known_from").isNotNull(), f.coalesce("_known_until", "ended"))
    without = f.unix_micros("_known_from") - f.unix_micros(f.last(last_known, ignorenulls=True).over(earlier))
    return rows.withColumn("takeover_seconds", seconds(without)).select(*CONTROLLERS.schema.fieldNames())

"""The part of the time in which topics could be read and written, by day, and the causes of downtime."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kontroller.history.answers.intervals.days import cut_by_day, micros_where, seconds
from kontroller.history.answers.intervals.states import has_known_leader, is_leaderless, is_under_min_isr
from kontroller.history.answers.intervals.within import Within
from kontroller.history.answers.options import Options
from kontroller.history.schemas import AVAILABILITY, DOWNTIME_BY_CAUSE

_TOPIC_DAY: Final = ("cluster_id", "topic", "day")


def availability(
    partition_intervals: DataFrame, led_by_the_dead: DataFrame, options: Options, within: Within | None = None
) -> DataFrame:
    """Return AVAILABILITY of each topic and day on which a partition of it existed. `led_by_the_dead`: from
    `detection`."""
    parts = cut_by_day(partition_intervals.where("began < ended"), within)
    sums = parts.groupBy(*_TOPIC_DAY).agg(
        f.countDistinct("partition").alias("partitions"),
        f.sum("micros").alias("_existed"),
        micros_where(is_leaderless()).alias("_leaderless"),
        micros_where(is_under_min_isr()).alias("_under"),
        micros_where(~has_known_leader()).alias("_unknown"),
    )
    dead = cut_by_day(led_by_the_dead, within).groupBy(*_TOPIC_DAY).agg(
        f.sum("micros").alias("_dead"), micros_where(~f.col("is_under")).alias("_dead_only")
    )  # fmt: skip
    sums = sums.join(dead, list(_TOPIC_DAY), "left")
    sums = sums.withColumns({name: f.coalesce(name, f.lit(0)) for name in ("_dead", "_dead_only")})
    refused = f.col("_leaderless") + f.col("_under")
    return sums.select(
        "*",
        options.namespace().alias("namespace"),
        seconds("_existed").alias("partition_seconds"),
        seconds("_leaderless").alias("leaderless_seconds"),
        seconds("_under").alias("under_min_isr_seconds"),
        seconds("_unknown").alias("unknown_seconds"),
        seconds("_dead").alias("detection_seconds"),
        seconds("_dead_only").alias("detection_writable_seconds"),
        _share_without(f.col("_leaderless")).alias("availability"),
        _share_of_all_without(f.col("_leaderless") + f.col("_unknown")).alias("availability_at_least"),
        _share_of_all_without(f.col("_leaderless")).alias("availability_at_most"),
        _share_without(refused).alias("write_availability"),
        _share_of_all_without(refused + f.col("_unknown")).alias("write_availability_at_least"),
        _share_of_all_without(refused).alias("write_availability_at_most"),
        _share_without(f.col("_leaderless") + f.col("_dead")).alias("availability_with_detection"),
        _share_without(refused + f.col("_dead_only")).alias("write_availability_with_detection"),
    ).select(*AVAILABILITY.schema.fieldNames())


def _share_without(micros: Column) -> Column:
    """Return 1 - micros / known; null if nothing is known."""
    known = f.col("_existed") - f.col("_unknown")
    return f.when(known > 0, f.lit(1.0) - micros / known)


def _share_of_all_without(micros: Column) -> Column:
    """Return 1 - micros / all time, known or not."""
    return f.when(f.col("_existed") > 0, f.lit(1.0) - micros / f.col("_existed"))


def downtime_by_cause(incidents: DataFrame, options: Options, within: Within | None = None) -> DataFrame:
    """Return DOWNTIME_BY_CAUSE of the table `incidents`. Each day's part counts for that day."""
    parts = cut_by_day(incidents.where("began < ended"), within)
    sums = parts.groupBy("cluster_id", "topic", "day", "cause").agg(
        seconds(micros_where(f.col("problem") == "leaderless")).alias("leaderless_seconds"),
        seconds(micros_where(f.col("problem") == "under_min_isr")).alias("under_min_isr_seconds"),
        f.countDistinct("partition").alias("partitions"),
    )
    return sums.withColumn("namespace", options.namespace()).select(*DOWNTIME_BY_CAUSE.schema.fieldNames())

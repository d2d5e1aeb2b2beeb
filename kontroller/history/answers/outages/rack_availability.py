"""The availability of the replicas in each rack, by day."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kontroller.history.answers.intervals.days import cut_by_day, micros_where, seconds
from kontroller.history.answers.intervals.racks import add_racks, rack_of
from kontroller.history.answers.intervals.states import interval_order
from kontroller.history.answers.intervals.within import Within
from kontroller.history.schemas import RACK_AVAILABILITY


def rack_availability(
    partition_intervals: DataFrame, broker_intervals: DataFrame, within: Within | None = None
) -> DataFrame:
    """Return RACK_AVAILABILITY. In unknown time a partition has the replicas from before it."""
    replicas = f.coalesce("replicas", f.last("replicas", ignorenulls=True).over(interval_order()))
    known_or_not = partition_intervals.withColumn("replicas", replicas).where("began < ended")
    parts = cut_by_day(add_racks(known_or_not, broker_intervals), within)
    replicas_of = parts.withColumn("_broker", f.explode("replicas")).withColumn("rack", rack_of(f.col("_broker")))
    is_in_sync = f.coalesce(f.array_contains("isr", f.col("_broker")), f.lit(False))
    sums = replicas_of.groupBy("cluster_id", "rack", "day").agg(
        seconds(f.sum("micros")).alias("replica_seconds"),
        seconds(micros_where(f.col("is_known") & ~is_in_sync)).alias("out_of_sync_seconds"),
        seconds(micros_where(f.col("is_known") & (f.col("leader") == f.col("_broker")))).alias("leader_seconds"),
        seconds(micros_where(~f.col("is_known"))).alias("unknown_seconds"),
    )
    return sums.select(*RACK_AVAILABILITY.schema.fieldNames())

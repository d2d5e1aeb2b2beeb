"""The time that each broker led by day, the part of it as the preferred replica, and the balance between brokers."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from kontroller.history.answers.intervals.days import cut_by_day, micros_where, seconds
from kontroller.history.answers.intervals.within import Within
from kontroller.history.schemas import LEADERSHIP


def leadership(partition_intervals: DataFrame, broker_intervals: DataFrame, within: Within | None = None) -> DataFrame:
    """Return LEADERSHIP of each broker and day on which it was registered or had replicas assigned."""
    brokers_of = _select_assigned(partition_intervals, within).unionByName(_select_registered(broker_intervals, within))
    is_leader, is_preferred = f.col("leader") == f.col("broker"), f.col("preferred") == f.col("broker")
    sums = brokers_of.groupBy("cluster_id", "broker", "day").agg(
        micros_where(is_leader).alias("_led"),
        seconds(micros_where(is_leader)).alias("leader_seconds"),
        seconds(micros_where(is_preferred)).alias("preferred_seconds"),
        seconds(micros_where(is_leader & is_preferred)).alias("led_as_preferred_seconds"),
        seconds(f.sum("micros")).alias("replica_seconds"),
        f.bool_or("is_registered").alias("_is_registered"),
    )
    # Brokers that were not registered that day would lower the mean.
    led_by_registered = f.when(f.col("_is_registered"), f.col("_led"))
    mean = f.avg(led_by_registered).over(Window.partitionBy("cluster_id", "day"))
    skew = f.when(mean > 0, f.col("_led") / mean)
    return sums.withColumn("skew", skew).select(*LEADERSHIP.schema.fieldNames())


def _select_assigned(partition_intervals: DataFrame, within: Within | None) -> DataFrame:
    """Return a row for each replica, partition and day."""
    parts = cut_by_day(partition_intervals.where("is_known and began < ended"), within)
    return parts.select(
        "cluster_id",
        "day",
        f.explode("replicas").alias("broker"),
        "leader",
        f.try_element_at("replicas", f.lit(1)).alias("preferred"),
        "micros",
        f.lit(False).alias("is_registered"),
    )


def _select_registered(broker_intervals: DataFrame, within: Within | None) -> DataFrame:
    """Return a row for each broker and day on which it was registered. The row itself leads nothing."""
    days = (
        cut_by_day(broker_intervals.where("is_known and began < ended"), within)
        .groupBy("cluster_id", "day", "broker")
        .agg(f.lit(True).alias("is_registered"))
    )
    nobody = f.lit(None).cast("int")
    return days.withColumns({
        "leader": nobody,
        "preferred": nobody,
        "micros": f.lit(0).cast("long"),
    })  # fmt: skip

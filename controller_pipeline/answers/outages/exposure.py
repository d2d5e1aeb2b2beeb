"""How long partitions were one failure from loss, and how many of a topic at the same moment."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from controller_pipeline.answers.intervals.days import micros_where, seconds, split_by_day
from controller_pipeline.answers.intervals.racks import in_racks, rack_of
from controller_pipeline.answers.intervals.states import members
from controller_pipeline.answers.intervals.within import Within
from controller_pipeline.schemas import EXPOSURE


def exposure(partition_intervals: DataFrame, broker_intervals: DataFrame, within: Within | None = None) -> DataFrame:
    """EXPOSURE of each topic and day of which something is known."""
    known = partition_intervals.where("is_known and began < ended")
    in_one_replica = members("isr") <= 1
    in_one_rack = ~in_one_replica & (_racks("isr") == 1) & (_racks("replicas") > 1)
    exposed = in_racks(known, broker_intervals).withColumns({"_one_replica": in_one_replica, "_one_rack": in_one_rack})
    parts = split_by_day(exposed, within)
    day = ("cluster_id", "topic", "day")
    # The frame of a running sum by value takes in all rows of the same moment, so what ends there has ended.
    exposed_at_once = f.sum("_more").over(Window.partitionBy(*day).orderBy("_at"))
    sums = (
        _begins_and_ends(parts)
        .withColumn("_exposed", exposed_at_once)
        .groupBy(*day)
        .agg(
            seconds(micros_where(f.col("_one_replica"))).alias("one_replica_seconds"),
            seconds(micros_where(f.col("_one_rack"))).alias("one_rack_seconds"),
            seconds(f.sum("micros")).alias("known_seconds"),
            f.max("_exposed").alias("most_partitions"),
        )
    )
    return sums.select(*EXPOSURE.schema.fieldNames())


def _racks(brokers: str) -> Column:
    """In how many racks they are."""
    return f.size(f.array_distinct(f.transform(brokers, rack_of)))


def _begins_and_ends(parts: DataFrame) -> DataFrame:
    """Each part as a row where it begins, which carries its length, and of an exposed one another where it ends."""
    is_exposed = f.col("_one_replica") | f.col("_one_rack")
    begin = f.struct(f.col("began").alias("at"), is_exposed.cast("long").alias("more"), f.col("micros"))
    end = f.struct(
        f.col("ended").alias("at"), f.lit(-1).cast("long").alias("more"), f.lit(0).cast("long").alias("micros")
    )
    moments = f.when(is_exposed, f.array(begin, end)).otherwise(f.array(begin))
    return parts.withColumn("_moment", f.explode(moments)).withColumns({
        "_at": f.col("_moment.at"),
        "_more": f.col("_moment.more"),
        "micros": f.col("_moment.micros"),
    })  # fmt: skip

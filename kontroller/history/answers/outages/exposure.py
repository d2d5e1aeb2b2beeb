"""The time that partitions were one failure away from data loss, and the highest number of a topic at the same
moment."""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from kontroller.history.answers.intervals.days import cut_by_day, micros_where, seconds
from kontroller.history.answers.intervals.racks import add_racks, rack_of
from kontroller.history.answers.intervals.states import members
from kontroller.history.answers.intervals.within import Within
from kontroller.history.schemas import EXPOSURE


def exposure(partition_intervals: DataFrame, broker_intervals: DataFrame, within: Within | None = None) -> DataFrame:
    """Return EXPOSURE of each topic and day with known time."""
    known = partition_intervals.where("is_known and began < ended")
    in_one_replica = members("isr") <= 1
    in_one_rack = ~in_one_replica & (_racks("isr") == 1) & (_racks("replicas") > 1)
    exposed = add_racks(known, broker_intervals).withColumns({"_one_replica": in_one_replica, "_one_rack": in_one_rack})
    return _sum_by_day(_sum_by_hour(_moments(_begins_and_ends(cut_by_day(exposed, within)))))


_DAY: Final = ("cluster_id", "topic", "day")


def _moments(changes: DataFrame) -> DataFrame:
    """Return the change `more` of a topic's exposed partitions at each moment of a day, and the lengths of the parts
    that begin then."""
    lengths = {
        "one_replica": micros_where(f.col("_one_replica")),
        "one_rack": micros_where(f.col("_one_rack")),
        "known": f.sum("micros"),
    }
    return changes.groupBy(*_DAY, "at").agg(
        f.sum("more").alias("more"), *(value.alias(name) for name, value in lengths.items())
    )


def _sum_by_hour(moments: DataFrame) -> DataFrame:
    """Aggregate by hour, with `most`: the highest number above that at the beginning of the hour.

    So a busy topic is counted in 24 places. A part that ends at midnight ends in the first moment of an additional
    hour."""
    hours = moments.withColumn("hour", f.date_trunc("HOUR", "at"))
    in_hour = Window.partitionBy(*_DAY, "hour").orderBy("at")
    sums = (f.sum(name).alias(name) for name in ("more", "one_replica", "one_rack", "known"))
    counted = hours.withColumn("beyond", f.sum("more").over(in_hour))
    return counted.groupBy(*_DAY, "hour").agg(f.max("beyond").alias("most"), *sums)


def _sum_by_day(hours: DataFrame) -> DataFrame:
    before = Window.partitionBy(*_DAY).orderBy("hour").rowsBetween(Window.unboundedPreceding, -1)
    counted = hours.withColumn("most", f.col("most") + f.coalesce(f.sum("more").over(before), f.lit(0)))
    lengths = (seconds(f.sum(name)).alias(f"{name}_seconds") for name in ("one_replica", "one_rack", "known"))
    sums = counted.groupBy(*_DAY).agg(*lengths, f.max("most").alias("most_partitions"))
    return sums.select(*EXPOSURE.schema.fieldNames())


def _racks(brokers: str) -> Column:
    """Return the number of racks of these brokers."""
    return f.size(f.array_distinct(f.transform(brokers, rack_of)))


def _begins_and_ends(parts: DataFrame) -> DataFrame:
    """Return a row for the beginning of each part, with its length, and for an exposed part one for its end."""
    is_exposed = f.col("_one_replica") | f.col("_one_rack")
    begin = f.struct(f.col("began").alias("at"), is_exposed.cast("long").alias("more"), f.col("micros"))
    end = f.struct(
        f.col("ended").alias("at"), f.lit(-1).cast("long").alias("more"), f.lit(0).cast("long").alias("micros")
    )
    changes = f.when(is_exposed, f.array(begin, end)).otherwise(f.array(begin))
    return parts.select(*_DAY, "_one_replica", "_one_rack", f.inline(changes))

"""What an interval of a partition is, in words that every answer uses, and which intervals follow each other unbroken.

Intervals of one partition are ordered by their times first, as no record begins an interval of unknown state; of two that
began at the same moment the shorter, which has no length, came first. What is known comes before the unknown after it.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as f

PARTITION: Final = ("cluster_id", "topic", "partition")
NO_LEADER: Final = -1

_ORDER: Final = ("began", "ended", "controller_epoch", "seq")


def in_order() -> WindowSpec:
    """The intervals of each partition, in their order."""
    return Window.partitionBy(*PARTITION).orderBy(*_ORDER, f.col("is_known").desc())


def from_the_end() -> WindowSpec:
    """The intervals of each partition, the last first."""
    return Window.partitionBy(*PARTITION).orderBy(*(f.col(name).desc() for name in _ORDER), "is_known")


def is_leaderless() -> Column:
    """True where a partition is known to have no leader."""
    return f.col("is_known") & (f.coalesce("leader", f.lit(NO_LEADER)) == NO_LEADER)


def is_under_min_isr() -> Column:
    """True where a partition has a leader that refuses producers with acks=all, as too few replicas are in sync."""
    too_few = members("isr") < f.coalesce("min_insync_replicas", f.lit(1))
    return f.col("is_known") & (f.coalesce("leader", f.lit(NO_LEADER)) != NO_LEADER) & too_few


def members(brokers: str) -> Column:
    """How many; 0 where there is no list."""
    return f.coalesce(f.size(brokers), f.lit(0))


def same_brokers(one: Column, other: Column) -> Column:
    """True where two lists have the same members, in whatever order."""
    return f.array_sort(one) == f.array_sort(other)


def is_of_same_topic(neighbour: Column) -> Column:
    """False where `topic_id` and the neighbour's say that the topic was deleted and created again between them."""
    return f.coalesce(neighbour == f.col("topic_id"), f.lit(True))


def in_stretches(partition_intervals: DataFrame) -> DataFrame:
    """The known intervals, with two more columns.

    `stretch` is the same number as long as one interval of a partition follows the other without a hole, without unknown
    time, and without another topic of its name. `followed_by` is what comes after the interval: `change`, `unknown`,
    `deletion`, or `end`, the history's.
    """
    order = in_order()
    follows = f.lag("is_known").over(order) & (f.lag("ended").over(order) == f.col("began"))
    follows = follows & is_of_same_topic(f.lag("topic_id").over(order))
    touches = (f.lead("began").over(order) == f.col("ended")) & is_of_same_topic(f.lead("topic_id").over(order))
    followed_by = (
        f.when(touches & f.lead("is_known").over(order), "change")
        .when(touches, "unknown")
        .when(f.col("is_last"), "end")
        .otherwise("deletion")
    )
    breaks = (~f.coalesce(follows, f.lit(False))).cast("long")
    return (
        partition_intervals.withColumns({"_breaks": breaks, "followed_by": followed_by})
        .withColumn("stretch", f.sum("_breaks").over(order))
        .selectExpr("* except (_breaks)")
        .where("is_known")
    )


def previous(column: str) -> Column:
    """Of the interval before, in rows of `in_stretches`; null where the stretch begins."""
    order = in_order()
    return f.when(f.lag("stretch").over(order) == f.col("stretch"), f.lag(column).over(order))


def following(column: str) -> Column:
    """Of the interval after, in rows of `in_stretches`; null where the stretch ends."""
    order = in_order()
    return f.when(f.lead("stretch").over(order) == f.col("stretch"), f.lead(column).over(order))

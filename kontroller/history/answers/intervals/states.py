"""The states of a partition's interval, in terms that all answers share, and the order of intervals.

The intervals of a partition are ordered by their times first, because no record begins an interval of unknown state. If
two begin at once, the one without length comes first. Known states come before the unknown time after them.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as f

PARTITION: Final = ("cluster_id", "topic", "partition")
NO_LEADER: Final = -1

_ORDER: Final = ("began", "ended", "controller_epoch", "seq")


def interval_order() -> WindowSpec:
    """Return a window over the intervals of each partition in their order."""
    return Window.partitionBy(*PARTITION).orderBy(*_ORDER, f.col("is_known").desc())


def reverse_interval_order() -> WindowSpec:
    """Return a window over the intervals of each partition, the last one first."""
    return Window.partitionBy(*PARTITION).orderBy(*(f.col(name).desc() for name in _ORDER), "is_known")


def is_leaderless() -> Column:
    """Return True if a partition is proven to have no leader, also while nothing else of it is known."""
    return f.coalesce("leader", f.when(f.col("is_known"), NO_LEADER)).eqNullSafe(NO_LEADER)


def has_known_leader() -> Column:
    """Return True if the leader of a partition, or that it has none, is known. `is_known`: the whole state is."""
    return f.col("is_known") | is_leaderless()


def add_leaderless_time(partition_intervals: DataFrame) -> DataFrame:
    """Return the intervals with `is_known` also while a partition is proven to have no leader."""
    return partition_intervals.withColumn("is_known", has_known_leader())


def is_under_min_isr() -> Column:
    """Return True if a partition has a leader that refuses producers with acks=all, because too few replicas are in
    sync."""
    too_few = members("isr") < f.coalesce("min_insync_replicas", f.lit(1))
    return f.col("is_known") & (f.coalesce("leader", f.lit(NO_LEADER)) != NO_LEADER) & too_few


def members(brokers: str) -> Column:
    """Return the number of brokers; 0 for a null list."""
    return f.coalesce(f.size(brokers), f.lit(0))


def same_brokers(one: Column, other: Column) -> Column:
    """Return True if two lists have the same members in any order."""
    return f.array_sort(one) == f.array_sort(other)


def is_of_same_topic(neighbour: Column) -> Column:
    """Return False if the topic was deleted and created again between the neighbour and this row, as `topic_id`
    shows."""
    return f.coalesce(neighbour == f.col("topic_id"), f.lit(True))


def add_stretches(partition_intervals: DataFrame) -> DataFrame:
    """Return the known intervals with two more columns.

    `stretch` is a number that stays the same while a partition's intervals follow each other without a gap, without
    unknown time, and without a new topic of the same name. `followed_by` is what comes after the interval: `change`,
    `unknown`, `deletion`, or `end`, the history's.
    """
    order = interval_order()
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


def previous_value(column: str) -> Column:
    """Return a column of the previous interval, in rows of `add_stretches`; null at the beginning of a stretch."""
    order = interval_order()
    return f.when(f.lag("stretch").over(order) == f.col("stretch"), f.lag(column).over(order))


def next_value(column: str) -> Column:
    """Return a column of the next interval, in rows of `add_stretches`; null at the end of a stretch."""
    order = interval_order()
    return f.when(f.lead("stretch").over(order) == f.col("stretch"), f.lead(column).over(order))

"""Assigns the records of partitions to lives of their topic. A topic that is deleted and created again begins a new
life, with a new czxid.

Topics have few records, but most records may be of one topic's partitions. So lives are found in the topics' own
records, and the beginning of each is added to the records of each partition. No large work is divided by topic.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

OF_TOPICS: Final = ("topic", "topic_removed")


def add_lives(records: DataFrame, of: Sequence[str], order: Sequence[str]) -> DataFrame:
    """Return the records of partitions with `life`: the last czxid of their topic before them.

    Without a recorded one it is the negative number of the topic's removals.

    `of`: the columns that name a topic. `order`: the columns that order the records of one. Only the kinds `OF_TOPICS`
    affect lives."""
    partitions = records.where("partition IS NOT NULL")
    here = [*of, "partition"]
    begun = _find_beginnings(records, of, order).join(
        partitions.groupBy(*here).agg(f.lit(True)).select(*here), list(of)
    )
    rows = partitions.withColumn("begun_life", f.lit(None).cast("long")).unionByName(begun, allowMissingColumns=True)
    so_far = Window.partitionBy(*here).orderBy(*order).rowsBetween(Window.unboundedPreceding, 0)
    life = f.coalesce(f.last("begun_life", ignorenulls=True).over(so_far), f.lit(0))
    return rows.withColumn("life", life).where("begun_life IS NULL")


def _find_beginnings(records: DataFrame, of: Sequence[str], order: Sequence[str]) -> DataFrame:
    """Return the beginnings of lives that differ from the one before, which is 0 at first: a row or two for each
    topic."""
    in_order = Window.partitionBy(*of).orderBy(*order)
    so_far = in_order.rowsBetween(Window.unboundedPreceding, 0)
    removals = f.count(f.when(f.col("kind") == "topic_removed", 1)).over(so_far)
    begun = f.coalesce(f.last("czxid", ignorenulls=True).over(so_far), -removals)
    lives = records.where(f.col("kind").isin(*OF_TOPICS)).select(*of, *order, begun.alias("begun_life"))
    before = f.coalesce(f.lag("begun_life").over(in_order), f.lit(0))
    return lives.withColumn("life_before", before).where("begun_life <> life_before").select(*of, *order, "begun_life")

"""Which life of its topic a record of a partition is of: a topic that is created again under its name begins anew, and is
known by its czxid.

What topics say of themselves is little, and most of all records may be of one topic's partitions. So lives are found among
the records of topics alone, and where a life begins a row is put among the records of each partition of the topic: no work
is divided by topics where it may be large.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

OF_TOPICS: Final = ("topic", "topic_removed")


def of_their_lives(records: DataFrame, of: Sequence[str], order: Sequence[str]) -> DataFrame:
    """The records of partitions, each with `life`: the last czxid that its topic had before it; where none was recorded,
    how often the topic had been removed, as a negative number.

    `of` names topics, one by one in each history, `order` what orders the records of one. Of these only `OF_TOPICS` say
    anything about lives."""
    partitions = records.where("partition IS NOT NULL")
    here = [*of, "partition"]
    begun = _begun(records, of, order).join(partitions.groupBy(*here).agg(f.lit(True)).select(*here), list(of))
    rows = partitions.withColumn("begun_life", f.lit(None).cast("long")).unionByName(begun, allowMissingColumns=True)
    so_far = Window.partitionBy(*here).orderBy(*order).rowsBetween(Window.unboundedPreceding, 0)
    life = f.coalesce(f.last("begun_life", ignorenulls=True).over(so_far), f.lit(0))
    return rows.withColumn("life", life).where("begun_life IS NULL")


def _begun(records: DataFrame, of: Sequence[str], order: Sequence[str]) -> DataFrame:
    """Where topics begin a life other than the one before, which is 0 at first: a row or two for each topic."""
    in_order = Window.partitionBy(*of).orderBy(*order)
    so_far = in_order.rowsBetween(Window.unboundedPreceding, 0)
    removals = f.count(f.when(f.col("kind") == "topic_removed", 1)).over(so_far)
    begun = f.coalesce(f.last("czxid", ignorenulls=True).over(so_far), -removals)
    lives = records.where(f.col("kind").isin(*OF_TOPICS)).select(*of, *order, begun.alias("begun_life"))
    before = f.coalesce(f.lag("begun_life").over(in_order), f.lit(0))
    return lives.withColumn("life_before", before).where("begun_life <> life_before").select(*of, *order, "begun_life")

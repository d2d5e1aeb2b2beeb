"""Replicas that leave the ISR and come back, by day. A failing disk or network link often shows here first.

A replica that a reassignment adds is ignored until it has arrived. One that is removed does not count as a shrink.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from kontroller.history.answers.intervals.days import cut_by_day, micros_where, seconds
from kontroller.history.answers.intervals.states import PARTITION, add_stretches, previous_value
from kontroller.history.answers.intervals.within import Within
from kontroller.history.schemas import BROKERS, ISR_FLAPS


def isr_flaps(partition_intervals: DataFrame, within: Within | None = None) -> DataFrame:
    """Return ISR_FLAPS of each replica and day on which it left the ISR, came back, or was out of it."""
    moves = _add_flaps(_moves(add_stretches(partition_intervals)))
    parts = cut_by_day(moves, within)
    happened = f.col("is_first")
    sums = parts.groupBy("cluster_id", "broker", "topic", "partition", "day").agg(
        f.count_if(happened & f.col("left")).alias("shrinks"),
        f.count_if(happened & f.col("joined")).alias("expansions"),
        f.count_if(happened & f.col("flapped")).alias("flaps"),
        seconds(micros_where(~f.col("joined"))).alias("out_of_sync_seconds"),
    )
    is_worth_a_row = (f.col("shrinks") > 0) | (f.col("expansions") > 0) | (f.col("out_of_sync_seconds") > 0)
    return sums.where(is_worth_a_row).select(*ISR_FLAPS.schema.fieldNames())


def _moves(rows: DataFrame) -> DataFrame:
    """Return a row for each replica and interval out of sync, and one without length for each time that it joined."""
    settled = f.array_except("replicas", f.coalesce("adding", f.array().cast(BROKERS)))
    rows = rows.withColumn("_settled", settled).withColumn("_isr_before", previous_value("isr"))
    joined = f.array_intersect(f.array_except("isr", "_isr_before"), f.col("_settled"))
    left = f.array_intersect(f.array_except("_isr_before", "isr"), f.col("_settled"))
    rows = rows.withColumns({
        "_joined": f.coalesce(joined, f.array().cast(BROKERS)),
        "_left": f.coalesce(left, f.array().cast(BROKERS)),
        "_out": f.array_except("_settled", "isr"),
    })  # fmt: skip
    has_joined = _has(f.col("_joined"))
    return rows.withColumn("broker", f.explode(f.concat("_out", "_joined"))).select(
        *PARTITION,
        "broker",
        "began",
        f.when(has_joined, f.col("began")).otherwise(f.col("ended")).alias("ended"),
        f.col("ended").alias("_until"),
        "stretch",
        "controller_epoch",
        "seq",
        has_joined.alias("joined"),
        _has(f.col("_left")).alias("left"),
    )


def _has(brokers: Column) -> Column:
    """Return True if the column `broker` is among them."""
    return f.array_contains(brokers, f.col("broker"))


def _add_flaps(moves: DataFrame) -> DataFrame:
    """Add `flapped`: the replica joined, and its time out of sync had begun because it left."""
    order = Window.partitionBy(*PARTITION, "broker").orderBy("began", "_until", "controller_epoch", "seq")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    follows = (f.lag("_until").over(order) == f.col("began")) & (f.lag("stretch").over(order) == f.col("stretch"))
    follows = f.coalesce(follows, f.lit(False))
    moves = moves.withColumns({
        "_follows": follows,
        "_began_by_leaving": f.when(f.col("left"), True).when(~f.col("joined") & ~follows, False),
    })  # fmt: skip
    had_left = f.coalesce(f.last("_began_by_leaving", ignorenulls=True).over(before), f.lit(False))
    return moves.withColumn("flapped", f.col("joined") & f.col("_follows") & had_left)

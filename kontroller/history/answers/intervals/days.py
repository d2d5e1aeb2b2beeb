"""Intervals cut at midnight UTC, and the exact arithmetic of their lengths.

Lengths are summed in whole microseconds and become seconds at the end, so sums do not depend on the order of addition.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kontroller.history.answers.intervals.within import Within


def cut_by_day(intervals: DataFrame, within: Within | None = None) -> DataFrame:
    """Return a row for each day that an interval [began, ended) touches, clipped to that day. `ended` must not be null.

    Adds `day`, `micros` (the length of the part), and `is_first`, which is true for the part that the interval begins
    with. An interval without length has one part. The session's time zone must be UTC. `within`: return only the parts
    within it.
    """
    intervals = intervals.withColumn("_whole_began", f.col("began"))
    intervals = intervals if within is None else within.clip(intervals)
    last_moment = f.greatest(f.col("began"), f.col("ended") - f.expr("INTERVAL '0.000001' SECOND"))
    days = f.sequence(f.to_date("began"), f.to_date(last_moment), f.expr("INTERVAL 1 DAY"))
    parts = intervals.withColumns({"day": f.explode(days), "_is_begin": f.col("_whole_began") == f.col("began")})
    midnight = f.col("day").cast("timestamp")
    next_midnight = f.date_add("day", 1).cast("timestamp")
    parts = parts.withColumns({
        "is_first": f.col("_is_begin") & (f.col("day") == f.to_date("began")),
        "began": f.greatest(f.col("began"), midnight),
        "ended": f.least(f.col("ended"), next_midnight),
    }).withColumn("micros", micros_between("began", "ended"))  # fmt: skip
    return parts.selectExpr("* except (_whole_began, _is_begin)")


def micros_between(began: str, ended: str) -> Column:
    """Return the length of [began, ended) in microseconds."""
    return f.unix_micros(f.col(ended)) - f.unix_micros(f.col(began))


def micros_where(condition: Column) -> Column:
    """Return an aggregate: the sum of `micros` over the rows for which the condition is true."""
    return f.coalesce(f.sum(f.when(condition, f.col("micros"))), f.lit(0))


def seconds(micros: str | Column) -> Column:
    """Convert microseconds to seconds."""
    return (f.col(micros) if isinstance(micros, str) else micros) / f.lit(1_000_000.0)

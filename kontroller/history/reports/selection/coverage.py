"""The part of each piece of time that intervals cover, without a row for each piece that an interval touches.

An interval is two edges. An edge at t adds the rest of its piece after t, and a whole width to every later piece. The
end of an interval subtracts the same. So Spark sums two rows for each interval by piece, and this module carries the
whole widths over the few pieces.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kontroller.history.reports.period import Grid

Key = tuple[str | int, ...]


def edges(intervals: DataFrame, keys: Sequence[str], grid: Grid) -> DataFrame:
    """Reduce rows with `began_us`, `ended_us` and `measure` to `keys`, measure, piece, whole (number of opened
    intervals), part_us."""
    end = grid.ended_us
    both = intervals.where("began_us < ended_us").select(
        *keys,
        "measure",
        f.explode(
            f.array(
                f.struct(f.col("began_us").alias("at_us"), f.lit(1).alias("sign")),
                f.struct(f.col("ended_us").alias("at_us"), f.lit(-1).alias("sign")),
            )
        ).alias("edge"),
    )
    at = f.greatest(f.col("edge.at_us"), f.lit(grid.began_us))
    piece = f.floor((at - f.lit(grid.began_us)) / f.lit(grid.width_us))
    # An edge after the grid affects no piece.
    rows = both.where(f.col("edge.at_us") < f.lit(end)).select(
        *keys,
        "measure",
        piece.cast("int").alias("piece"),
        f.col("edge.sign").alias("sign"),
        (f.lit(grid.began_us) + (piece + 1) * f.lit(grid.width_us) - at).alias("left_us"),
    )
    return rows.groupBy(*keys, "measure", "piece").agg(
        f.sum("sign").cast("long").alias("whole"),
        f.sum(f.col("sign") * f.col("left_us")).cast("long").alias("part_us"),
    )


def sum_coverage(rows: DataFrame, keys: Sequence[str], grid: Grid) -> dict[Key, dict[str, list[int]]]:
    """Collect the result of `edges`: for each key and measure the covered microseconds of each piece of the grid."""
    found: dict[Key, dict[str, dict[int, tuple[int, int]]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows.collect():
        key = tuple(row[name] for name in keys)
        found[key][row["measure"]][row["piece"]] = (row["whole"], row["part_us"])
    return {
        key: {measure: _carry_over(pieces, grid) for measure, pieces in measures.items()}
        for key, measures in found.items()
    }


def _carry_over(pieces: Mapping[int, tuple[int, int]], grid: Grid) -> list[int]:
    values, whole = [], 0
    for index in range(grid.count):
        more, part_us = pieces.get(index, (0, 0))
        values.append(whole * grid.width_us + part_us)
        whole += more
    return values

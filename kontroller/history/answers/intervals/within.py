"""Parts of the history, to which answers can be restricted."""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """Pieces [began, ended) of time that do not overlap, in microseconds since 1970. There is at least one."""

    pieces_us: tuple[tuple[int, int], ...]

    def clip(self, intervals: DataFrame) -> DataFrame:
        """Return the parts of the intervals within each piece. An interval without length is in the piece in which it
        began."""
        pieces = f.array(
            *(f.struct(_moment(began).alias("first"), _moment(ended).alias("end")) for began, ended in self.pieces_us)
        )
        rows = intervals.withColumn("_piece", f.explode(pieces))
        first, end = f.col("_piece.first"), f.col("_piece.end")
        is_here = (f.col("began") < end) & ((f.col("ended") > first) | (f.col("began") >= first))
        ends = {"began": f.greatest(f.col("began"), first), "ended": f.least(f.col("ended"), end)}
        return rows.where(is_here).withColumns(ends).selectExpr("* except (_piece)")


def _moment(at_us: int) -> Column:
    return f.timestamp_micros(f.lit(at_us))

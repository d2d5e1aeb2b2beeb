"""The boundary between stamps and times. Only events have stamps; every other table has moments, or null.

A stamp is what a writer's clock claimed, of any year. A moment is a time that may be computed with and shown. A stamp is
one if the cluster has a believed clock within a year of it (`clock_runs`). Other stamps become null.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kontroller.history.transforms.continuity.clock_runs import YEAR_US

_BOUNDS = ("_first_us", "_last_us")


def drop_stamps(rows: DataFrame, spans: DataFrame, *columns: str, pointers: str | None = None) -> DataFrame:
    """Return the rows with null in these columns instead of stamps that are no moments of their cluster.

    `pointers`: a column of arrays of records, whose `event_time` is treated alike."""
    found = rows.join(f.broadcast(_bounds(spans)), "cluster_id", "left")
    values = {name: _moment(f.col(name)) for name in columns}
    if pointers is not None:
        values[pointers] = f.transform(
            pointers, lambda record: record.withField("event_time", _moment(record["event_time"]))
        )
    return found.withColumns(values).selectExpr(f"* except ({', '.join(_BOUNDS)})")


def _bounds(spans: DataFrame) -> DataFrame:
    """Return the first and last possible moment of each cluster in which some clock is believed."""
    first, last = f.min(f.unix_micros("began")) - YEAR_US, f.max(f.unix_micros("ended")) + YEAR_US
    believed = spans.where("has_time").groupBy("cluster_id")
    return believed.agg(first.alias(_BOUNDS[0]), last.alias(_BOUNDS[1]))


def _moment(stamp: Column) -> Column:
    return f.when(f.unix_micros(stamp).between(*map(f.col, _BOUNDS)), stamp)

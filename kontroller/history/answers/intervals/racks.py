"""The racks of brokers over time: a few maps for each cluster, small enough to be broadcast.

A broker without a registration stays in the rack of its last one. Before its first one it is in the rack of that. So a
map is valid until a broker changes its rack, which is rare.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

NO_RACK: Final = ""

_BEGINNING: Final = "timestamp '0001-01-01 00:00:00'"
_END: Final = "timestamp '9999-12-31 00:00:00'"


def add_racks(intervals: DataFrame, broker_intervals: DataFrame) -> DataFrame:
    """Add a column `racks` (broker to rack), and cut intervals at changes of racks. Intervals without length are
    dropped."""
    maps = rack_maps(broker_intervals).withColumnsRenamed(
        {"cluster_id": "_cluster_id", "began": "_began", "ended": "_ended"}
    )
    overlap = (f.col("began") < f.col("_ended")) & (f.col("_began") < f.col("ended"))
    joined = intervals.join(f.broadcast(maps), (f.col("cluster_id") == f.col("_cluster_id")) & overlap, "left")
    return joined.withColumns({
        "began": f.greatest("began", "_began"),
        "ended": f.least("ended", "_ended"),
    }).selectExpr("* except (_cluster_id, _began, _ended)")  # fmt: skip


def rack_of(broker: Column) -> Column:
    """Return the rack of a broker in rows of `add_racks`; "" if it has none or was never seen."""
    return f.coalesce(f.try_element_at(f.col("racks"), broker), f.lit(NO_RACK))


def rack_maps(broker_intervals: DataFrame) -> DataFrame:
    """Return `cluster_id`, `racks`, [`began`, `ended`). The rows of a cluster cover all time without a gap."""
    of_brokers = _rack_of_each_broker(broker_intervals)
    starts = of_brokers.groupBy("cluster_id", "began").agg(f.lit(True)).select("cluster_id", "began")
    next_start = f.lead("began").over(Window.partitionBy("cluster_id").orderBy("began"))
    spans = starts.withColumn("ended", f.coalesce(next_start, f.expr(_END)))
    brokers = of_brokers.select(
        "cluster_id", "broker", "rack", f.col("began").alias("_from"), f.col("ended").alias("_to")
    )
    return (
        spans.join(brokers, "cluster_id")
        .where("_from <= began and began < _to")
        .groupBy("cluster_id", "began", "ended")
        .agg(f.map_from_entries(f.collect_list(f.struct("broker", "rack"))).alias("racks"))
    )


def _rack_of_each_broker(broker_intervals: DataFrame) -> DataFrame:
    """Return a row for each rack that a broker was in. The rows of a broker cover all time without a gap."""
    order = Window.partitionBy("cluster_id", "broker").orderBy("began", "ended", "controller_epoch", "seq")
    rack = f.coalesce("rack", f.lit(NO_RACK))
    registrations = broker_intervals.where("is_known and began < ended").withColumn("rack", rack)
    changes = registrations.withColumn("_before", f.lag("rack").over(order)).where("_before is null or _before != rack")
    return changes.select(
        "cluster_id",
        "broker",
        "rack",
        f.when(f.col("_before").isNull(), f.expr(_BEGINNING)).otherwise(f.col("began")).alias("began"),
        f.coalesce(f.lead("began").over(order), f.expr(_END)).alias("ended"),
    )

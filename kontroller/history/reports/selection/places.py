"""Topics and partitions in a few words, for any number of them.

The topic with the most partitions comes first. A topic with one such partition is named with its number: `orders (4),
payments-2 and 3 more topics`.
"""

from dataclasses import replace

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from kontroller.history import schemas
from kontroller.history.reports.facts import Listed
from kontroller.history.reports.selection.tables import Tables

MOST_TOPICS = 3
LETTERS = 60
"""The letters of a topic's name that are shown."""


def places(rows: DataFrame, *keys: str) -> DataFrame:
    """Return by `keys` the number of `partitions`, and `places` in words, of rows with `topic` and `partition`."""
    topics = rows.groupBy(*keys, "topic").agg(
        f.countDistinct("partition").alias("partitions"), f.min("partition").alias("first")
    )
    of_each = Window.partitionBy(*keys)
    in_order = of_each.orderBy(f.col("partitions").desc(), "topic")
    ranked = topics.withColumn("rank", f.row_number().over(in_order)).withColumn("name", _name())
    named = f.collect_list(f.when(f.col("rank") <= MOST_TOPICS, f.struct("rank", "name")))
    summed = ranked.groupBy(*keys).agg(
        f.sum("partitions").alias("partitions"), f.count("*").alias("topics"), f.sort_array(named).alias("named")
    )
    more = f.col("topics") - MOST_TOPICS
    rest = f.when(more == 1, " and 1 more topic").when(more > 1, f.format_string(" and %d more topics", more))
    words = f.concat(f.array_join(f.transform("named", lambda each: each["name"]), ", "), f.coalesce(rest, f.lit("")))
    return summed.select(*keys, "partitions", words.alias("places"))


def _name() -> Expression:
    topic, most = f.col("topic"), f.lit(LETTERS)
    tail = LETTERS // 2 - 1
    short = f.concat(f.left(topic, most - tail - 1), f.lit("…"), f.right(topic, f.lit(tail)))
    shown = f.when(f.length(topic) > most, short).otherwise(topic)
    return f.when(f.col("partitions") == 1, f.concat(shown, f.lit("-"), f.col("first").cast("string"))).otherwise(
        f.concat(shown, f.lit(" ("), f.col("partitions").cast("string"), f.lit(")"))
    )


def add_led_places(failovers: Listed, tables: Tables) -> Listed:
    """Add `places` to the listed failovers: the partitions that the broker led when it was lost.

    Only the listed rows are computed, which are few."""
    lost = [(index, row["cluster_id"], row["broker"], row["lost_at"]) for index, row in enumerate(failovers.rows)]
    if not lost:
        return failovers
    losses = tables.spark.createDataFrame(lost, "row int, cluster_id string, broker int, lost_us long")
    led = tables[schemas.PARTITION_INTERVALS].where("is_known")
    at_that_moment = (f.unix_micros("began") < f.col("lost_us")) & (f.unix_micros("ended") >= f.col("lost_us"))
    rows = led.withColumnRenamed("leader", "broker").join(f.broadcast(losses), ["cluster_id", "broker"])
    found = {row["row"]: row["places"] for row in places(rows.where(at_that_moment), "row").collect()}
    return replace(
        failovers, rows=tuple({**row, "places": found.get(index, "")} for index, row in enumerate(failovers.rows))
    )

"""The worst episodes of the clusters: incidents that began soon after each other.

Incidents are summed by minute first, or by a smaller piece of a short period. So the rows that are ordered within a
cluster are bounded by the length of the period.
"""

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as f
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from kontroller.history import schemas
from kontroller.history.reports.facts import Episode, Uptime
from kontroller.history.reports.limits import Limits
from kontroller.history.reports.period import HOUR, MINUTE, SECOND, Period, add_margins
from kontroller.history.reports.selection.episodes import drawn
from kontroller.history.reports.selection.episodes.culprits import find_culprits
from kontroller.history.reports.selection.episodes.stories import (
    KIND_OF_CULPRITS,
    select_incidents,
    stories,
    unclean_elections,
)
from kontroller.history.reports.selection.tables import Tables
from kontroller.history.reports.stories import Story

PIECES_OF_QUIET = 10
AFTERWARDS_US = HOUR
"""The time that an episode is shown after the beginning of its last incident, if some last longer."""
UNCLEAN_WEIGHT_US = HOUR
UNDER_WEIGHT = 0.1

WINDOWS = StructType(
    [
        StructField("episode", IntegerType()),
        StructField("cluster_id", StringType()),
        StructField("first_us", LongType()),
        StructField("last_us", LongType()),
        StructField("from_us", LongType()),
        StructField("until_us", LongType()),
    ]
)


def episodes(tables: Tables, limits: Limits) -> tuple[tuple[Episode, ...], int]:
    """Return the worst episodes, worst first, and the number of all."""
    found = islands(tables)
    score = f.col("leaderless_us") + f.col("under_us") * UNDER_WEIGHT + f.col("unclean") * UNCLEAN_WEIGHT_US
    worst = found.orderBy(score.desc(), "first_us", "cluster_id").limit(limits.episodes + 1).collect()
    total = len(worst) if len(worst) <= limits.episodes else found.count()
    worst = worst[: limits.episodes]
    if not worst:
        return (), 0
    windows = tables.spark.createDataFrame([_window(index, row) for index, row in enumerate(worst)], WINDOWS)
    windows = f.broadcast(windows)
    partitions = _partitions(tables, windows)
    culprits = find_culprits(tables, select_incidents(tables, windows), KIND_OF_CULPRITS)
    told = stories(tables, windows, limits, culprits)
    steps = drawn.steps(tables, windows)
    marks = drawn.marks(tables, windows, limits)
    brokers = drawn.brokers(tables, windows, limits, culprits)
    spans = drawn.spans(tables, windows, limits)
    made = []
    for index, row in enumerate(worst):
        _, cluster, _, _, from_us, until_us = _window(index, row)
        lanes, brokers_total = brokers.get(index, ((), 0))
        bars = spans.get(index, ())
        made.append(
            Episode(
                cluster=cluster,
                began_us=row["first_us"],
                ended_us=row["ended_us"],
                shown_until_us=min(row["ended_us"], row["last_us"] + AFTERWARDS_US),
                incidents=row["incidents"],
                partitions=partitions.get(index, 0),
                uptime=Uptime(leaderless_us=row["leaderless_us"], under_us=row["under_us"]),
                unclean=row["unclean"],
                brokers=lanes,
                brokers_total=brokers_total,
                controllers=bars,
                unknowns=drawn.holes(cluster, bars, from_us, until_us) if len(bars) < limits.bars else (),
                leaderless=steps.get((index, "leaderless"), ()),
                under=steps.get((index, "under_min_isr"), ()),
                marks=marks.get(index, ((), 0))[0],
                marks_total=marks.get(index, ((), 0))[1],
                story=told.get(index, Story()),
            )
        )
    return tuple(made), total


def quiet_us(period: Period) -> int:
    """Return the time without a new incident that ends an episode: ten minutes, or less in a short period."""
    return min(10 * MINUTE, max(5 * SECOND, (period.ended_us - period.began_us) // 100))


def islands(tables: Tables) -> DataFrame:
    """Return a row for each episode: cluster, its first and last beginning, its end, and sums."""
    incidents = tables.clip(schemas.INCIDENTS)
    lasted = f.col("ended_us") - f.col("began_us")
    bad = incidents.select(
        "cluster_id",
        "began_us",
        "ended_us",
        f.lit(1).alias("incidents"),
        f.when(f.col("problem") == "leaderless", lasted).otherwise(0).alias("leaderless_us"),
        f.when(f.col("problem") == "under_min_isr", lasted).otherwise(0).alias("under_us"),
        f.lit(0).alias("unclean"),
    )
    unclean = unclean_elections(tables).select(
        "cluster_id",
        "began_us",
        f.col("at_us").alias("ended_us"),
        f.lit(0).alias("incidents"),
        f.lit(0).alias("leaderless_us"),
        f.lit(0).alias("under_us"),
        f.lit(1).alias("unclean"),
    )
    sums = [f.sum(name).cast("long").alias(name) for name in ("incidents", "leaderless_us", "under_us", "unclean")]
    ends = [f.max("ended_us").alias("ended_us")]
    piece = f.floor(f.col("began_us") / (quiet_us(tables.period) // PIECES_OF_QUIET))
    by_piece = (
        bad.unionByName(unclean)
        .groupBy("cluster_id", piece.alias("piece"))
        .agg(f.min("began_us").alias("first_us"), f.max("began_us").alias("last_us"), *ends, *sums)
    )
    in_order = Window.partitionBy("cluster_id").orderBy("piece")
    begins = f.coalesce(f.col("piece") - f.lag("piece").over(in_order) > PIECES_OF_QUIET, f.lit(True))
    numbered = by_piece.withColumn("island", f.sum(begins.cast("int")).over(in_order))
    return (
        numbered.groupBy("cluster_id", "island")
        .agg(f.min("first_us").alias("first_us"), f.max("last_us").alias("last_us"), *ends, *sums)
        .where("incidents > 0 or unclean > 0")
    )


def _window(index: int, row: Row) -> tuple[int, str, int, int, int, int]:
    until_us = min(row["ended_us"], row["last_us"] + AFTERWARDS_US)
    return (index, row["cluster_id"], row["first_us"], row["last_us"], *add_margins(row["first_us"], until_us))


def _partitions(tables: Tables, windows: DataFrame) -> dict[int, int]:
    began_in = f.col("began_us").between(f.col("first_us"), f.col("last_us"))
    rows = tables.clip(schemas.INCIDENTS).join(windows, "cluster_id").where(began_in)
    counts = rows.groupBy("episode").agg(f.countDistinct("topic", "partition").alias("partitions")).collect()
    return {row["episode"]: row["partitions"] for row in counts}

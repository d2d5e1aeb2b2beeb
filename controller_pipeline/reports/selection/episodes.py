"""The worst times of the clusters: incidents that began soon after one another, and what happened meanwhile.

Incidents are summed by minute first, so that what is ordered within a cluster is bounded by the minutes of the period. All
that is drawn of an episode is aggregated to the pixels of its picture before it is collected.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as f
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from controller_pipeline import schemas
from controller_pipeline.reports import words
from controller_pipeline.reports.facts import Bar, Episode, Lane, Mark, Step, Unknown, Uptime
from controller_pipeline.reports.limits import Limits
from controller_pipeline.reports.period import HOUR, MINUTE, shown_window
from controller_pipeline.reports.selection.spans import span_bar
from controller_pipeline.reports.selection.tables import Tables

QUIET_MINUTES = 10
"""Without any new incident: the next one belongs to another episode."""
AFTERWARDS_US = HOUR
"""How long after its last incident's beginning an episode is shown, if some last longer."""
UNCLEAN_WEIGHT_US = HOUR
UNDER_WEIGHT = 0.1
PIXELS = 600
MARK_PIECES = 60

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
    """The worst, worst first, and how many there are."""
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
    steps = _steps(tables, windows)
    marks = _marks(tables, windows, limits)
    brokers = _brokers(tables, windows, limits)
    spans = _spans(tables, windows, limits)
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
                unknowns=_holes(cluster, bars, from_us, until_us) if len(bars) < limits.bars else (),
                leaderless=steps.get((index, "leaderless"), ()),
                under=steps.get((index, "under_min_isr"), ()),
                marks=marks.get(index, ((), 0))[0],
                marks_total=marks.get(index, ((), 0))[1],
            )
        )
    return tuple(made), total


def islands(tables: Tables) -> DataFrame:
    """One row for each episode: cluster, its first and last beginning, its end, and sums."""
    incidents = tables.clipped(schemas.INCIDENTS)
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
    at = f.unix_micros("elected_at")
    unclean = tables[schemas.UNCLEAN_ELECTIONS].select(
        "cluster_id",
        at.alias("began_us"),
        at.alias("ended_us"),
        f.lit(0).alias("incidents"),
        f.lit(0).alias("leaderless_us"),
        f.lit(0).alias("under_us"),
        f.lit(1).alias("unclean"),
    )
    sums = [f.sum(name).cast("long").alias(name) for name in ("incidents", "leaderless_us", "under_us", "unclean")]
    ends = [f.max("ended_us").alias("ended_us")]
    minute = f.floor(f.col("began_us") / MINUTE)
    by_minute = (
        bad.unionByName(unclean)
        .groupBy("cluster_id", minute.alias("minute"))
        .agg(f.min("began_us").alias("first_us"), f.max("began_us").alias("last_us"), *ends, *sums)
    )
    in_order = Window.partitionBy("cluster_id").orderBy("minute")
    begins = f.coalesce(f.col("minute") - f.lag("minute").over(in_order) > QUIET_MINUTES, f.lit(True))
    numbered = by_minute.withColumn("island", f.sum(begins.cast("int")).over(in_order))
    return (
        numbered.groupBy("cluster_id", "island")
        .agg(f.min("first_us").alias("first_us"), f.max("last_us").alias("last_us"), *ends, *sums)
        .where("incidents > 0 or unclean > 0")
    )


def _window(index: int, row: Row) -> tuple[int, str, int, int, int, int]:
    until_us = min(row["ended_us"], row["last_us"] + AFTERWARDS_US)
    return (index, row["cluster_id"], row["first_us"], row["last_us"], *shown_window(row["first_us"], until_us))


def _partitions(tables: Tables, windows: DataFrame) -> dict[int, int]:
    began_in = f.col("began_us").between(f.col("first_us"), f.col("last_us"))
    rows = tables.clipped(schemas.INCIDENTS).join(windows, "cluster_id").where(began_in)
    counts = rows.groupBy("episode").agg(f.countDistinct("topic", "partition").alias("partitions")).collect()
    return {row["episode"]: row["partitions"] for row in counts}


def _steps(tables: Tables, windows: DataFrame) -> dict[tuple[int, str], tuple[Step, ...]]:
    """Of each problem the number of partitions, at each pixel where it changes."""
    rows = tables.clipped(schemas.INCIDENTS).join(windows, "cluster_id")
    rows = rows.where("began_us < until_us and ended_us > from_us and began_us < ended_us")
    edge = f.explode(
        f.array(
            f.struct(f.greatest("began_us", "from_us").alias("at_us"), f.lit(1).alias("sign")),
            f.struct(f.col("ended_us").alias("at_us"), f.lit(-1).alias("sign")),
        )
    )
    edges = rows.select("episode", "problem", "from_us", "until_us", edge.alias("edge")).where("edge.at_us <= until_us")
    pixel = f.floor((f.col("at_us") - f.col("from_us")) * PIXELS / (f.col("until_us") - f.col("from_us")))
    by_time = (
        edges.select("episode", "problem", "from_us", "until_us", "edge.at_us", "edge.sign")
        .groupBy("episode", "problem", "at_us", pixel.alias("pixel"))
        .agg(f.sum("sign").alias("change"))
    )
    in_order = Window.partitionBy("episode", "problem").orderBy("at_us")
    counted = by_time.withColumn("value", f.sum("change").over(in_order))
    pixels = counted.groupBy("episode", "problem", "pixel").agg(
        f.min("at_us").alias("at_us"), f.max("value").alias("peak"), f.max_by("value", "at_us").alias("value")
    )
    found: dict[tuple[int, str], list[Step]] = defaultdict(list)
    for row in pixels.orderBy("episode", "problem", "pixel").collect():
        step = Step(at_us=row["at_us"], peak=row["peak"], value=row["value"])
        found[row["episode"], row["problem"]].append(step)
    return {key: tuple(steps) for key, steps in found.items()}


def _marks(tables: Tables, windows: DataFrame, limits: Limits) -> dict[int, tuple[tuple[Mark, ...], int]]:
    """What changed partitions, the same cause within a sixtieth of the picture as one."""
    began_us = f.unix_micros("began")
    changes = tables[schemas.PARTITION_INTERVALS].where("is_known").withColumn("at_us", began_us)
    rows = changes.join(windows, "cluster_id").where("at_us >= from_us and at_us < until_us")
    piece = f.floor((f.col("at_us") - f.col("from_us")) * MARK_PIECES / (f.col("until_us") - f.col("from_us")))
    groups = rows.groupBy("episode", "cause", piece.alias("piece")).agg(
        f.min("at_us").alias("at_us"),
        f.countDistinct("topic", "partition").alias("partitions"),
        f.sum((f.col("leader") == -1).cast("int")).alias("leaderless"),
        f.sum(f.col("unclean").cast("int")).alias("unclean"),
        f.bool_and(f.coalesce("inferred", f.lit(False))).alias("inferred"),
    )
    of_episode = Window.partitionBy("episode")
    loudest = of_episode.orderBy(
        *(f.col(name).desc_nulls_last() for name in ("unclean", "leaderless", "partitions")), "at_us", "cause"
    )
    ranked = groups.withColumn("rank", f.row_number().over(loudest)).withColumn("total", f.count("*").over(of_episode))
    found: dict[int, list[Mark]] = defaultdict(list)
    totals: dict[int, int] = {}
    for row in ranked.where(f.col("rank") <= limits.marks).orderBy("episode", "at_us", "cause").collect():
        totals[row["episode"]] = row["total"]
        found[row["episode"]].append(
            Mark(
                at_us=row["at_us"],
                cause=(row["cause"] or "cause not recorded")[:80],
                partitions=row["partitions"],
                leaderless=row["leaderless"] or 0,
                unclean=row["unclean"] or 0,
                inferred=bool(row["inferred"]),
            )
        )
    return {index: (tuple(marks), totals[index]) for index, marks in found.items()}


def _brokers(tables: Tables, windows: DataFrame, limits: Limits) -> dict[int, tuple[tuple[Lane, ...], int]]:
    """Those that were away the longest, in the order of their ids."""
    rows = tables.clipped(schemas.BROKER_INTERVALS).join(windows, "cluster_id")
    rows = rows.where("began_us < until_us and ended_us > from_us")
    there_us = f.least("ended_us", "until_us") - f.greatest("began_us", "from_us")
    each = Window.partitionBy("episode", "broker")
    rows = (
        rows.withColumn("there_us", f.sum(f.when(f.col("is_known"), there_us)).over(each))
        .withColumn("number", f.row_number().over(each.orderBy("began_us", "controller_epoch", "seq")))
        .withColumn("rank", f.dense_rank().over(Window.partitionBy("episode").orderBy("there_us", "broker")))
        .withColumn("total", f.size(f.collect_set("broker").over(Window.partitionBy("episode"))))
        .where((f.col("rank") <= limits.episode_brokers) & (f.col("number") <= limits.bars))
    )
    found: dict[int, dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    totals: dict[int, int] = {}
    fields = ("episode", "broker", "rack", "began_us", "ended_us", "is_known", "cause", "total")
    for row in rows.orderBy("episode", "broker", "number").select(*fields).collect():
        found[row["episode"]][row["broker"]].append(row)
        totals[row["episode"]] = row["total"]
    return {
        index: (tuple(_broker_lane(broker, its) for broker, its in sorted(lanes.items())), totals[index])
        for index, lanes in found.items()
    }


def _broker_lane(broker: int, rows: Sequence[Row]) -> Lane:
    rack = next((row["rack"] for row in rows if row["rack"]), "")
    label = f"broker {broker}" + (f" ({rack[:60]})" if rack else "")
    return Lane(label=label, bars=tuple(_broker_bar(row) for row in rows))


def _broker_bar(row: Row) -> Bar:
    state, label = ("registered", "registered") if row["is_known"] else ("unknown", "unknown")
    tip = f"broker {row['broker']} {label}, {words.between(row['began_us'], row['ended_us'])}"
    if row["is_known"] and row["cause"]:
        tip += f" ({row['cause'][:80]})"
    return Bar(began_us=row["began_us"], ended_us=row["ended_us"], state=state, label="", tip=tip)


def _spans(tables: Tables, windows: DataFrame, limits: Limits) -> dict[int, tuple[Bar, ...]]:
    rows = tables.clipped(schemas.KNOWN_SPANS).join(windows, "cluster_id")
    rows = rows.where("began_us < until_us and ended_us > from_us")
    number = f.row_number().over(Window.partitionBy("episode").orderBy("span"))
    rows = rows.withColumn("number", number).where(f.col("number") <= limits.bars)
    found: dict[int, list[Bar]] = defaultdict(list)
    for row in rows.orderBy("episode", "number").collect():
        found[row["episode"]].append(span_bar(row))
    return {index: tuple(bars) for index, bars in found.items()}


def _holes(cluster: str, bars: Iterable[Bar], from_us: int, until_us: int) -> tuple[Unknown, ...]:
    """Between the spans in which the cluster is known."""
    at_us, holes = from_us, []
    for bar in bars:
        if bar.began_us > at_us:
            holes.append(Unknown(cluster=cluster, began_us=at_us, ended_us=bar.began_us, reason="no known history"))
        at_us = max(at_us, bar.ended_us)
    if at_us < until_us:
        holes.append(Unknown(cluster=cluster, began_us=at_us, ended_us=until_us, reason="no known history"))
    return tuple(holes)

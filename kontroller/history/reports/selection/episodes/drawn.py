"""The picture of an episode, aggregated to pixels: brokers, controllers, partitions in need, changes.

`windows` has each episode's cluster, the beginnings of its first and last incident, and the ends of its picture.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import cast

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as f

from kontroller.history import schemas
from kontroller.history.reports import words
from kontroller.history.reports.facts import Bar, Lane, Mark, Step, Unknown
from kontroller.history.reports.limits import Limits
from kontroller.history.reports.selection.episodes.culprits import Culprit, Culprits
from kontroller.history.reports.selection.places import places
from kontroller.history.reports.selection.rows import first_clients, join_clients, name_client
from kontroller.history.reports.selection.spans import span_bar
from kontroller.history.reports.selection.tables import Tables

PIXELS = 600
MARK_PIECES = 60


def steps(tables: Tables, windows: DataFrame) -> dict[tuple[int, str], tuple[Step, ...]]:
    """Return the number of partitions with each problem, at each pixel where it changes."""
    rows = tables.clip(schemas.INCIDENTS).join(windows, "cluster_id")
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


def marks(tables: Tables, windows: DataFrame, limits: Limits) -> dict[int, tuple[tuple[Mark, ...], int]]:
    """Return the changes of partitions. Changes with one cause within a sixtieth of the picture count as one."""
    began_us = f.unix_micros("began")
    changes = tables[schemas.PARTITION_INTERVALS].where("is_known").withColumn("at_us", began_us)
    changes = changes.withColumn("cause", f.coalesce("cause", f.lit("cause not recorded")))
    rows = changes.join(windows, "cluster_id").where("at_us >= from_us and at_us < until_us")
    piece = f.floor((f.col("at_us") - f.col("from_us")) * MARK_PIECES / (f.col("until_us") - f.col("from_us")))
    rows = rows.withColumns({"piece": piece, "asked_by": name_client()})
    groups = rows.groupBy("episode", "cause", "piece").agg(
        f.min("at_us").alias("at_us"),
        f.sum((f.col("leader") == -1).cast("int")).alias("leaderless"),
        f.sum(f.col("unclean").cast("int")).alias("unclean"),
        f.bool_and(f.coalesce("inferred", f.lit(False))).alias("inferred"),
        *first_clients(),
    )
    groups = groups.join(places(rows, "episode", "cause", "piece"), ["episode", "cause", "piece"])
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
                cause=row["cause"][:80],
                partitions=row["partitions"],
                places=row["places"],
                leaderless=row["leaderless"] or 0,
                unclean=row["unclean"] or 0,
                inferred=bool(row["inferred"]),
                asked_by=join_clients(row),
            )
        )
    return {index: (tuple(marks), totals[index]) for index, marks in found.items()}


def brokers(
    tables: Tables, windows: DataFrame, limits: Limits, culprits: Culprits
) -> dict[int, tuple[tuple[Lane, ...], int]]:
    """Return the brokers that were missed by partitions or away, in the order of their ids, and the number of all.

    If they are too many, those that were missed come first, then those that were away longest. `culprits`: by kinds
    that begin with the episode."""
    missed = _list_missed(culprits)
    wanted = f.broadcast(tables.spark.createDataFrame(list(missed), "episode int, broker int"))
    wanted = wanted.withColumn("is_missed", f.lit(True))
    rows = tables.clip(schemas.BROKER_INTERVALS).join(windows, "cluster_id")
    rows = rows.where("began_us < until_us and ended_us > from_us")
    there_us = f.least("ended_us", "until_us") - f.greatest("began_us", "from_us")
    each = Window.partitionBy("episode", "broker")
    in_order = Window.partitionBy("episode").orderBy(f.col("is_missed").isNull(), "there_us", "broker")
    rows = (
        rows.withColumn("there_us", f.sum(there_us).over(each))
        .withColumn("total", f.size(f.collect_set("broker").over(Window.partitionBy("episode"))))
        .join(wanted, ["episode", "broker"], "left")
        .where(f.col("is_missed") | (f.col("there_us") < f.col("until_us") - f.col("from_us")))
        .withColumn("number", f.row_number().over(each.orderBy("began_us", "controller_epoch", "seq")))
        .withColumn("rank", f.dense_rank().over(in_order))
        .where((f.col("rank") <= limits.episode_brokers) & (f.col("number") <= limits.bars))
    )
    found: dict[int, dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    totals: dict[int, int] = {}
    fields = ("episode", "broker", "rack", "began_us", "ended_us", "is_known", "cause", "total")
    for row in rows.orderBy("episode", "broker", "number").select(*fields).collect():
        found[row["episode"]][row["broker"]].append(row)
        totals[row["episode"]] = row["total"]
    for episode, broker in missed:
        # A broker that was gone all the time has no interval here.
        if broker not in found[episode] and len(found[episode]) < limits.episode_brokers:
            found[episode][broker] = []
            totals[episode] = totals.get(episode, 0) + 1
    return {
        index: (
            tuple(_broker_lane(broker, its, missed.get((index, broker))) for broker, its in sorted(lanes.items())),
            totals[index],
        )
        for index, lanes in found.items()
    }


def _list_missed(culprits: Culprits) -> dict[tuple[int, int], Bar | None]:
    """Return the brokers that partitions missed by episode, with a bar for those that were registered."""
    spans: dict[tuple[int, int], list[Culprit]] = defaultdict(list)
    for (episode, *_), its in culprits.items():
        for each in its:
            spans[cast("int", episode), each.broker].append(each)
    return {(episode, broker): _draw_missed_bar(broker, its) for (episode, broker), its in spans.items()}


def _draw_missed_bar(broker: int, culprits: Sequence[Culprit]) -> Bar | None:
    there = [each for each in culprits if each.state == "there"]
    if not there:
        return None
    began_us, ended_us = min(each.began_us for each in there), max(each.ended_us for each in there)
    tip = f"broker {broker} was registered, and partitions missed it in their ISRs, "
    tip += words.format_span(began_us, ended_us)
    return Bar(began_us=began_us, ended_us=ended_us, state="missed", label="out of sync", tip=tip)


def _broker_lane(broker: int, rows: Sequence[Row], missed: Bar | None) -> Lane:
    rack = next((row["rack"] for row in rows if row["rack"]), "")
    label = f"broker {broker}" + (f" ({rack[:60]})" if rack else "")
    return Lane(label=label, bars=(*(_broker_bar(row) for row in rows), *([missed] if missed else [])))


def _broker_bar(row: Row) -> Bar:
    state, label = ("registered", "registered") if row["is_known"] else ("unknown", "unknown")
    tip = f"broker {row['broker']} {label}, {words.format_span(row['began_us'], row['ended_us'])}"
    if row["is_known"] and row["cause"]:
        tip += f" ({row['cause'][:80]})"
    return Bar(began_us=row["began_us"], ended_us=row["ended_us"], state=state, label="", tip=tip)


def spans(tables: Tables, windows: DataFrame, limits: Limits) -> dict[int, tuple[Bar, ...]]:
    rows = tables.clip(schemas.KNOWN_SPANS).join(windows, "cluster_id")
    rows = rows.where("began_us < until_us and ended_us > from_us")
    number = f.row_number().over(Window.partitionBy("episode").orderBy("span"))
    rows = rows.withColumn("number", number).where(f.col("number") <= limits.bars)
    found: dict[int, list[Bar]] = defaultdict(list)
    for row in rows.orderBy("episode", "number").collect():
        found[row["episode"]].append(span_bar(row))
    return {index: tuple(bars) for index, bars in found.items()}


def holes(cluster: str, bars: Iterable[Bar], from_us: int, until_us: int) -> tuple[Unknown, ...]:
    """Return the gaps between the spans in which the cluster is known."""
    at_us, holes = from_us, []
    for bar in bars:
        if bar.began_us > at_us:
            holes.append(Unknown(cluster=cluster, began_us=at_us, ended_us=bar.began_us, reason="no known history"))
        at_us = max(at_us, bar.ended_us)
    if at_us < until_us:
        holes.append(Unknown(cluster=cluster, began_us=at_us, ended_us=until_us, reason="no known history"))
    return tuple(holes)

"""Figures of brokers over time: the share of leaders, the replicas out of sync, and the ISR flaps."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from kontroller.history import schemas
from kontroller.history.reports.facts import Heat, HeatRow
from kontroller.history.reports.limits import Limits
from kontroller.history.reports.period import DAY, EPOCH, Grid, Period
from kontroller.history.reports.selection.coverage import edges, sum_coverage
from kontroller.history.reports.selection.tables import Tables, sum_us

Pieces = Mapping[str, Sequence[int]]
ALL = -1
"""The key for all brokers of a cluster."""
LEAST_KNOWN = 0.5
"""The least known part of a piece of time. A piece below it is shown as unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerHeats:
    leaders: tuple[Heat, ...] = ()
    out_of_sync: tuple[Heat, ...] = ()
    flaps: tuple[Heat, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The brokers of a cluster that are drawn, and the number of all."""

    cluster: str
    brokers: tuple[int, ...]
    total: int


def broker_heats(tables: Tables, clusters: Sequence[str], grid: Grid, day_grid: Grid, limits: Limits) -> BrokerHeats:
    """Return the heat maps of the clusters. If there are too many brokers, those longest out of sync are drawn."""
    chosen = choose_brokers(tables, clusters, limits)
    pieces = sum_coverage(
        edges(measure_brokers(tables, chosen), ("cluster_id", "broker"), grid), ("cluster_id", "broker"), grid
    )
    flaps = _flaps(tables, chosen, day_grid)
    enough = enough_of(grid, tables.period)
    leaders, out, flapping = [], [], []
    for one in chosen:
        all_pieces = pieces.get((one.cluster, ALL), {})
        its = {broker: pieces.get((one.cluster, broker), {}) for broker in one.brokers}
        leaders.append(_heat(one, {broker: leader_shares(its[broker], all_pieces, enough) for broker in its}))
        out.append(_heat(one, {broker: average_out_of_sync(its[broker], all_pieces, enough) for broker in its}))
        flapping.append(_heat(one, {broker: flaps[one.cluster, broker] for broker in its}))
    return BrokerHeats(leaders=tuple(leaders), out_of_sync=tuple(out), flaps=tuple(flapping))


def choose_brokers(tables: Tables, clusters: Sequence[str], limits: Limits) -> tuple[Chosen, ...]:
    lost = tables[schemas.ISR_FLAPS].groupBy("cluster_id", "broker").agg(sum_us("out_of_sync_seconds").alias("us"))
    brokers = tables[schemas.BROKER_INTERVALS].where(f.col("cluster_id").isin(*clusters))
    each = brokers.select("cluster_id", "broker").distinct().join(lost, ["cluster_id", "broker"], "left")
    of_cluster = Window.partitionBy("cluster_id")
    worst = of_cluster.orderBy(f.col("us").desc_nulls_last(), "broker")
    ranked = each.withColumn("rank", f.row_number().over(worst)).withColumn("total", f.count("*").over(of_cluster))
    found: dict[str, list[int]] = defaultdict(list)
    totals: dict[str, int] = {}
    of_each = max(1, limits.brokers // max(1, len(clusters)))
    for row in ranked.where(f.col("rank") <= of_each).collect():
        found[row["cluster_id"]].append(row["broker"])
        totals[row["cluster_id"]] = row["total"]
    return tuple(
        Chosen(cluster=name, brokers=tuple(sorted(found[name])), total=totals[name])
        for name in clusters
        if name in found
    )


def measure_brokers(tables: Tables, chosen: Sequence[Chosen]) -> DataFrame:
    """Return intervals by cluster and broker: as a leader, with a replica out of sync; and those of all brokers."""
    wanted = [(one.cluster, broker) for one in chosen for broker in one.brokers]
    names = f.broadcast(tables.spark.createDataFrame(wanted, "cluster_id string, broker int"))
    clusters = [one.cluster for one in chosen]
    intervals = tables.clip(schemas.PARTITION_INTERVALS).where(f.col("is_known") & f.col("cluster_id").isin(*clusters))
    spans = tables.clip(schemas.KNOWN_SPANS).where(f.col("cluster_id").isin(*clusters))
    times = ("began_us", "ended_us")
    led = intervals.where("leader >= 0").select(
        "cluster_id", f.col("leader").alias("broker"), f.lit("led").alias("measure"), *times
    )
    away = f.explode(f.array_except("replicas", "isr")).alias("broker")
    out = intervals.select("cluster_id", away, f.lit("out").alias("measure"), *times)
    of_all = led.withColumn("broker", f.lit(ALL))
    known = spans.select("cluster_id", f.lit(ALL).alias("broker"), f.lit("known").alias("measure"), *times)
    return reduce(DataFrame.unionByName, [led.unionByName(out).join(names, ["cluster_id", "broker"]), of_all, known])


def leader_shares(its: Pieces, of_all: Pieces, enough: Sequence[float]) -> tuple[float | None, ...]:
    """Return the broker's share of the time that partitions had a leader. `enough`: the least known time of each
    piece."""
    nothing = [0] * len(enough)
    whole, known, led = of_all.get("led", nothing), of_all.get("known", nothing), its.get("led", nothing)
    return tuple(led[i] / whole[i] if whole[i] and known[i] >= least else None for i, least in enumerate(enough))


def average_out_of_sync(its: Pieces, of_all: Pieces, enough: Sequence[float]) -> tuple[float | None, ...]:
    """Return the average number of replicas out of sync over the known time."""
    nothing = [0] * len(enough)
    known, out = of_all.get("known", nothing), its.get("out", nothing)
    return tuple(out[i] / known[i] if known[i] >= least else None for i, least in enumerate(enough))


def enough_of(grid: Grid, period: Period) -> list[float]:
    """Return the microseconds that must be known of each piece: half of its part in the period, and at least one."""
    edges_us = [grid.edges(index) for index in range(grid.count)]
    within = [min(ended, period.ended_us) - max(began, period.began_us) for began, ended in edges_us]
    return [max(1.0, LEAST_KNOWN * us) for us in within]


def _flaps(tables: Tables, chosen: Sequence[Chosen], grid: Grid) -> dict[tuple[str, int], tuple[float | None, ...]]:
    first_day = f.lit(grid.began_us // DAY)
    piece = f.floor((f.datediff("day", f.lit(EPOCH.date())) - first_day) / f.lit(grid.width_us // DAY)).alias("piece")
    rows = tables[schemas.ISR_FLAPS].where(f.col("cluster_id").isin(*(one.cluster for one in chosen)))
    sums = rows.where("flaps > 0").groupBy("cluster_id", "broker", piece).agg(f.sum("flaps").alias("flaps"))
    found = {(one.cluster, broker): [0.0] * grid.count for one in chosen for broker in one.brokers}
    for row in sums.collect():
        values = found.get((row["cluster_id"], row["broker"]))
        if values and 0 <= row["piece"] < grid.count:
            values[row["piece"]] = float(row["flaps"])
    return {key: tuple(values) for key, values in found.items()}


def _heat(chosen: Chosen, values: Mapping[int, tuple[float | None, ...]]) -> Heat:
    rows = tuple(HeatRow(label=f"broker {broker}", values=values[broker]) for broker in chosen.brokers)
    return Heat(cluster=chosen.cluster, rows=rows, total=chosen.total)

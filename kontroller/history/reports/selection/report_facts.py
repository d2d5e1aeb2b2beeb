"""The bounded facts of one page, from tables of any length. Spark aggregates, and only its few rows arrive here."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from datetime import date
from functools import reduce

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f

from kontroller.history import schemas
from kontroller.history.answers.intervals.states import has_known_leader
from kontroller.history.answers.options import Options
from kontroller.history.reports.attention import sort_by_need
from kontroller.history.reports.facts import Before, ClusterFacts, Listed, Report, Strip, Uptime
from kontroller.history.reports.limits import Limits
from kontroller.history.reports.objective import Objective
from kontroller.history.reports.period import DAY, Grid, grid_of
from kontroller.history.reports.selection.broker_heat import BrokerHeats, broker_heats
from kontroller.history.reports.selection.clusters import find_silent_partitions, length_us, totals
from kontroller.history.reports.selection.coverage import Key, edges, sum_coverage
from kontroller.history.reports.selection.episodes.worst import episodes, quiet_us
from kontroller.history.reports.selection.levels.measured import measure_levels
from kontroller.history.reports.selection.listed import THREADS, list_all_rows
from kontroller.history.reports.selection.listings import LISTINGS
from kontroller.history.reports.selection.places import add_led_places
from kontroller.history.reports.selection.rows import uptimes
from kontroller.history.reports.selection.spans import controller_lanes, unknowns
from kontroller.history.reports.selection.tables import INSTANTS, Tables, sum_us

ALL = ""
"""The key for all topics of a cluster."""
FEW_TOPICS = 6
"""Topics that are drawn although they lost nothing, at most."""
SUMS = tuple(field.name for field in fields(Uptime))
MEASURES = ("known", "unknown", "leaderless", "under_min_isr")


def select_facts(
    tables: Tables,
    limits: Limits,
    *,
    options: Options,
    before: Before | None = None,
    objective: Objective | None = None,
    given: Mapping[str, DataFrame] | None = None,
) -> Report:
    """Select the facts of a report with a few dozen bounded queries.

    `given`: the tables by name, not cut to the period; without them there is no service level."""
    period = tables.period
    grid = grid_of(period.began_us, period.ended_us, most=limits.pieces)
    first_us = period.began_us // DAY * DAY
    day_grid = grid_of(first_us, max(first_us + DAY, period.ended_us), most=limits.pieces, least_us=DAY)
    with ThreadPoolExecutor(THREADS) as pool:
        of_episodes = pool.submit(episodes, tables, limits)
        of_all = pool.submit(whole, tables)
        of_clusters = pool.submit(totals, tables)
        of_holes = pool.submit(unknowns, tables, most=limits.table_rows)
        of_days = pool.submit(exposure_by_day, tables)
        bins, counts = pool.submit(failover_bins, tables), pool.submit(tallies, tables)
        listings = dict(list_all_rows(LISTINGS, tables, limits))
        listings["clusters"] = sort_by_need(listings["clusters"], objective, period)
        names = tuple(str(row["cluster_id"]) for row in listings["clusters"].rows[: limits.clusters])
        needing = [str(row["cluster_id"]) for row in listings["clusters"].rows[: limits.outlooks]]
        of_levels = pool.submit(measure_levels, given or {}, period, needing)
        of_heats = pool.submit(broker_heats, tables, names, grid, day_grid, limits) if names else None
        of_lanes = pool.submit(controller_lanes, tables, names, limits) if names else None
        listings["failovers"] = add_led_places(listings["failovers"], tables)
        strips = strips_of(tables, names, listings["topics"], grid, limits)
        clusters = cluster_facts(tables, names, strips)
    clusters_total, silent_clusters, unknown_us = of_clusters.result()
    holes, holes_total = of_holes.result()
    heats = of_heats.result() if of_heats else BrokerHeats()
    worst, episodes_total = of_episodes.result()
    topics_total, partitions, uptime = of_all.result()
    level, levels = of_levels.result()
    return Report(
        period=period,
        grid=grid,
        day_grid=day_grid,
        clusters=clusters,
        clusters_total=clusters_total,
        silent_clusters=silent_clusters,
        uptime=uptime,
        partitions=partitions,
        topics_total=topics_total,
        unknown_us=unknown_us,
        unknowns=holes,
        unknowns_total=holes_total,
        strips=tuple(strip for (_, topic), strip in strips.items() if topic != ALL),
        leaders=heats.leaders,
        out_of_sync=heats.out_of_sync,
        flaps=heats.flaps,
        exposure=of_days.result(),
        failover_bins=bins.result(),
        tallies=counts.result(),
        controllers=of_lanes.result() if of_lanes else (),
        episodes=worst,
        episodes_total=episodes_total,
        listings=listings,
        missing=tables.missing,
        quiet_us=quiet_us(period),
        broker_session_timeout_ms=options.broker_session_timeout_ms,
        has_whole_days=tables.has_whole_days,
        before=before,
        objective=objective,
        level=level,
        levels=levels,
    )


def whole(tables: Tables) -> tuple[int, int, Uptime]:
    """Return the number of topics and of partitions in the period, and the sums, over all clusters."""
    topics = uptimes(tables, "cluster_id", "topic")
    sums = [f.coalesce(f.sum(name), f.lit(0)).alias(name) for name in SUMS]
    row = topics.agg(
        f.count("*").alias("topics"), f.coalesce(f.sum("partitions"), f.lit(0)).alias("partitions"), *sums
    ).collect()[0]
    silent_us = find_silent_partitions(tables) * length_us(tables)
    return row["topics"], row["partitions"], _uptime(row) + Uptime(silent_us=silent_us)


def _uptime(row: Row) -> Uptime:
    return Uptime(**{name: row[name] for name in SUMS})


def cluster_facts(tables: Tables, names: Sequence[str], strips: Mapping[Key, Strip]) -> tuple[ClusterFacts, ...]:
    """Return the facts of the clusters that are drawn."""
    if not names:
        return ()
    days: dict[str, dict[date, Uptime]] = defaultdict(dict)
    for row in uptimes(tables, "cluster_id", "day").where(f.col("cluster_id").isin(*names)).collect():
        days[row["cluster_id"]][row["day"]] = _uptime(row)
    return tuple(
        ClusterFacts(
            name=name or "(id not known yet)",
            uptime=sum(days[name].values(), Uptime()),
            days=days[name],
            strip=strips[name, ALL],
        )
        for name in names
    )


def strips_of(tables: Tables, names: Sequence[str], topics: Listed, grid: Grid, limits: Limits) -> dict[Key, Strip]:
    """Return the strips by cluster and topic: those of the worst topics, and with `ALL` those of whole clusters."""
    lost = [row for row in topics.rows if row["leaderless_seconds"] or row["under_seconds"]]
    shown = topics.rows[: min(limits.topics, max(len(lost), FEW_TOPICS))]
    wanted = [(str(row["cluster_id"]), str(row["topic"])) for row in shown]
    wanted += [(name, ALL) for name in names]
    if not wanted:
        return {}
    keys = ("cluster_id", "topic")
    chosen = f.broadcast(tables.spark.createDataFrame(wanted, "cluster_id string, topic string"))
    measure = f.when(has_known_leader(), "known").otherwise("unknown").alias("measure")
    exist = tables.clip(schemas.PARTITION_INTERVALS).select(*keys, "began_us", "ended_us", measure)
    bad = tables.clip(schemas.INCIDENTS).select(*keys, "began_us", "ended_us", f.col("problem").alias("measure"))
    of_each = exist.unionByName(bad)
    intervals = of_each.withColumn("topic", f.explode(f.array("topic", f.lit(ALL)))).join(chosen, list(keys))
    found = sum_coverage(edges(intervals, keys, grid), keys, grid)
    many = len({cluster for cluster, _ in wanted}) > 1
    return {key: _strip(key, found.get(key, {}), grid, many=many) for key in wanted}


def _strip(key: Key, pieces: Mapping[str, Sequence[int]], grid: Grid, *, many: bool) -> Strip:
    cluster, topic = (str(part) for part in key)
    known, unknown, leaderless, under = (pieces.get(name, [0] * grid.count) for name in MEASURES)
    cells = tuple(
        Uptime(known_us=known[i], unknown_us=unknown[i], leaderless_us=leaderless[i], under_us=under[i])
        for i in range(grid.count)
    )
    label = cluster if topic == ALL else f"{cluster}: {topic}" if many else topic
    return Strip(cluster=cluster, label=label, cells=cells)


def exposure_by_day(tables: Tables) -> dict[date, tuple[int, int]]:
    sums = [sum_us(f"{name}_seconds").alias(name) for name in ("one_replica", "one_rack")]
    rows = tables[schemas.EXPOSURE].groupBy("day").agg(*sums).collect()
    return {row["day"]: (row["one_replica"], row["one_rack"]) for row in sorted(rows, key=lambda row: str(row["day"]))}


def failover_bins(tables: Tables) -> dict[int, int]:
    seconds = f.greatest(f.col("max_seconds"), f.lit(1e-6))
    bins = f.floor(f.log10(seconds) * 4).cast("int").alias("bin")
    rows = tables[schemas.FAILOVERS].where("max_seconds is not null").groupBy(bins).count().collect()
    return {row["bin"]: row["count"] for row in sorted(rows, key=lambda row: int(row["bin"]))}


def tallies(tables: Tables) -> dict[str, int]:
    """Return counts for the headline: `outcome:stalled`, `problem:leaderless`, `invariant:...`, `inferred:true`,
    `flaps`, `findings:untimed`."""
    groups = (
        (schemas.REASSIGNMENTS, "outcome", f.count("*")),
        (schemas.INCIDENTS, "problem", f.count("*")),
        (schemas.VIOLATIONS, "invariant", f.count("*")),
        (schemas.VIOLATIONS, "inferred", f.count("*")),
    )
    frames = [
        tables[table]
        .groupBy(f.concat(f.lit(f"{name}:"), f.substring(f.col(name).cast("string"), 1, 80)).alias("name"))
        .agg(count.cast("long").alias("n"))
        for table, name, count in groups
        if table.name not in tables.empty
    ]
    flaps = tables[schemas.ISR_FLAPS].agg(f.coalesce(f.sum("flaps"), f.lit(0)).cast("long").alias("n"))
    frames.append(flaps.select(f.lit("flaps").alias("name"), "n"))
    untimed = tables[schemas.FINDINGS].agg(f.count_if(f.col(INSTANTS["findings"]).isNull()).alias("n"))
    frames.append(untimed.select(f.lit("findings:untimed").alias("name"), "n"))
    rows = reduce(DataFrame.unionByName, frames).orderBy(f.col("n").desc(), "name").limit(100).collect()
    return {row["name"] or "": row["n"] for row in rows}

"""The facts of an episode's story: the lost brokers, and the effects of each cause on partitions."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as f

from kontroller.history import schemas
from kontroller.history.reports.limits import Limits
from kontroller.history.reports.selection.episodes.culprits import Culprit, Culprits
from kontroller.history.reports.selection.places import places
from kontroller.history.reports.selection.rows import first_clients, join_clients, name_client
from kontroller.history.reports.selection.tables import Tables
from kontroller.history.reports.stories import Loss, Outage, Story

KIND = ("episode", "problem", "cause", "ending", "ended_by", "is_unclean")
KIND_OF_CULPRITS = KIND[:-1]
PARTITION = ("cluster_id", "topic", "partition")
MOST_LEADERS = 3


def stories(tables: Tables, windows: DataFrame, limits: Limits, culprits: Culprits) -> Mapping[int, Story]:
    """Return the stories by the number of the episode. `windows`: as in `drawn`. `culprits`: by KIND."""
    losses, outages, unclean = (
        _losses(tables, windows, limits),
        _outages(tables, windows, limits, culprits),
        _unclean(tables, windows),
    )
    guessed = _find_guessed(tables, windows)
    return {
        index: Story(
            losses=losses.get(index, ((), 0))[0],
            losses_total=losses.get(index, ((), 0))[1],
            outages=outages.get(index, ()),
            unclean=unclean[index]["partitions"] if index in unclean else 0,
            unclean_where=unclean[index]["places"] if index in unclean else "",
            is_inferred=index in guessed,
        )
        for index in {*losses, *outages, *unclean}
    }


def _losses(tables: Tables, windows: DataFrame, limits: Limits) -> dict[int, tuple[tuple[Loss, ...], int]]:
    """Return the losses of the brokers that led most, in the order of time, and the number of all losses."""
    at = f.unix_micros("lost_at")
    rows = tables[schemas.FAILOVERS].join(windows, "cluster_id").withColumn("at_us", at)
    rows = rows.where("at_us between from_us and last_us")
    of_episode = Window.partitionBy("episode")
    rank = f.row_number().over(of_episode.orderBy(f.col("partitions").desc(), "at_us", "broker", "seq"))
    ranked = rows.withColumn("rank", rank).withColumn("total", f.count("*").over(of_episode))
    found: dict[int, list[Loss]] = defaultdict(list)
    totals: dict[int, int] = {}
    for row in ranked.where(f.col("rank") <= limits.told_losses).orderBy("episode", "at_us", "broker").collect():
        found[row["episode"]].append(Loss(broker=row["broker"], at_us=row["at_us"]))
        totals[row["episode"]] = row["total"]
    return {index: (tuple(its), totals[index]) for index, its in found.items()}


def _outages(tables: Tables, windows: DataFrame, limits: Limits, culprits: Culprits) -> dict[int, tuple[Outage, ...]]:
    incidents = _add_next_leaders(tables, windows)
    lasted = f.col("ended_us") - f.col("began_us")
    sums = incidents.groupBy(*KIND).agg(
        f.min("began_us").alias("began_us"),
        f.max("ended_us").alias("ended_us"),
        f.count("*").alias("incidents"),
        f.max(lasted).alias("longest_us"),
        f.sum(lasted).alias("lost_us"),
        f.array_sort(f.array_distinct(f.flatten(f.collect_set("led_by")))).alias("led_by"),
        *first_clients(),
    )
    in_order = Window.partitionBy("episode").orderBy("problem", f.col("lost_us").desc(), "began_us", *KIND[2:])
    ranked = sums.withColumn("rank", f.row_number().over(in_order)).where(f.col("rank") <= limits.told_outages)
    told = f.broadcast(ranked).join(places(incidents, *KIND), list(KIND))
    found: dict[int, list[Outage]] = defaultdict(list)
    for row in told.orderBy("episode", "rank").collect():
        found[row["episode"]].append(_outage(row, culprits.get(tuple(row[name] for name in KIND_OF_CULPRITS), ())))
    return {index: tuple(its) for index, its in found.items()}


def _add_next_leaders(tables: Tables, windows: DataFrame) -> DataFrame:
    """Return a row for each incident. For those without a leader, it has the next leader and if that was in sync."""
    led = tables[schemas.PARTITION_INTERVALS].where("is_known and leader >= 0")
    next_leader = led.select(*PARTITION, f.col("began").alias("led_from"), "leader", "unclean")
    joined = select_incidents(tables, windows).join(next_leader, [*PARTITION, "led_from"], "left")
    return joined.groupBy(
        "episode", *PARTITION, "problem", "cause", "ending", "ended_by", "asked_by", "began_us", "ended_us"
    ).agg(
        f.collect_set("leader").alias("led_by"),
        f.coalesce(f.bool_or("unclean"), f.lit(False)).alias("is_unclean"),
    )


def select_incidents(tables: Tables, windows: DataFrame) -> DataFrame:
    """Return the incidents of the episodes with `ending`. `led_from` is the time at which a partition had a leader
    again."""
    ended_later = f.col("ended") > f.timestamp_micros(f.lit(tables.period.ended_us))
    ending = (
        f.when(ended_later, "period").when(f.col("ended_by").isNotNull(), "change").when(f.col("is_last"), "history")
    )
    rows = tables.clip(schemas.INCIDENTS).join(windows, "cluster_id").where("began_us between first_us and last_us")
    return rows.withColumn("ending", ending.otherwise("unknown")).withColumns(
        {
            "ended_by": f.when(f.col("ending") == "change", f.col("ended_by")).otherwise(""),
            "cause": f.coalesce("cause", f.lit("")),
            "asked_by": name_client(),
            "led_from": f.when(f.col("problem") == "leaderless", f.col("ended")),
        }
    )


def _outage(row: Row, culprits: Sequence[Culprit]) -> Outage:
    frequent = [each for each in culprits if 2 * each.incidents >= row["incidents"]]
    return Outage(
        problem=row["problem"],
        cause=row["cause"][:80],
        began_us=row["began_us"],
        ended_us=row["ended_us"],
        incidents=row["incidents"],
        partitions=row["partitions"],
        where=row["places"],
        longest_us=row["longest_us"],
        ending=row["ending"],
        ended_by=row["ended_by"][:80],
        led_by=tuple(row["led_by"]) if len(row["led_by"]) <= MOST_LEADERS else (),
        is_unclean=row["is_unclean"],
        asked_by=join_clients(row),
        gone=tuple(sorted(each.broker for each in frequent if each.state == "gone")),
        out_of_sync=tuple(sorted(each.broker for each in frequent if each.state == "there")),
    )


def _unclean(tables: Tables, windows: DataFrame) -> dict[int, Row]:
    began_in = f.col("began_us").between(f.col("first_us"), f.col("last_us"))
    rows = unclean_elections(tables).join(windows, "cluster_id").where(began_in)
    return {row["episode"]: row for row in places(rows, "episode").collect()}


def unclean_elections(tables: Tables) -> DataFrame:
    """Return the unclean elections with `at_us`, and with `began_us`, the time at which the partition lost its leader.

    That time is in the same episode."""
    key = (*PARTITION, "controller_epoch", "seq")
    elected = tables[schemas.UNCLEAN_ELECTIONS].select(*key, f.unix_micros("elected_at").alias("at_us"))
    leaderless = tables.clip(schemas.INCIDENTS).where("problem = 'leaderless'")
    since = leaderless.select(*PARTITION, "began_us", "ended_us")
    joined = elected.join(since, list(PARTITION), "left")
    then = f.when(f.col("at_us").between(f.col("began_us"), f.col("ended_us")), f.col("began_us"))
    return joined.groupBy(*key, "at_us").agg(f.coalesce(f.min(then), f.col("at_us")).alias("began_us"))


def _find_guessed(tables: Tables, windows: DataFrame) -> set[int]:
    """Return the episodes in which a change was only inferred."""
    at = f.unix_micros("began")
    rows = tables[schemas.PARTITION_INTERVALS].where("is_known and inferred").join(windows, "cluster_id")
    return {
        row["episode"]
        for row in rows.where(at.between(f.col("first_us"), f.col("last_us"))).select("episode").distinct().collect()
    }

"""The rows of the page's tables: answers summed over the period."""

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as f

from kontroller.history import schemas
from kontroller.history.reports.selection.places import places
from kontroller.history.reports.selection.tables import Tables, sum_us

SHOWN_NUMBERS = 6
"""The numbers of partitions that a cell shows."""
SHOWN_RESOURCES = 3
CLIENT_LETTERS = 80
UNCHANGED = ("refused", "failed")
"""The outcomes of requests that changed nothing."""


def _seconds(total_us: str, name: str) -> Expression:
    return (f.col(total_us) / 1_000_000).alias(name)


def uptimes(tables: Tables, *keys: str) -> DataFrame:
    """Return sums of the availability by `keys`, in microseconds, and ratios."""
    sums = tables[schemas.AVAILABILITY].groupBy(*keys).agg(
        sum_us("partition_seconds").alias("exist_us"),
        sum_us("unknown_seconds").alias("unknown_us"),
        sum_us("leaderless_seconds").alias("leaderless_us"),
        sum_us("under_min_isr_seconds").alias("under_us"),
        sum_us("detection_seconds").alias("detection_us"),
        sum_us("detection_writable_seconds").alias("detection_writable_us"),
        f.max("partitions").alias("partitions"),
        f.countDistinct("topic").alias("topics"),
    )  # fmt: skip
    sums = sums.withColumn("known_us", f.greatest(f.col("exist_us") - f.col("unknown_us"), f.lit(0)))
    sums = sums.withColumn("silent_us", f.lit(0)) if "day" in keys else _add_silent(sums, tables)
    ratios = {
        "availability": "leaderless_us",
        "writable": "(leaderless_us + under_us)",
        "availability_with_detection": "(leaderless_us + detection_us)",
    }
    bounds = {"at_least": "(leaderless_us + unknown_us + silent_us)", "at_most": "leaderless_us"}
    return sums.withColumns(
        {name: f.expr(f"if(known_us > 0, 1 - {lost_us} / known_us, null)") for name, lost_us in ratios.items()}
        | {
            name: f.expr(f"if(known_us > 0, 1 - {lost_us} / (exist_us + silent_us), null)")
            for name, lost_us in bounds.items()
        }
        | {f"{name}_seconds": f.col(f"{name}_us") / 1_000_000 for name in ("leaderless", "under", "unknown")}
    )


def _add_silent(sums: DataFrame, tables: Tables) -> DataFrame:
    """Add `silent_us`: the time of the period outside of a cluster's history, for the mean number of partitions."""
    last = f.greatest("ended_us", f.coalesce(f.unix_micros("known_again"), "ended_us"))
    length_us = tables.period.ended_us - tables.period.began_us
    of_cluster = tables.clip(schemas.KNOWN_SPANS).groupBy("cluster_id").agg(
        (f.least(f.max(last), f.lit(tables.period.ended_us)) - f.min("began_us")).alias("_history_us")
    )  # fmt: skip
    silent = f.col("exist_us") * (f.lit(length_us) / f.col("_history_us") - 1)
    silent_us = f.coalesce(f.when(f.col("_history_us") > 0, f.round(silent).cast("long")), f.lit(0))
    return (
        sums.join(of_cluster, "cluster_id", "left")
        .withColumn("silent_us", silent_us)
        .selectExpr("* except (_history_us)")
    )


def causes(tables: Tables) -> DataFrame:
    sums = tables[schemas.DOWNTIME_BY_CAUSE].groupBy("cluster_id", "cause").agg(
        sum_us("leaderless_seconds").alias("leaderless_us"),
        sum_us("under_min_isr_seconds").alias("under_us"),
        f.countDistinct("topic").alias("topics"),
    )  # fmt: skip
    where = places(tables[schemas.INCIDENTS], "cluster_id", "cause").drop("partitions")
    return sums.join(where, ["cluster_id", "cause"], "left").select(
        "cluster_id",
        "cause",
        "places",
        _seconds("leaderless_us", "leaderless_seconds"),
        _seconds("under_us", "under_seconds"),
    )


def incidents(tables: Tables) -> DataFrame:
    seconds = (f.col("ended_us") - f.col("began_us")) / 1_000_000
    return tables.clip(schemas.INCIDENTS).withColumns({"seconds": seconds, "asked_by": name_client()})


def unclean_elections(tables: Tables) -> DataFrame:
    return tables[schemas.UNCLEAN_ELECTIONS].withColumn("asked_by", name_client())


def failovers(tables: Tables) -> DataFrame:
    """Return the failovers. Those with a missing leader come first. `places` is filled in later for the listed ones."""
    rows = tables[schemas.FAILOVERS].withColumn("missing", f.col("partitions") - f.col("moved"))
    rows = rows.withColumn("places", f.lit(None).cast("string"))
    return rows.withColumn("is_missing", (f.col("missing") > 0).cast("int"))


def flaps(tables: Tables) -> DataFrame:
    sums = tables[schemas.ISR_FLAPS].groupBy("cluster_id", "broker", "topic", "partition").agg(
        f.sum("flaps").alias("flaps"),
        f.sum("shrinks").alias("shrinks"),
        f.sum("expansions").alias("expansions"),
        sum_us("out_of_sync_seconds").alias("out_us"),
    )  # fmt: skip
    return sums.withColumn("out_seconds", f.col("out_us") / 1_000_000)


def exposures(tables: Tables) -> DataFrame:
    sums = tables[schemas.EXPOSURE].groupBy("cluster_id", "topic").agg(
        sum_us("one_replica_seconds").alias("replica_us"),
        sum_us("one_rack_seconds").alias("rack_us"),
        f.max("most_partitions").alias("most"),
    )  # fmt: skip
    exposed = sums.where("replica_us > 0 or rack_us > 0").join(numbers_alone(tables), ["cluster_id", "topic"], "left")
    return exposed.select(
        "cluster_id",
        "topic",
        "alone",
        "most",
        _seconds("replica_us", "replica_seconds"),
        _seconds("rack_us", "rack_seconds"),
    )


def numbers_alone(tables: Tables) -> DataFrame:
    """Return by topic the partitions that had one replica in sync, as `alone`: `0, 3, 5 and 12 more`."""
    intervals = tables.clip(schemas.PARTITION_INTERVALS).where("is_known and size(isr) <= 1 and began_us < ended_us")
    numbers = intervals.groupBy("cluster_id", "topic").agg(f.array_sort(f.collect_set("partition")).alias("numbers"))
    shown = f.array_join(f.slice("numbers", 1, SHOWN_NUMBERS).cast("array<string>"), ", ")
    more = f.size("numbers") - SHOWN_NUMBERS
    rest = f.when(more > 0, f.format_string(" and %d more", more)).otherwise("")
    return numbers.select("cluster_id", "topic", f.concat(shown, rest).alias("alone"))


def reassignments(tables: Tables) -> DataFrame:
    """Add the duration of each reassignment. It ends with the period if it still runs."""
    outcome = f.col("outcome")
    rank = f.when(outcome == "stalled", 0).when(outcome == "unknown", 1).when(outcome == "running", 2).otherwise(3)
    clipped = tables.clip(schemas.REASSIGNMENTS)
    seconds = (f.col("ended_us") - f.col("began_us")) / 1_000_000
    return clipped.withColumns({"seconds": seconds, "rank": rank, "asked_by": name_client()})


def leadership(tables: Tables) -> DataFrame:
    sums = tables[schemas.LEADERSHIP].groupBy("cluster_id", "broker").agg(
        sum_us("leader_seconds").alias("leader_us"),
        sum_us("preferred_seconds").alias("preferred_us"),
        sum_us("led_as_preferred_seconds").alias("led_us"),
        sum_us("replica_seconds").alias("replica_us"),
        f.max("skew").alias("skew"),
    )  # fmt: skip
    whole = f.sum("leader_us").over(Window.partitionBy("cluster_id"))
    return (
        sums.withColumn("leader_share", f.when(whole > 0, f.col("leader_us") / whole))
        .withColumn("as_preferred", f.when(f.col("preferred_us") > 0, f.col("led_us") / f.col("preferred_us")))
        .withColumn("replica_seconds", f.col("replica_us") / 1_000_000)
    )


def racks(tables: Tables) -> DataFrame:
    sums = tables[schemas.RACK_AVAILABILITY].groupBy("cluster_id", "rack").agg(
        sum_us("replica_seconds").alias("replica_us"),
        sum_us("out_of_sync_seconds").alias("out_us"),
        sum_us("leader_seconds").alias("leader_us"),
        sum_us("unknown_seconds").alias("unknown_us"),
    )  # fmt: skip
    known = f.col("replica_us") - f.col("unknown_us")
    return sums.withColumn("in_sync", f.when(known > 0, 1 - f.col("out_us") / known)).withColumn(
        "out_seconds", f.col("out_us") / 1_000_000
    )


def requests(tables: Tables, *, is_done: bool) -> DataFrame:
    """Return the requests that changed something, or may have; otherwise those that changed nothing."""
    rows = tables[schemas.REQUESTS].where(f.col("outcome").isin(*UNCHANGED) != f.lit(is_done))
    shown = f.slice("resources", 1, SHOWN_RESOURCES)
    more = f.col("resources_total") - f.size(shown)
    rest = f.when(more > 0, f.array(f.format_string("and %d more", more))).otherwise(f.array().cast("array<string>"))
    return rows.withColumns(
        {
            "api": f.when(f.col("principal").isNull(), "older requests, only counted").otherwise(f.col("api")),
            "resources": f.concat(shown, rest),
            "outcome": f.concat_ws(": ", "outcome", f.nullif("error", f.lit(""))),
        }
    )


def name_client() -> Expression:
    """Return `User:alice from 10.0.0.7`, of the columns `principal` and `address`. Null if there is no principal."""
    address = f.nullif(f.left("address", f.lit(CLIENT_LETTERS)), f.lit(""))
    name = f.concat_ws(" from ", f.left("principal", f.lit(CLIENT_LETTERS)), address)
    return f.when(f.nullif("principal", f.lit("")).isNotNull(), name)


def first_clients() -> tuple[Expression, Expression]:
    """Return aggregates of the column `asked_by` for `join_clients`."""
    return f.min("asked_by").alias("client"), f.max("asked_by").alias("other_client")


def join_clients(row: Row) -> str:
    """Return the client of aggregated rows, or the first one `and others`. Empty if there is none."""
    client: str = row["client"] or ""
    return client if row["client"] == row["other_client"] else f"{client} and others"


def violations(tables: Tables) -> DataFrame:
    when = "date_format(e.event_time, 'yyyy-MM-dd HH:mm:ss.SSS')"
    line = f"concat_ws('  ', {when}, e.kind, concat(e.controller_epoch, '/', e.seq), left(e.source, 120))"
    evidence = f.expr(f"transform(evidence, e -> {line})")
    return tables[schemas.VIOLATIONS].withColumns({"evidence": evidence, "asked_by": name_client()})


def problems(tables: Tables) -> DataFrame:
    return tables[schemas.FINDINGS].groupBy("cluster_id", "problem").agg(
        f.count("*").alias("findings"),
        f.sum(f.coalesce("count", f.lit(1))).alias("records"),
        f.min("event_time").alias("first_at"),
        f.max("event_time").alias("last_at"),
        f.min("detail").alias("detail"),
    )  # fmt: skip

"""A row for each cluster, with all figures that decide if it needs attention.

Clusters that fell silent before the period are included: no other table of the period has them, so nobody would notice
their absence.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kontroller.history import schemas
from kontroller.history.reports.period import DAY, HOUR
from kontroller.history.reports.selection.rows import uptimes
from kontroller.history.reports.selection.tables import Tables
from kontroller.history.schemas import Table

FORGOTTEN_AFTER_US: Final = 30 * DAY
"""A cluster is given up if nothing was known of it for so long before the period, or for the period's length."""
UNDER_WEIGHT: Final = 0.1
COUNTED: Final = {"unclean": schemas.UNCLEAN_ELECTIONS, "violations": schemas.VIOLATIONS, "findings": schemas.FINDINGS}


def clusters(tables: Tables) -> DataFrame:
    """Return `uptimes` by cluster, with `unknown_share` by the clock, `known_until`, and the numbers of COUNTED.

    A number is null if its table was not given. `concern_us`: lost time, plus an hour for each unclean election and
    violation."""
    found = find_seen_clusters(tables).join(find_recent_clusters(tables), "cluster_id", "full").join(
        uptimes(tables, "cluster_id").withColumnRenamed("unknown_us", "unknown_partitions_us"), "cluster_id", "left"
    )  # fmt: skip
    for name, table in COUNTED.items():
        found = found.join(_counts(tables, name, table), "cluster_id", "left")
    unknown = f.greatest(f.lit(length_us(tables)) - f.coalesce("known_clock_us", f.lit(0)), f.lit(0))
    return (
        found.withColumns({name: _count(tables, name, table) for name, table in COUNTED.items()})
        .withColumn("unknown_share", unknown / f.lit(length_us(tables)))
        .withColumn("concern_us", _concern())
    )


def find_seen_clusters(tables: Tables) -> DataFrame:
    """Return each cluster with data in the period, and the microseconds that are known of it by the clock."""
    known = tables.clip(schemas.KNOWN_SPANS).select("cluster_id", (f.col("ended_us") - f.col("began_us")).alias("us"))
    for table in (schemas.AVAILABILITY, schemas.CONTROLLERS):
        known = known.unionByName(tables[table].select("cluster_id", f.lit(0).cast("long").alias("us")))
    return known.groupBy("cluster_id").agg(f.sum(f.greatest("us", f.lit(0))).alias("known_clock_us"))


def find_recent_clusters(tables: Tables) -> DataFrame:
    """Return each cluster that was known recently enough, with `known_until`."""
    given_up_us = tables.period.began_us - max(FORGOTTEN_AFTER_US, length_us(tables))
    return tables.known_until.where(f.unix_micros("known_until") >= f.lit(given_up_us))


def totals(tables: Tables) -> tuple[int, int, int]:
    """Return the number of clusters in the period, of those that fell silent before, and the unknown time of all."""
    missing = f.greatest(f.lit(length_us(tables)) - f.coalesce("known_clock_us", f.lit(0)), f.lit(0))
    found = find_seen_clusters(tables).join(find_recent_clusters(tables), "cluster_id", "full")
    seen, unknown_us = f.count("known_clock_us").alias("seen"), f.coalesce(f.sum(missing), f.lit(0)).alias("us")
    row = found.agg(f.count("*").alias("n"), seen, unknown_us).collect()[0]
    return row["seen"], row["n"] - row["seen"], row["us"]


def find_silent_partitions(tables: Tables) -> int:
    """Return the last number of partitions of all clusters that fell silent before the period."""
    silent = find_recent_clusters(tables).join(tables[schemas.AVAILABILITY], "cluster_id", "left_anti")
    last = tables.last_partitions.groupBy("cluster_id").agg(f.count("*").alias("partitions"))
    found = silent.join(last, "cluster_id").agg(f.coalesce(f.sum("partitions"), f.lit(0)).alias("partitions"))
    partitions: int = found.collect()[0]["partitions"]
    return partitions


def length_us(tables: Tables) -> int:
    return tables.period.ended_us - tables.period.began_us


def _counts(tables: Tables, name: str, table: Table) -> DataFrame:
    return tables[table].groupBy("cluster_id").agg(f.count("*").alias(name))


def _count(tables: Tables, name: str, table: Table) -> Column:
    counted = f.coalesce(f.col(name), f.lit(0))
    return f.lit(None).cast("long") if table.name in tables.missing else counted


def _concern() -> Column:
    weights = {"leaderless_us": 1.0, "under_us": UNDER_WEIGHT, "unclean": float(HOUR), "violations": float(HOUR)}
    parts = [f.coalesce(f.col(name), f.lit(0)) * f.lit(weight) for name, weight in weights.items()]
    return sum(parts[1:], parts[0])

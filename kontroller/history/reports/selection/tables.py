"""The tables that a page is made of, each cut to the period; one that was not given is empty, and the page says so."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import DateType

from kontroller.history.reports.period import Period
from kontroller.history.schemas import (
    ANSWERS,
    BROKER_INTERVALS,
    FINDINGS,
    KNOWN_SPANS,
    PARTITION_INTERVALS,
    VIOLATIONS,
    Table,
)

EXPORTED = (*ANSWERS, VIOLATIONS, FINDINGS, KNOWN_SPANS, BROKER_INTERVALS)
READ = (*EXPORTED, PARTITION_INTERVALS)
INSTANTS = {
    "failovers": "lost_at",
    "unclean_elections": "elected_at",
    "violations": "event_time",
    "findings": "event_time",
}
NOT_BELIEVED = "clock_not_believed"
"""The problem of a finding whose time is that of such a clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """By name, with the columns of their schema, and only rows that the period touches (intervals are not cut)."""

    spark: SparkSession
    period: Period
    frames: Mapping[str, DataFrame]
    missing: tuple[str, ...]
    known_until: DataFrame
    """Of each cluster that was ever known before the period's end, when it was last: `cluster_id`, `known_until`."""
    empty: frozenset[str] = frozenset()
    """Tables that are known to have no rows: nobody needs to ask them."""
    has_whole_days: bool = False
    """Whether rows by day are of whole days, though the period is not."""

    def stored_in(self, files: Mapping[str, Path]) -> "Tables":
        """The same, read from files; what is in none of them has no rows. The intervals of partitions are kept by Spark."""
        frames = {}
        for table in READ:
            if table is PARTITION_INTERVALS:
                frames[table.name] = self[table].persist(StorageLevel.MEMORY_AND_DISK)
            elif table.name in files:
                frames[table.name] = self.spark.read.schema(table.schema).parquet(str(files[table.name]))
            else:
                frames[table.name] = self.spark.createDataFrame([], table.schema)
        empty = frozenset(table.name for table in EXPORTED if table.name not in files)
        return replace(self, frames=frames, empty=empty)

    def __getitem__(self, table: Table) -> DataFrame:
        return self.frames[table.name]

    def clipped(self, table: Table) -> DataFrame:
        """Intervals with `began_us` and `ended_us` within the period."""
        began, ended = f.unix_micros("began"), f.coalesce(f.unix_micros("ended"), f.lit(self.period.ended_us))
        return (
            self[table]
            .withColumn("began_us", f.greatest(began, f.lit(self.period.began_us)))
            .withColumn("ended_us", f.least(ended, f.lit(self.period.ended_us)))
        )


def tables_of(given: Mapping[str, DataFrame], period: Period) -> Tables:
    """Raises ValueError when no table at all is given."""
    if not given:
        raise ValueError(f"A report needs tables, such as {READ[0].name}: compute the answers first")
    spark = next(iter(given.values())).sparkSession
    frames, missing = {}, []
    for table in READ:
        if table.name in given:
            rows = given[table.name].select(*table.schema.fieldNames())
            frames[table.name] = rows.where(_touches(table, period))
        else:
            frames[table.name] = spark.createDataFrame([], table.schema)
            missing.append(table.name)
    spans = given.get(KNOWN_SPANS.name, frames[KNOWN_SPANS.name])
    known_until = _known_until(spans, period)
    return Tables(spark=spark, period=period, frames=frames, missing=tuple(missing), known_until=known_until)


def _known_until(spans: DataFrame, period: Period) -> DataFrame:
    end = f.timestamp_micros(f.lit(period.ended_us))
    before = spans.where(f.col("began") < end)
    return before.groupBy("cluster_id").agg(f.max(f.least("ended", end)).alias("known_until"))


def _touches(table: Table, period: Period) -> Column:
    began, ended = f.timestamp_micros(f.lit(period.began_us)), f.timestamp_micros(f.lit(period.ended_us))
    if table.name in INSTANTS:
        at = time_of(table)
        return at.isNull() | ((at >= began) & (at < ended))
    if any(isinstance(column.dataType, DateType) for column in table.schema):
        return f.col("day").between(f.lit(period.first_day), f.lit(period.last_day))
    # What began and ended at the same moment lies in the period, too.
    return (f.col("began") < ended) & (f.col("ended").isNull() | (f.col("ended") >= began))


def time_of(table: Table) -> Column:
    """When something of INSTANTS happened. Null where nobody knows: a clock that is not believed says when in vain."""
    at = f.col(INSTANTS[table.name])
    return f.when(f.col("problem") != NOT_BELIEVED, at) if table is FINDINGS else at


def summed_us(seconds: str) -> Column:
    """Of a column of seconds, in whole microseconds: in whatever order Spark adds, it is the same."""
    return f.coalesce(f.sum(f.round(f.col(seconds) * 1_000_000).cast("long")), f.lit(0))

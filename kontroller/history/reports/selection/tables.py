"""The tables of a page, each cut to the period. A missing table is empty, and the page says so."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import DateType

from kontroller.history.answers.requests import limit_requests
from kontroller.history.reports.attention import SILENT_AFTER_US
from kontroller.history.reports.limits import Limits
from kontroller.history.reports.period import Period, micros
from kontroller.history.schemas import (
    ANSWERS,
    BROKER_INTERVALS,
    FINDINGS,
    KNOWN_SPANS,
    PARTITION_INTERVALS,
    REQUESTS,
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
    "requests": "event_time",
}
"""The times of rows that are no intervals; null if the time is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """Tables by name, with the columns of their schema, and only rows that the period touches. Intervals are not
    cut."""

    spark: SparkSession
    period: Period
    frames: Mapping[str, DataFrame]
    missing: tuple[str, ...]
    known_until: DataFrame
    """The last known time of each cluster that was known before the period's end: `cluster_id`, `known_until`.

    It is after the period's end if the cluster's clock is ahead."""
    last_partitions: DataFrame
    """The `cluster_id` of each partition that existed when its cluster's history ended, even before the period."""
    empty: frozenset[str] = frozenset()
    """Tables that are known to have no rows, so that no query is needed."""
    has_whole_days: bool = False
    """True if rows by day cover whole days although the period does not."""

    def read_stored(self, files: Mapping[str, Path]) -> "Tables":
        """Return the same tables, read from files. Tables without a file have no rows. Spark caches partition
        intervals."""
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

    def clip(self, table: Table) -> DataFrame:
        """Return intervals with `began_us` and `ended_us` within the period."""
        began, ended = f.unix_micros("began"), f.coalesce(f.unix_micros("ended"), f.lit(self.period.ended_us))
        return (
            self[table]
            .withColumn("began_us", f.greatest(began, f.lit(self.period.began_us)))
            .withColumn("ended_us", f.least(ended, f.lit(self.period.ended_us)))
        )


def tables_of(
    given: Mapping[str, DataFrame], period: Period, limits: Limits | None = None, now: datetime | None = None
) -> Tables:
    """Cut the given tables to the period, and the requests to the newest ones. Raises ValueError if no table is given.

    `now`: the time by this machine's clock. Clusters that are known until a later time have a clock that is ahead.
    """
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
    most = (limits or Limits()).requests
    frames[REQUESTS.name] = limit_requests(frames[REQUESTS.name], most)
    spans = given.get(KNOWN_SPANS.name, frames[KNOWN_SPANS.name])
    known_until = _find_known_until(spans, period, now)
    intervals = given.get(PARTITION_INTERVALS.name, frames[PARTITION_INTERVALS.name])
    return Tables(
        spark=spark,
        period=period,
        frames=frames,
        missing=tuple(missing),
        known_until=known_until,
        last_partitions=intervals.where("is_last").select("cluster_id"),
    )


def _find_known_until(spans: DataFrame, period: Period, now: datetime | None) -> DataFrame:
    end = f.timestamp_micros(f.lit(period.ended_us))
    is_ahead = f.lit(False)
    if now is not None:
        is_ahead = f.unix_micros("ended") > f.lit(max(micros(now), period.ended_us) + SILENT_AFTER_US)
    until = f.when(is_ahead, f.col("ended")).otherwise(f.least("ended", end))
    counted = spans.where(is_ahead | (f.col("began") < end))
    return counted.groupBy("cluster_id").agg(f.max(until).alias("known_until"))


def _touches(table: Table, period: Period) -> Column:
    began, ended = f.timestamp_micros(f.lit(period.began_us)), f.timestamp_micros(f.lit(period.ended_us))
    if table.name in INSTANTS:
        at = f.col(INSTANTS[table.name])
        return at.isNull() | ((at >= began) & (at < ended))
    if any(isinstance(column.dataType, DateType) for column in table.schema):
        return f.col("day").between(f.lit(period.first_day), f.lit(period.last_day))
    # An interval that ends when the period begins lies before it, unless it has no length.
    ends_later = (f.col("ended") > began) | (f.col("ended") == began) & (f.col("began") == f.col("ended"))
    # Everything of which no time is known lies in the period as well.
    return f.col("began").isNull() | (f.col("began") < ended) & (f.col("ended").isNull() | ends_later)


def sum_us(seconds: str) -> Column:
    """Return the sum of a column of seconds in whole microseconds, which does not depend on the order of the
    addition."""
    return f.coalesce(f.sum(f.round(f.col(seconds) * 1_000_000).cast("long")), f.lit(0))

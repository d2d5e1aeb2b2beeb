"""Exact sums for a period that begins or ends in the middle of a day, though answers by day cover whole days.

The parts of such days, two at most, are recomputed from the intervals. Their rows replace those of the whole days, so
that sums over a table's rows are the sums of the period.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kontroller.history import schemas
from kontroller.history.answers.all import answer_by_day
from kontroller.history.answers.intervals.within import Within
from kontroller.history.answers.options import Options
from kontroller.history.reports.period import moment_of
from kontroller.history.reports.selection.tables import Tables
from kontroller.history.schemas import Table

ANSWERED_FROM: Final = (
    schemas.EVENTS,
    schemas.KNOWN_SPANS,
    schemas.PARTITION_INTERVALS,
    schemas.BROKER_INTERVALS,
    schemas.INCIDENTS,
)


@contextmanager
def restrict_to_period(tables: Tables, given: Mapping[str, DataFrame], options: Options) -> Iterator[Tables]:
    """Yield the tables with rows by day that cover only the period. Spark caches them until the block ends.

    `given`: the tables by name, not cut to a period. If one of ANSWERED_FROM is missing, days stay whole, and
    `has_whole_days` is set."""
    pieces_us = tables.period.partial_days_us
    if not pieces_us:
        yield tables
        return
    if any(table.name not in given for table in ANSWERED_FROM):
        yield replace(tables, has_whole_days=True)
        return
    layers = {table: given[table.name] for table in ANSWERED_FROM}
    answered = answer_by_day(layers, options, within=Within(pieces_us=pieces_us))
    shown = [table for table in answered if table.name not in tables.missing and table.name not in tables.empty]
    exact = {table.name: _exact(tables, table, answered[table]) for table in shown}
    try:
        yield replace(tables, frames={**tables.frames, **exact})
    finally:
        for rows in exact.values():
            rows.unpersist()


def _exact(tables: Tables, table: Table, partial: DataFrame) -> DataFrame:
    cut = [moment_of(began_us).date() for began_us, _ in tables.period.partial_days_us]
    whole = tables[table].where(~f.col("day").isin(cut))
    return whole.unionByName(partial).persist(StorageLevel.MEMORY_AND_DISK)

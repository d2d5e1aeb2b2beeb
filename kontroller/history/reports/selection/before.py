"""The figures of the previous period, which has the same length.

They are computed from intervals that are cut to it, because it may begin in the middle of a day."""

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kontroller.history import schemas
from kontroller.history.answers.intervals.states import has_known_leader
from kontroller.history.answers.intervals.within import Within
from kontroller.history.answers.isr_flaps import isr_flaps
from kontroller.history.reports.facts import Before, Uptime
from kontroller.history.reports.period import Period
from kontroller.history.reports.selection.tables import INSTANTS, Tables, tables_of
from kontroller.history.schemas import Table

COUNTED = {
    "findings": schemas.FINDINGS,
    "failovers": schemas.FAILOVERS,
    "unclean": schemas.UNCLEAN_ELECTIONS,
    "reassignments": schemas.REASSIGNMENTS,
    "violations": schemas.VIOLATIONS,
}


def figures_before(given: Mapping[str, DataFrame], period: Period) -> Before | None:
    """Compute the figures with one query. Return None if there is no such time, or no table of it. Rows without a time
    are not counted."""
    earlier = period.make_previous()
    if earlier is None:
        return None
    tables = tables_of(given, earlier)
    amounts = [*_amounts(tables), *_flaps(given, earlier)]
    found = {row["name"]: int(row["amount"] or 0) for row in reduce(DataFrame.unionByName, amounts).collect()}
    counts = {name: found[name] for name in COUNTED if COUNTED[name].name not in tables.missing}
    if schemas.INCIDENTS.name not in tables.missing:
        counts["incidents"] = found["incidents"]
    if schemas.PARTITION_INTERVALS.name in given:
        counts["flaps"] = found["flaps"]
    return Before(
        period=earlier,
        uptime=Uptime(
            known_us=found["known_us"],
            unknown_us=found["unknown_us"],
            leaderless_us=found["leaderless_us"],
            under_us=found["under_us"],
        ),
        exposed_us=found["exposed_us"],
        known_clock_us=found["known_clock_us"],
        counts=counts,
    )


def _amounts(tables: Tables) -> list[DataFrame]:
    """Return the amounts as rows of `name` and `amount`."""
    lasted = f.greatest(f.col("ended_us") - f.col("began_us"), f.lit(0))
    known, problem = has_known_leader(), f.col("problem")
    intervals = _name_amounts(
        tables.clip(schemas.PARTITION_INTERVALS),
        known_us=f.sum(f.when(known, lasted)),
        unknown_us=f.sum(f.when(~known, lasted)),
        exposed_us=f.sum(f.when(f.col("is_known") & (f.size("isr") <= 1), lasted)),
    )
    incidents = _name_amounts(
        tables.clip(schemas.INCIDENTS),
        leaderless_us=f.sum(f.when(problem == "leaderless", lasted)),
        under_us=f.sum(f.when(problem == "under_min_isr", lasted)),
        incidents=f.count("*"),
    )
    spans = _name_amounts(tables.clip(schemas.KNOWN_SPANS), known_clock_us=f.sum(lasted))
    counts = [_name_amounts(select_timed(tables, table), **{name: f.count("*")}) for name, table in COUNTED.items()]
    return [intervals, incidents, spans, *counts]


def select_timed(tables: Tables, table: Table) -> DataFrame:
    """Return the rows with a time. Rows without one are in the tables of every period."""
    return tables[table].where(f.col(INSTANTS[table.name]).isNotNull()) if table.name in INSTANTS else tables[table]


def _flaps(given: Mapping[str, DataFrame], period: Period) -> list[DataFrame]:
    """Recompute the flaps, because the period may begin in the middle of a day. Return nothing without the
    intervals."""
    intervals = given.get(schemas.PARTITION_INTERVALS.name)
    if intervals is None:
        return []
    within = Within(pieces_us=((period.began_us, period.ended_us),))
    return [_name_amounts(isr_flaps(intervals, within), flaps=f.sum("flaps"))]


def _name_amounts(rows: DataFrame, **amounts: Column) -> DataFrame:
    sums = rows.agg(*(amount.cast("long").alias(name) for name, amount in amounts.items()))
    return sums.unpivot([], list(amounts), "name", "amount")

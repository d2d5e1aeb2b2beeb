"""Measures partition time in rolling windows, and in the pieces of time of the budget's line.

Windows end with the last known time of a cluster, unless it has been silent for more than SILENT_AFTER_US: then they
end with the period, and the silence is unknown time of the cluster's mean number of partitions. A cluster is measured
since its history began.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f

from kontroller.history import schemas
from kontroller.history.answers.intervals.states import has_known_leader, is_leaderless
from kontroller.history.reports.attention import SILENT_AFTER_US
from kontroller.history.reports.period import DAY, HOUR, Grid, Period
from kontroller.history.reports.selection.coverage import edges, sum_coverage
from kontroller.history.reports.service_levels import BUDGET_US, WINDOWS, Amount, Level, Pieces

MOST_DRAWN_US = 400 * DAY
MOST_PIECES = 2_000
WIDTHS = tuple(hours * HOUR for hours in (1, 2, 3, 4, 6))
"""All divide BUDGET_US, and with the last one MOST_DRAWN_US has fewer than MOST_PIECES."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _History:
    """The time of which a cluster has a history, within the budget's window, and the end of its windows."""

    began_us: int
    ended_us: int
    as_of_us: int
    partitions: int = 0
    """The mean number of partitions, rounded up."""

    @property
    def is_silent(self) -> bool:
        return self.ended_us < self.as_of_us

    def measure_silence(self, began_us: int, ended_us: int) -> int:
        """Return the partition time between these times that lies after the history, before the end of the windows."""
        return self.partitions * max(0, min(ended_us, self.as_of_us) - max(began_us, self.ended_us))


def measure_levels(
    given: Mapping[str, DataFrame], period: Period, clusters: Sequence[str]
) -> tuple[Level | None, tuple[Level, ...]]:
    """Return the level of all clusters together, and that of each one, at the end of the period.

    `given`: the tables by name, not cut to a period. `clusters`: those whose pieces are measured. None if there is no
    history in the budget's window, or if a table that is needed was not given."""
    if any(table.name not in given for table in (schemas.PARTITION_INTERVALS, schemas.KNOWN_SPANS)):
        return None, ()
    grid = make_grid(period)
    histories = _find_histories(given[schemas.KNOWN_SPANS.name], grid)
    if not histories:
        return None, ()
    intervals = _select_intervals(given[schemas.PARTITION_INTERVALS.name], grid)
    amounts = _measure_windows(intervals, histories)
    histories = {name: _count_partitions(its, amounts[name][BUDGET_US]) for name, its in histories.items()}
    levels = {name: _make_level(name, history, amounts[name]) for name, history in histories.items()}
    keys = ("cluster_id",)
    drawn = [name for name in clusters if name in histories]
    found = sum_coverage(edges(_add_lost(intervals.where(f.col("cluster_id").isin(drawn))), keys, grid), keys, grid)
    of_all = sum_coverage(edges(_add_lost(intervals), (), grid), (), grid)
    pieces = {name: _make_pieces(found.get((name,), {}), grid, [histories[name]]) for name in drawn}
    whole = Level(
        cluster="",
        as_of_us=max(level.as_of_us for level in levels.values()),
        began_us=min(level.began_us for level in levels.values()),
        windows={us: reduce(Amount.__add__, (each.windows[us] for each in levels.values())) for us in WINDOWS},
        pieces=_make_pieces(of_all.get((), {}), grid, list(histories.values())),
    )
    return whole, tuple(replace(levels[name], pieces=pieces.get(name)) for name in sorted(levels))


def make_grid(period: Period) -> Grid:
    """Return the pieces of the line: they end with the period, and begin a budget's window before the line."""
    drawn_us = max(BUDGET_US, min(MOST_DRAWN_US, period.ended_us - period.began_us))
    width_us = next(width for width in WIDTHS if drawn_us + BUDGET_US <= MOST_PIECES * width)
    count = -(-(drawn_us + BUDGET_US) // width_us)
    return Grid(began_us=period.ended_us - count * width_us, width_us=width_us, count=count)


def _find_histories(spans: DataFrame, grid: Grid) -> dict[str, _History]:
    """Return the histories of clusters that were known in the budget's window."""
    end = f.timestamp_micros(f.lit(grid.ended_us))
    known_until = f.unix_micros(f.max(f.least("ended", end))).alias("known_until")
    last = f.unix_micros(f.max(f.least(f.greatest("ended", "known_again"), end))).alias("ended_us")
    before = spans.where(f.col("began") < end).groupBy("cluster_id")
    rows = before.agg(f.unix_micros(f.min("began")).alias("began_us"), known_until, last).collect()
    first_us = grid.ended_us - BUDGET_US
    return {
        row["cluster_id"]: _make_history(row, grid)
        for row in rows
        if row["known_until"] and row["known_until"] > first_us
    }


def _make_history(row: Row, grid: Grid) -> _History:
    is_silent = grid.ended_us - row["known_until"] > SILENT_AFTER_US
    return _History(
        began_us=max(row["began_us"], grid.ended_us - BUDGET_US),
        ended_us=row["ended_us"],
        as_of_us=grid.ended_us if is_silent else row["known_until"],
    )


def _select_intervals(intervals: DataFrame, grid: Grid) -> DataFrame:
    """Return cluster_id, began_us, ended_us, is_known, is_lost of the intervals within the grid."""
    end = f.lit(grid.ended_us)
    ended_us = f.least(f.coalesce(f.unix_micros("ended"), end), end).alias("ended_us")
    began_us = f.greatest(f.unix_micros("began"), f.lit(grid.began_us)).alias("began_us")
    rows = intervals.where("began is not null")
    is_known, is_lost = has_known_leader().alias("is_known"), is_leaderless().alias("is_lost")
    return rows.select("cluster_id", began_us, ended_us, is_known, is_lost).where("began_us < ended_us")


def _measure_windows(intervals: DataFrame, histories: Mapping[str, _History]) -> Mapping[str, Mapping[int, Amount]]:
    """Return the amounts of each cluster by the lengths of WINDOWS, without silence."""
    ends = [(cluster, history.as_of_us) for cluster, history in histories.items()]
    as_of = f.broadcast(intervals.sparkSession.createDataFrame(ends, "cluster_id string, as_of_us long"))
    measures = (("known", "is_known"), ("unknown", "not is_known"), ("lost", "is_lost"))
    sums = [
        f.coalesce(f.sum(f.when(f.expr(condition), _overlap(us))), f.lit(0)).cast("long").alias(f"{name}_{us}")
        for us in WINDOWS
        for name, condition in measures
    ]
    rows = {
        row["cluster_id"]: row for row in intervals.join(as_of, "cluster_id").groupBy("cluster_id").agg(*sums).collect()
    }
    return {cluster: {us: _read_amount(rows.get(cluster), us) for us in WINDOWS} for cluster in histories}


def _overlap(window_us: int) -> Column:
    began = f.greatest(f.col("began_us"), f.col("as_of_us") - window_us)
    return f.greatest(f.least("ended_us", "as_of_us") - began, f.lit(0))


def _read_amount(row: Row | None, us: int) -> Amount:
    if row is None:
        return Amount()
    return Amount(known_us=row[f"known_{us}"], unknown_us=row[f"unknown_{us}"], lost_us=row[f"lost_{us}"])


def _count_partitions(history: _History, amount: Amount) -> _History:
    length_us = min(history.ended_us, history.as_of_us) - history.began_us
    return replace(history, partitions=-(-amount.total_us // length_us) if length_us > 0 else 0)


def _make_level(cluster: str, history: _History, amounts: Mapping[int, Amount]) -> Level:
    windows = {
        us: amount + Amount(unknown_us=history.measure_silence(history.as_of_us - us, history.as_of_us))
        for us, amount in amounts.items()
    }
    return Level(cluster=cluster, as_of_us=history.as_of_us, began_us=history.began_us, windows=windows)


def _add_lost(intervals: DataFrame) -> DataFrame:
    """Return a row for each measure: known, unknown, and lost, which is known as well."""
    known = f.when(f.col("is_known"), f.lit("known")).otherwise(f.lit("unknown"))
    measures = f.when(f.col("is_lost"), f.array(known, f.lit("lost"))).otherwise(f.array(known))
    return intervals.withColumn("measure", f.explode(measures))


def _make_pieces(measures: Mapping[str, Sequence[int]], grid: Grid, histories: Sequence[_History]) -> Pieces:
    known, unknown, lost = (measures.get(name, [0] * grid.count) for name in ("known", "unknown", "lost"))
    silent = [history for history in histories if history.is_silent]
    amounts = tuple(
        Amount(
            known_us=known[index],
            unknown_us=unknown[index] + sum(history.measure_silence(*grid.edges(index)) for history in silent),
            lost_us=lost[index],
        )
        for index in range(grid.count)
    )
    return Pieces(ended_us=grid.ended_us, width_us=grid.width_us, amounts=amounts)

"""Corrects the times of a term whose clock was set, by the uptime of the writer's machine.

The difference between a stamp and the uptime stays the same until somebody sets the clock. If it changed within a term,
the difference that was in effect longest holds for the whole term. So durations are exact, whatever the clock did.
Example, with a clock that is set back by 5 minutes during an outage:
    uptime      1000 s     1600 s     1900 s
    stamp       10:00:00   10:05:00   10:10:00
    event time  09:55:00   10:05:00   10:10:00    if the clock stayed as it was set
Each term has its own difference, because the uptime of a virtual machine stands still while it is paused, and a paused
controller loses its role. Journals without uptimes are left to `clock_runs`.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kontroller.history.transforms.continuity.clock_runs import LAST_US
from kontroller.history.transforms.continuity.neighbours import EPOCH
from kontroller.history.transforms.in_groups import Compute, leave

BOOT: Final = (*EPOCH, "boot")
_CELL_US: Final = 10_000
"""The differences of a steady clock are in one cell or two neighbours, because stamps have milliseconds."""
_STEADY_CELLS: Final = 1
_STRETCH_US: Final = 10_000_000
"""A difference was in effect in as many stretches as have a record with it, so a burst of records counts once."""
_LONGEST_UPTIME_US: Final = 1 << 53


def correct_stamps(events: DataFrame, compute: Compute = leave) -> DataFrame:
    """Return the records with the event times by uptime, and `set_us`, in terms within which the clock was set.

    `compute`: applied to the differences of these terms, which are a few rows."""
    found = events.join(f.broadcast(compute(_find_differences(events))), list(BOOT), "left")
    is_possible = f.col("boot_us").between(0, _LONGEST_UPTIME_US)
    right = f.when(is_possible, f.timestamp_micros(f.col("_difference_us") + f.col("boot_us")))
    values = {
        "event_time": f.coalesce(right, "event_time"),
        "set_us": f.unix_micros(right) - f.unix_micros("event_time"),
    }
    return found.withColumns(values).selectExpr("* except (_difference_us)")


def differences(events: DataFrame) -> DataFrame:
    """Return the first and last cell of the differences of each term and start of a machine: `least`, `most`."""
    rows = events.where(f.col("boot").isNotNull() & f.col("boot_us").between(0, _LONGEST_UPTIME_US))
    return rows.groupBy(*BOOT).agg(f.min(_cell()).alias("least"), f.max(_cell()).alias("most"))


def is_set(least: Column, most: Column) -> Column:
    """Return True if the clock was set, by its first and last cell."""
    return most - least > _STEADY_CELLS


def _find_differences(events: DataFrame) -> DataFrame:
    """Return the difference that was in effect longest in each term within which the clock was set, of equal ones the
    latest."""
    were_set = differences(events).where(is_set(f.col("least"), f.col("most"))).select(*BOOT)
    rows = events.where(f.col("boot_us").between(0, _LONGEST_UPTIME_US) & (f.unix_micros("event_time") < LAST_US))
    rows = rows.join(f.broadcast(were_set), list(BOOT), "left_semi")
    of_cells = rows.groupBy(*BOOT, _cell().alias("cell")).agg(
        f.count_distinct(f.floor(f.col("boot_us") / _STRETCH_US)).alias("stretches"),
        f.max("boot_us").alias("until_us"),
        f.max(_difference_us()).alias("difference_us"),
    )
    longest = f.max_by("difference_us", f.struct("stretches", "until_us"))
    return of_cells.groupBy(*BOOT).agg(longest.alias("_difference_us"))


def _cell() -> Column:
    return f.floor(_difference_us() / _CELL_US)


def _difference_us() -> Column:
    return f.unix_micros("event_time") - f.col("boot_us")

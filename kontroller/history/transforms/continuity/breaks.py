"""The breaks of a history: the few records at which something is missing, something begins, or the clock was not
steady.

All known times and states follow from the breaks and the snapshots, so these few `marks` may be sorted by cluster. A
record, its predecessor and the properties of its epoch (`neighbours.edges`) determine if it is a break.
"""

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f

from controller_core.journal.changes import Kind
from controller_core.journal.inference import UNOBSERVED
from kontroller.history.schemas import FLAG, INT, LONG, TEXT, columns
from kontroller.history.transforms.continuity.clock_runs import Run
from kontroller.history.transforms.continuity.neighbours import EPOCH, add_predecessors, edges, is_request

BEGINS: Final = (Kind.GAP.value, Kind.RECORDER_STARTED.value)
"""The kinds of records with lost records before them."""
SKEW_US: Final = 60_000_000
"""The difference between the clocks of two machines, or the backward step of one, that is not a break."""

BACK: Final = "back"
SILENCE: Final = "silence"
UNSEEN: Final = "unobserved"

MARKS: Final = columns(
    cluster_id=TEXT,
    controller_epoch=LONG,
    seq=LONG,
    mark=TEXT,  # break | snapshot_started | snapshot_ended | end
    time_us=LONG,
    forgets=FLAG,  # this and the following columns: of breaks, and of the end
    step=TEXT,
    seq_before=LONG,
    time_us_before=LONG,
    was_resigned=FLAG,
    controller_id=INT,
    origin=TEXT,
    missing=LONG,
    dropped=LONG,
    source=TEXT,
    alive_interval_ms=LONG,  # of breaks: of the epoch, else of the cluster; null if no record says it
)
"""The few records of a history that determine its known times, and its end.

The breaks include records that are a little earlier than their predecessor; these have no `step`."""
BREAK: Final = "break"  # sorts before the names of other marks at the same record
END: Final = "end"
_AFTER_ALL: Final = 2**63 - 1
"""The epoch of the mark after the last record."""

_KINDS: Final = (*BEGINS, Kind.CONTROLLER_RESIGNED.value)
SNAPSHOT: Final = (Kind.SNAPSHOT_STARTED.value, Kind.SNAPSHOT_ENDED.value)


def marks(events: DataFrame) -> DataFrame:
    """Return the `MARKS` of unique records."""
    of = edges(events)
    return _breaks(events, of).unionByName(_snapshots(events)).unionByName(_end(of))


def _breaks(events: DataFrame, of: DataFrame) -> DataFrame:
    """Return the records at which the history breaks. `of`: the `edges` of the events.

    `forgets`: the state is unknown from here on, until a snapshot. `step`: the clock went `back`, there was `silence`,
    or the change was `unobserved`, so the time since the previous record is unknown; null if the clock was steady."""
    kind = f.when(f.col("kind").isin(*_KINDS), f.col("kind")).alias("kind")  # null for others, to keep rows short
    rows = events.select(
        *EPOCH, "seq", f.unix_micros("event_time").alias("time_us"), kind, "dropped", "left_out",
        (f.col("cause") == UNOBSERVED).alias("is_unobserved"), "source", is_request().alias("is_request"),
    )  # fmt: skip
    rows = add_predecessors(rows, of)
    begins = f.coalesce(f.col("kind").isin(*BEGINS), f.lit(False)) | f.col("is_first")
    # A request is never later than the last sign of life. An earlier one shows a clock that was set back.
    is_again = f.col("is_request") & (f.col("time_us") >= f.coalesce("stamp_us_before", "time_us_before"))
    rows = rows.withColumns({
        "is_again": f.coalesce(is_again, f.lit(False)),
        "time_us": f.when(f.col("is_request"), f.least("time_us", "time_us_before")).otherwise(f.col("time_us")),
    })  # fmt: skip
    passed_us = f.col("time_us") - f.col("time_us_before")
    # A controller that resigns after a silence had lost the role during it; `edges` handles that.
    is_in_office = ~f.col("kind").eqNullSafe(f.lit(Kind.CONTROLLER_RESIGNED.value))
    step = (
        f.when(f.col("is_request"), None)
        .when(passed_us < -SKEW_US, BACK)
        .when((passed_us > f.col("silence_us")) & is_in_office, SILENCE)
        .when((passed_us > 0) & f.col("is_unobserved"), UNSEEN)
    )
    rows = rows.withColumns({"forgets": begins | (f.col("seq") > f.col("seq_before") + 1), "step": step})
    rows = rows.where("forgets or step is not null or time_us < time_us_before and not is_again")
    rows = rows.withColumn("mark", f.lit(BREAK))
    return _fit_marks(rows, MARKS.fieldNames())


def _snapshots(events: DataFrame) -> DataFrame:
    """Return the beginnings and ends of snapshots whose entries are kept."""
    rows = events.where(f.col("kind").isin(*SNAPSHOT) & f.col("left_out").isNull())
    values = {"mark": f.col("kind"), "time_us": f.unix_micros("event_time"), "forgets": f.lit(False)}
    return _fit_marks(rows.withColumns(values), {*EPOCH, "seq", *values})


class Mark(NamedTuple):
    """A row of `MARKS` without its cluster."""

    controller_epoch: int
    seq: int
    mark: str
    time_us: int
    forgets: bool = False
    step: str | None = None
    seq_before: int | None = None
    time_us_before: int | None = None
    was_resigned: bool | None = None
    controller_id: int | None = None
    origin: str | None = None
    missing: int | None = None
    dropped: int | None = None
    source: str | None = None
    alive_interval_ms: int | None = None


def _end(of: DataFrame) -> DataFrame:
    """Return the mark after the last record of each cluster. `of`: the `edges`."""
    last = f.struct("controller_epoch", "bucket", "last_seq", "left_us", "is_resigned")
    rows = of.groupBy("cluster_id").agg(f.max(last).alias("last"))
    values = {
        "controller_epoch": f.lit(_AFTER_ALL),
        "seq": f.lit(0),
        "mark": f.lit(END),
        "time_us": f.col("last.left_us"),
        "forgets": f.lit(True),
        "seq_before": f.col("last.last_seq"),
        "time_us_before": f.col("last.left_us"),
        "was_resigned": f.col("last.is_resigned"),
    }
    return _fit_marks(rows.withColumns(values), {"cluster_id", *values})


def _fit_marks(rows: DataFrame, there: Collection[str]) -> DataFrame:
    """Return the rows in the columns of `MARKS`. Columns that are not `there` become null."""
    values = {field.name: f.col(field.name) if field.name in there else f.lit(None) for field in MARKS}
    return rows.select(*(values[field.name].cast(field.dataType).alias(field.name) for field in MARKS))


def sort_marks(marks: Sequence[Row]) -> list[Mark]:
    """Return the marks of one cluster in their order."""
    rows = (Mark(*(row[name] for name in Mark._fields)) for row in marks)
    return sorted(rows, key=lambda mark: mark[:3])


def runs(marks: Sequence[Mark]) -> list[Run]:
    """Return the runs of a cluster from its marks in their order. The first mark is its first record, the last its
    end."""
    steps = [marks[0], *(mark for mark in marks if mark.step), marks[-1]]
    return [Run(began.time_us, max(began.time_us, ended.time_us_before or 0)) for began, ended in pairwise(steps)]

"""Where a history does not simply go on: the few records before which something is missing, or begins, or where the clock
did not run on steadily. All that is known of times and states follows from them and from where snapshots are, so these
`marks` may be put in order by cluster. Each is said by a record and the one before it, and by what holds for their epoch
(`neighbours.edges`).
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
from kontroller.history.transforms.continuity.neighbours import EPOCH, before, edges

BEGINS: Final = (Kind.GAP.value, Kind.RECORDER_STARTED.value)
"""Kinds of records before which something is missing."""
SKEW_US: Final = 60_000_000
"""By how much the clocks of two machines may differ, or one may be set back, before it is a break."""

BACK: Final = "back"
SILENCE: Final = "silence"
UNSEEN: Final = "unobserved"

MARKS: Final = columns(
    cluster_id=TEXT,
    controller_epoch=LONG,
    seq=LONG,
    mark=TEXT,  # break | snapshot_started | snapshot_ended | end
    time_us=LONG,
    forgets=FLAG,  # this and the following: of breaks, and of the end
    step=TEXT,
    seq_before=LONG,
    time_us_before=LONG,
    was_resigned=FLAG,
    controller_id=INT,
    origin=TEXT,
    missing=LONG,
    dropped=LONG,
    source=TEXT,
    alive_interval_ms=LONG,  # of breaks: of the epoch, else of the cluster; null where nobody says it
)
"""The few records of a history that matter for what is known of it, and its end. Among breaks are records that are only a
little earlier than the one before, which is no `step`."""
BREAK: Final = "break"  # sorts before the names of other marks at the same record
END: Final = "end"
_AFTER_ALL: Final = 2**63 - 1
"""The epoch of what comes after the last record."""

_KINDS: Final = (*BEGINS, Kind.CONTROLLER_RESIGNED.value)
SNAPSHOT: Final = (Kind.SNAPSHOT_STARTED.value, Kind.SNAPSHOT_ENDED.value)


def marks(events: DataFrame) -> DataFrame:
    """`MARKS` of records that are there once each."""
    of = edges(events)
    return _breaks(events, of).unionByName(_snapshots(events)).unionByName(_end(of))


def _breaks(events: DataFrame, of: DataFrame) -> DataFrame:
    """The records at which it breaks; `of`: the `edges` of the events.

    `forgets`: from here on the state is unknown, until a snapshot. `step`: the clock went `back`, there was `silence`, or
    the change was `unobserved`, so that the time from the record before to this one is unknown; null where it ran on."""
    kind = f.when(f.col("kind").isin(*_KINDS), f.col("kind")).alias("kind")  # no other matters: so rows are short
    rows = events.select(
        *EPOCH, "seq", f.unix_micros("event_time").alias("time_us"), kind, "dropped", "left_out",
        (f.col("cause") == UNOBSERVED).alias("is_unobserved"), "source",
    )  # fmt: skip
    rows = before(rows, of)
    begins = f.coalesce(f.col("kind").isin(*BEGINS), f.lit(False)) | f.col("is_first")
    passed_us = f.col("time_us") - f.col("time_us_before")
    # Who resigns after a silence had lost the role in it: `edges` sees to that.
    is_in_office = ~f.col("kind").eqNullSafe(f.lit(Kind.CONTROLLER_RESIGNED.value))
    step = (
        f.when(passed_us < -SKEW_US, BACK)
        .when((passed_us > f.col("silence_us")) & is_in_office, SILENCE)
        .when((passed_us > 0) & f.col("is_unobserved"), UNSEEN)
    )
    rows = rows.withColumns({"forgets": begins | (f.col("seq") > f.col("seq_before") + 1), "step": step})
    rows = rows.where("forgets or step is not null or time_us < time_us_before").withColumn("mark", f.lit(BREAK))
    return _as_marks(rows, MARKS.fieldNames())


def _snapshots(events: DataFrame) -> DataFrame:
    """Where snapshots begin and end of which the entries are kept."""
    rows = events.where(f.col("kind").isin(*SNAPSHOT) & f.col("left_out").isNull())
    values = {"mark": f.col("kind"), "time_us": f.unix_micros("event_time"), "forgets": f.lit(False)}
    return _as_marks(rows.withColumns(values), {*EPOCH, "seq", *values})


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
    """What comes after the last record of each cluster, which has these `edges`."""
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
    return _as_marks(rows.withColumns(values), {"cluster_id", *values})


def _as_marks(rows: DataFrame, there: Collection[str]) -> DataFrame:
    """In the columns of `MARKS`, of which these are there; the others are null."""
    values = {field.name: f.col(field.name) if field.name in there else f.lit(None) for field in MARKS}
    return rows.select(*(values[field.name].cast(field.dataType).alias(field.name) for field in MARKS))


def in_order(marks: Sequence[Row]) -> list[Mark]:
    """The marks of one cluster, as Spark gives them."""
    rows = (Mark(*(row[name] for name in Mark._fields)) for row in marks)
    return sorted(rows, key=lambda mark: mark[:3])


def runs(marks: Sequence[Mark]) -> list[Run]:
    """The runs of a cluster, of its marks in their order: the first is its first record, the last its end."""
    steps = [marks[0], *(mark for mark in marks if mark.step), marks[-1]]
    return [Run(began.time_us, max(began.time_us, ended.time_us_before or 0)) for began, ended in pairwise(steps)]

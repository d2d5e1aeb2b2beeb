"""The predecessor of each record, in any epoch.

Records are compared within buckets of their numbers, never all of a cluster in one place. A small table with the ends
of each bucket connects the buckets (`edges`).
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from controller_core.journal.changes import Kind
from kontroller.history.transforms.lines import CONTROLLER, LOGS, RECORDER

BUCKET: Final = 1 << 16
"""The number of records of an epoch in a bucket."""
EPOCH: Final = ("cluster_id", "controller_epoch")
PART: Final = 1 << 40
"""The distance between the numbers of an epoch's parts from different accounts (`accounts.choice`)."""

ALIVE_INTERVALS: Final = 6
"""The number of alive intervals without a record after which a writer counts as silent."""
DEFAULT_ALIVE_INTERVAL_MS: Final = 10_000
"""The alive interval if no record of the cluster states it."""
_LONGEST_ALIVE_INTERVAL_MS: Final = 86_400_000
LOGS_SILENCE_US: Final = 3_600_000_000
"""Kafka's logs are silent whenever nothing happens. A later record does not end a silence, but may have a wrong
clock."""


def bucket() -> Column:
    return f.floor(f.col("seq") / BUCKET)


def last_number() -> Column:
    """Return the last number that a record stands for.

    It is its own number, or that of the last removed entry if a snapshot begins whose entries were removed."""
    return f.col("seq") + f.coalesce("left_out", f.lit(0))


def silence_us(alive_interval_ms: Column) -> Column:
    """Return the microseconds without a record after which a writer with this alive interval counts as silent.

    A null interval means that it is not known."""
    interval_ms = f.coalesce(alive_interval_ms, f.lit(DEFAULT_ALIVE_INTERVAL_MS))
    return f.least(interval_ms, f.lit(_LONGEST_ALIVE_INTERVAL_MS)) * ALIVE_INTERVALS * 1000


def is_request() -> Column:
    """Return True for the record of a client's request. It has a number, but is no sign of life.

    A controller also answers requests, or refuses them, while it is cut off from ZooKeeper and knows nothing of the
    cluster. So anybody could make a silent controller look alive. Changes have records of their own."""
    return f.col("kind") == Kind.REQUEST.value


def edges(events: DataFrame) -> DataFrame:
    """Return the first and last record of each bucket, and the predecessor of the first (`..._before`); a few rows.

    Columns of the epoch are `controller_id`, `origin`, `alive_interval_ms` if stated, and `silence_us`. Times are those
    of signs of life (`is_request`).

    A deposed controller resigns when it notices, perhaps long after the next one has begun. Then `time_us_before` is
    the beginning of the next one, but not later than the resignation: a clock may be set back just before it. A
    controller that was silent before it resigned was not working; then it is the time of its previous record."""
    ends = f.col("kind") == Kind.CONTROLLER_RESIGNED.value
    time_us, alive_seq = f.unix_micros("event_time"), f.when(~is_request(), f.col("seq"))
    found = events.groupBy(*EPOCH, bucket().alias("bucket")).agg(
        f.min("seq").alias("first_seq"),
        f.max(last_number()).alias("last_seq"),
        f.min_by(time_us, "seq").alias("stamp_us"),
        f.min_by(time_us, alive_seq).alias("first_us"),
        f.max_by(time_us, alive_seq).alias("last_us"),
        f.max_by(f.coalesce("dropped", f.lit(1)), "seq").alias("covered"),
        f.max_by(ends, "seq").alias("is_resigned"),
        f.max_by(time_us, f.when(~ends, alive_seq)).alias("in_office_us"),
        f.max_by("controller_id", "seq").alias("controller_id"),
        f.max(f.col("origin") == RECORDER).alias("is_recorded"),
        f.max(f.col("origin") == LOGS).alias("is_of_logs"),
        f.max("alive_interval_ms").alias("alive_interval_ms"),
    )
    return _add_last_before(_add_epochs(found))


def add_predecessors(rows: DataFrame, of: DataFrame) -> DataFrame:
    """Add the predecessor of each record in any epoch, and the number of `missing` records between them.

    `rows`: whole buckets with `EPOCH`, `seq`, `time_us`, `kind`, `is_request`, `dropped`, `left_out`. `of`: their
    `edges`. The new columns are `is_first` (of its epoch), `epoch_before`, `seq_before`, `time_us_before` (of the last
    sign of life), `stamp_us_before` (of the record before, in its bucket), `was_resigned`, `missing`, and those of the
    epoch in `edges`."""
    place = Window.partitionBy(*EPOCH, "bucket").orderBy("seq")
    of_edge = ("epoch_before", "seq_before", "covered_before", "time_us_before", "was_resigned")
    of_epoch = ("controller_id", "origin", "alive_interval_ms", "silence_us")
    edge = of.select(*EPOCH, "bucket", f.struct(*of_edge).alias("edge"), *of_epoch)
    rows = rows.withColumn("bucket", bucket()).join(f.broadcast(edge), [*EPOCH, "bucket"])
    earlier = place.rowsBetween(Window.unboundedPreceding, -1)
    lagged = {
        "seq_before": f.max(last_number()).over(earlier),
        "covered_before": f.lag(f.coalesce("dropped", f.lit(1))).over(place),
        "time_us_before": f.last(f.when(~f.col("is_request"), f.col("time_us")), ignorenulls=True).over(earlier),
        "was_resigned": f.lag(f.col("kind") == Kind.CONTROLLER_RESIGNED.value).over(place),
    }
    rows = rows.withColumns(lagged | {"stamp_us_before": f.lag("time_us").over(place)})
    is_edge = f.col("seq_before").isNull()
    taken = {name: f.when(is_edge, f.col(f"edge.{name}")).otherwise(f.col(name)) for name in lagged}
    taken["time_us_before"] = f.coalesce("time_us_before", "edge.time_us_before")
    epoch = f.when(is_edge, f.col("edge.epoch_before")).otherwise(f.col("controller_epoch"))
    rows = rows.withColumns(taken | {"epoch_before": epoch})
    is_first = f.coalesce(f.col("epoch_before") != f.col("controller_epoch"), f.lit(True))
    # The oldest segment after retention begins with any number; a later epoch begins with 0.
    expected = (
        f.when(f.col("epoch_before").isNull(), f.col("seq"))
        .when(is_first, f.lit(0))
        # Another account of the epoch continues where the previous one was silent.
        .when(f.floor(f.col("seq") / PART) != f.floor(f.col("seq_before") / PART), f.col("seq"))
        .otherwise(f.col("seq_before") + f.col("covered_before"))
    )
    missing = f.greatest(f.col("seq") - expected, f.lit(0))
    return rows.withColumns({"is_first": is_first, "missing": missing}).selectExpr("* except (edge)")


def _add_epochs(found: DataFrame) -> DataFrame:
    """Add the properties that all buckets of an epoch share."""
    epoch, cluster = Window.partitionBy(*EPOCH), Window.partitionBy("cluster_id")
    is_of_logs, is_recorded = f.max("is_of_logs").over(epoch), f.max("is_recorded").over(epoch)
    origin = f.when(is_of_logs, f.lit(LOGS)).when(is_recorded, f.lit(RECORDER)).otherwise(f.lit(CONTROLLER))
    # Retention may have removed the record of a term that states it, but other terms of its cluster have one.
    interval_ms = f.coalesce(f.max("alive_interval_ms").over(epoch), f.max("alive_interval_ms").over(cluster))
    return found.withColumns({
        "controller_id": f.max("controller_id").over(epoch),
        "origin": origin,
        "alive_interval_ms": interval_ms,
        "silence_us": f.when(is_of_logs, f.lit(LOGS_SILENCE_US)).otherwise(silence_us(interval_ms)),
    })  # fmt: skip


def _add_last_before(found: DataFrame) -> DataFrame:
    history = Window.partitionBy("cluster_id").orderBy("controller_epoch", "bucket")
    was_silent = f.coalesce(f.col("last_us") - f.col("in_office_us") > f.col("silence_us"), f.lit(False))
    found = found.withColumns({
        "is_resigned": f.col("is_resigned") & ~was_silent,
        "left_us": f.when(f.col("is_resigned") & was_silent, f.col("in_office_us")).otherwise(f.col("last_us")),
    })  # fmt: skip
    # A bucket may have nothing but requests.
    left_so_far = f.last("left_us", ignorenulls=True).over(history.rowsBetween(Window.unboundedPreceding, 0))
    found = found.withColumn("left_us", f.coalesce(left_so_far, "stamp_us"))
    left_us, was_resigned = f.lag("left_us").over(history), f.lag("is_resigned").over(history)
    begun_us = f.coalesce("first_us", left_us)
    deposed_us = f.least(left_us, f.greatest(f.lag("in_office_us").over(history), begun_us))
    return found.withColumns({
        "epoch_before": f.lag("controller_epoch").over(history),
        "seq_before": f.lag("last_seq").over(history),
        "covered_before": f.lag("covered").over(history),
        "time_us_before": f.when(was_resigned, deposed_us).otherwise(left_us),
        "was_resigned": was_resigned,
    })  # fmt: skip

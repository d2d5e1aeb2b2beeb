"""Resolves local times that occur twice, in the hour in which clocks are set back in autumn.

Logs have local times without an offset, so a line of that hour has two possible instants. The first one is assumed,
unless time would then run backwards:
    a file      [02:40 broker 2 is gone] [02:20 it is back]    the later line is of the second 02:20
    epochs      [02:50 epoch 5] [02:10 epoch 6, another host]  epoch 6 begins after epoch 5
    versions    [02:50 version 7] [02:10 version 8, a rotated file between them]  the same for a partition's versions

Later lines of that file or epoch are of the second time too. Intake calls `resolve_by_lines`, which needs one file
only. `resolve_by_epochs_and_versions` needs all records, and the records of the times at which clocks were set back.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

SET_BACK: Final = "set_back"
"""The kind of a record that a host's clock was set back: `event_time` is the time, and `took_us` the amount."""
_DISORDER: Final = "INTERVAL 10 SECONDS"
"""The disorder of lines that does not prove a second time, between threads of a host or the clocks of two hosts."""
_CHANGE: Final = ("leadership", "assignment", "controller_elected")
"""Kinds that only the active controller writes. A replaced one may log others until it notices."""
_CLOCK: Final = ("cluster_id", "set_back_at")


def set_back_us(local: str, time_zone: str) -> str:
    """SQL: the microseconds by which clocks are set back after this local time if it occurs twice, otherwise 0."""
    first = f"to_utc_timestamp({local}, '{time_zone}')"
    length = f"({_offset_us(first, time_zone)} - {_offset_us(f'{first} + INTERVAL 3 HOURS', time_zone)})"
    second = f"timestamp_micros(unix_micros({first}) + {length})"
    return f"IF({length} > 0 AND from_utc_timestamp({second}, '{time_zone}') = {local}, {length}, 0L)"


def set_back_at(time_zone: str) -> str:
    """SQL: the instant at which clocks were set back, for a row with the first instant of an ambiguous local time."""
    minutes = "sequence(date_trunc('MINUTE', event_time), event_time + INTERVAL 3 HOURS, INTERVAL 1 MINUTE)"
    return f"filter({minutes}, t -> {_offset_us('t', time_zone)} < {_offset_us('event_time', time_zone)})[0]"


def resolve_by_lines(lines: DataFrame) -> DataFrame:
    """Return the lines with `event_time` resolved by their order in each file (`source`, `block`, `position`).

    The input has the first instant of ambiguous times, and `set_back_us`."""
    twice = lines.where("set_back_us > 0")
    of_the_file = Window.partitionBy("source", f.to_date("event_time")).orderBy("block", "position")
    so_far = of_the_file.rowsBetween(Window.unboundedPreceding, 0)
    is_back = f.col("event_time") + f.expr(_DISORDER) < f.max("event_time").over(so_far)
    twice = twice.withColumn("is_back", is_back).withColumn("is_second", f.max("is_back").over(so_far))
    second = f.timestamp_micros(f.unix_micros("event_time") + f.col("set_back_us"))
    twice = twice.withColumn("event_time", f.when(f.col("is_second"), second).otherwise(f.col("event_time")))
    return lines.where("NOT coalesce(set_back_us > 0, false)").unionByName(twice.drop("is_back", "is_second"))


def resolve_by_epochs_and_versions(records: DataFrame) -> DataFrame:
    """Return the records of all logs without those of the kind `SET_BACK`.

    The `event_time` of ambiguous times is resolved by epochs and versions."""
    clocks = records.where(f.col("kind") == SET_BACK).selectExpr(
        "cluster_id AS of_cluster", "journal AS of_journal", "event_time AS set_back_at", "took_us AS by_us"
    )
    is_near = f.expr(
        "cluster_id = of_cluster AND journal = of_journal AND unix_micros(event_time) >= unix_micros(set_back_at) - by_us "
        "AND unix_micros(event_time) < unix_micros(set_back_at) + by_us"
    )
    told = records.where(f.col("kind") != SET_BACK)
    placed = told.join(f.broadcast(clocks.distinct()), is_near, "left")
    twice = placed.where("set_back_at IS NOT NULL")
    twice = _move(twice, _later_versions(twice), ("journal", "controller_epoch", "source"))
    twice = _move(twice, _later_epochs(twice), ("controller_epoch",))
    return placed.where("set_back_at IS NULL").unionByName(twice).select(*records.columns)


def _later_versions(twice: DataFrame) -> DataFrame:
    """Return the times (`second_from`) from which a file's lines are of the second time, because a lower version came
    later."""
    states = twice.where("kind = 'leadership' AND partition_epoch >= 0")
    of_the_partition = (*_CLOCK, "topic", "partition")
    versions = states.groupBy(*of_the_partition, "partition_epoch").agg(f.min("event_time").alias("said_at"))
    every = Window.partitionBy(*of_the_partition)
    before = every.orderBy("partition_epoch").rowsBetween(Window.unboundedPreceding, -1)
    # A topic that is created begins with version 0, perhaps after another topic of its name.
    versions = versions.withColumns(
        {"lowest": f.min("partition_epoch").over(every), "said_before": f.max("said_at").over(before)}
    )
    late = versions.where("lowest > 0").where(f.col("said_at") + f.expr(_DISORDER) < f.col("said_before"))
    proven = states.join(f.broadcast(late), [*of_the_partition, "partition_epoch"], "left_semi")
    return proven.groupBy(*_CLOCK, "journal", "controller_epoch", "source").agg(
        f.min("event_time").alias("second_from")
    )


def _later_epochs(twice: DataFrame) -> DataFrame:
    """Return the times from which an epoch's records are of the second time, because an earlier epoch lasts longer."""
    is_change = f.col("kind").isin(*_CHANGE)
    epochs = twice.groupBy(*_CLOCK, "controller_epoch").agg(
        f.min("event_time").alias("began"), f.max(f.when(is_change, f.col("event_time"))).alias("ended")
    )
    before = Window.partitionBy(*_CLOCK).orderBy("controller_epoch").rowsBetween(Window.unboundedPreceding, -1)
    so_far = Window.partitionBy(*_CLOCK).orderBy("controller_epoch").rowsBetween(Window.unboundedPreceding, 0)
    is_late = f.coalesce(f.col("began") + f.expr(_DISORDER) < f.max("ended").over(before), f.lit(False))
    follows = f.max("is_late").over(so_far) & (f.col("began") + f.expr(_DISORDER) < f.col("set_back_at"))
    epochs = epochs.withColumn("is_late", is_late).withColumn("is_second", f.col("is_late") | follows)
    return epochs.where("is_second").select(*_CLOCK, "controller_epoch", f.col("began").alias("second_from"))


def _move(twice: DataFrame, later: DataFrame, of: tuple[str, ...]) -> DataFrame:
    """Return the rows, with those from `second_from` on moved to their second instant."""
    rows = twice.join(f.broadcast(later), [*_CLOCK, *of], "left")
    is_moved = f.expr("event_time >= second_from AND event_time < set_back_at")
    second = f.timestamp_micros(f.unix_micros("event_time") + f.col("by_us"))
    return rows.withColumn("event_time", f.when(is_moved, second).otherwise(f.col("event_time"))).drop("second_from")


def _offset_us(moment: str, time_zone: str) -> str:
    """SQL: the microseconds by which local time is ahead of UTC at a moment."""
    return f"(unix_micros(from_utc_timestamp({moment}, '{time_zone}')) - unix_micros({moment}))"

"""What must hold of controllers: one for each epoch, none that goes on when another has begun, each with a true memory."""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from kontroller.history.audit.invariants import RECORD, Invariant, violations
from kontroller.history.transforms.lines import CONTROLLER

CLOCK_TOLERANCE_SECONDS: Final = 60
"""By how much the clocks of two controllers may differ before what they say of each other is suspicious."""

ONE_IN_AN_EPOCH: Final = (
    Invariant(
        id="OneControllerPerEpoch",
        broken="controller_id <> other_id",
        detail="controllers {other_id} and {controller_id} both acted in controller epoch {record.controller_epoch}",
        evidence=("other_record",),
    ),
)

NONE_AFTER_ITS_TIME: Final = (
    Invariant(
        id="NoneActsAfterItsTime",
        broken="seconds > tolerance",
        detail="controller {controller_id} of epoch {record.controller_epoch} changed this {CAST(seconds AS BIGINT)} "
        "seconds after controller {next.controller_id} of epoch {next.record.controller_epoch} had begun: either their "
        "clocks differ by that much, or a controller that was replaced still acts",
        evidence=("next.record",),
    ),
)

MEMORY: Final = (
    Invariant(
        id="HistoryIsTheState",
        broken="folded_checksum <> checksum",
        detail="what was recorded since the snapshot before comes to another state (checksum {folded_checksum}) than "
        "the one that the controller had ({checksum}): it changed something that it did not record, or the other way round",
    ),
    Invariant(
        id="SnapshotIsTheState",
        broken="snapshot_checksum <> checksum",
        detail="the {entries} entries of a snapshot have another checksum ({snapshot_checksum}) than it says ({checksum})",
    ),
)

_NO_PARTITION: Final = ("CAST(NULL AS STRING) AS topic", "CAST(NULL AS INT) AS partition")


def second_controllers(events: DataFrame, recorded: DataFrame) -> DataFrame:
    """Each further controller of an epoch, at its first record. -1: somebody who looked on did not know who it was.

    `recorded`: what all journals have recorded, of which that of controllers counts though it was not taken."""
    written = events.unionByName(recorded.where(f.col("origin") == CONTROLLER))
    firsts = (
        written.where("controller_id >= 0")
        .withColumn("record", f.expr(RECORD))
        .groupBy("cluster_id", "controller_epoch", "controller_id")
        .agg(f.min("record").alias("record"), f.min_by("inferred", "record").alias("inferred"))
    )
    of_the_epoch = Window.partitionBy("cluster_id", "controller_epoch").orderBy("record")
    rows = firsts.withColumns(
        {
            "other_id": f.first("controller_id").over(of_the_epoch),
            "other_record": f.first("record").over(of_the_epoch),
        }
    )
    return violations(rows.selectExpr("*", *_NO_PARTITION), ONE_IN_AN_EPOCH)


def late_changes(
    events: DataFrame, known_spans: DataFrame, *, tolerance_seconds: int = CLOCK_TOLERANCE_SECONDS
) -> DataFrame:
    """The last change of each epoch that is later than the beginning of a later epoch, by the clocks of the two, where both
    are believed: what is known to be a wrong clock's says nothing.

    Changes are those that a controller writes: leadership and assignments. That it sees others act, or notices late that
    it was replaced, is no violation."""
    is_change = f.expr("kind IN ('leadership', 'assignment') AND NOT snapshot")
    epochs = (
        events.withColumn("record", f.expr(RECORD))
        .groupBy("cluster_id", "controller_epoch")
        .agg(
            f.min_by(f.struct("controller_id", "record"), "seq").alias("first"),
            f.max_by(
                f.when(is_change, f.struct("controller_id", "record", "topic", "partition", "inferred")),
                f.when(is_change, f.struct("event_time", "seq")),
            ).alias("last"),
        )
    )
    epochs = _by_believed_clocks(epochs, known_spans)
    later = (
        Window.partitionBy("cluster_id").orderBy(f.desc("controller_epoch")).rowsBetween(Window.unboundedPreceding, -1)
    )
    rows = (
        epochs.withColumn("next", f.min_by("first", "first.record.event_time").over(later))
        .where("last IS NOT NULL AND next IS NOT NULL")
        .selectExpr(
            "cluster_id", "last.*", "next", f"{tolerance_seconds} AS tolerance",
            "(unix_micros(last.record.event_time) - unix_micros(next.record.event_time)) / 1e6 AS seconds",
        )
    )  # fmt: skip
    return violations(rows, NONE_AFTER_ITS_TIME)


def _by_believed_clocks(epochs: DataFrame, known_spans: DataFrame) -> DataFrame:
    """With neither the `first` of an epoch in which no clock is believed, nor a `last` of a time in which none is."""
    doubted = known_spans.groupBy("cluster_id", "controller_epoch").agg(f.max("has_time").alias("is_believed"))
    doubted = f.broadcast(doubted.where("NOT is_believed"))
    rows = epochs.join(doubted, ["cluster_id", "controller_epoch"], "left")
    rows = rows.withColumn("first", f.when(f.col("is_believed").isNull(), f.col("first")))
    timeless = f.broadcast(known_spans.where("NOT has_time").alias("span"))
    is_within = f.expr(
        "epochs.cluster_id = span.cluster_id AND epochs.controller_epoch = span.controller_epoch "
        "AND last.record.seq BETWEEN span.first_seq AND span.last_seq"
    )
    return rows.alias("epochs").join(timeless, is_within, "left_anti")


def unproven_histories(proofs: DataFrame) -> DataFrame:
    """Snapshots to whose state the history before them does not come."""
    record = RECORD.replace("'source', source", "'source', CAST(NULL AS STRING)").replace(
        "'kind', kind", "'kind', 'snapshot_ended'"
    )
    rows = proofs.selectExpr("*", f"{record} AS record", "false AS inferred", *_NO_PARTITION)
    return violations(rows, MEMORY)

"""Invariants of controllers: one for each epoch, none acts after its successor began, and each records its true
state."""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from kontroller.history.audit.invariants import RECORD, Invariant, violations
from kontroller.history.transforms.lines import CONTROLLER

CLOCK_TOLERANCE_SECONDS: Final = 60
"""The difference between the clocks of two controllers that is not suspicious."""

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
        detail="the records since the previous snapshot result in another state (checksum {folded_checksum}) than "
        "the controller's own ({checksum}): it did not record a change, or did not make one that it recorded",
    ),
    Invariant(
        id="SnapshotIsTheState",
        broken="snapshot_checksum <> checksum",
        detail="the {entries} entries of a snapshot have another checksum ({snapshot_checksum}) than it says ({checksum})",
    ),
)

_NO_PARTITION: Final = ("CAST(NULL AS STRING) AS topic", "CAST(NULL AS INT) AS partition")


def find_second_controllers(events: DataFrame, recorded: DataFrame) -> DataFrame:
    """Return each further controller of an epoch, at its first record. Unknown controllers of recorders (-1) are
    ignored.

    `recorded`: the records of all journals. Those of controllers count even if their journal was not used."""
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


def find_late_changes(
    events: DataFrame, known_spans: DataFrame, *, tolerance_seconds: int = CLOCK_TOLERANCE_SECONDS
) -> DataFrame:
    """Return the last change of each epoch that is later than the beginning of a later epoch, by trusted clocks of
    both.

    Changes are the records that a controller writes: leadership and assignments. Seeing others act, or noticing its
    replacement late, is no violation."""
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
    epochs = _drop_untrusted_times(epochs, known_spans)
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


def _drop_untrusted_times(epochs: DataFrame, known_spans: DataFrame) -> DataFrame:
    """Clear `first` of epochs without a trusted clock, and drop epochs whose `last` change has no trusted time."""
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


def find_unproven_histories(proofs: DataFrame) -> DataFrame:
    """Return the snapshots whose state differs from the state of the history before them."""
    record = RECORD.replace("'source', source", "'source', CAST(NULL AS STRING)").replace(
        "'kind', kind", "'kind', 'snapshot_ended'"
    )
    rows = proofs.selectExpr("*", f"{record} AS record", "false AS inferred", *_NO_PARTITION)
    return violations(rows, MEMORY)

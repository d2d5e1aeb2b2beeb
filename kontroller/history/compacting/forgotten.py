"""The place at which a history begins after older records are forgotten: a snapshot, as for any history.

The rest is then the same as if nobody had written before. Order, and not the timestamp, places a record: a timestamp of
1970 amid today's records is of today. So everything before a snapshot is forgotten: the last one taken before the
limit. The known spans around a snapshot bound its time (`known_spans`).
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from controller_core.journal.changes import Kind
from kontroller.history.transforms.continuity.neighbours import EPOCH


def find_beginnings(
    raw: DataFrame, proofs: DataFrame, spans: DataFrame, told_by_one: DataFrame, days: int
) -> DataFrame:
    """Return the first record that each cluster keeps: `cluster_id`, `first_epoch`, `first_seq`, and its time `before`.

    It is at least so many days before the end of the known time. A cluster that forgets nothing has no row."""
    sound = proofs.where("snapshot_checksum = checksum").selectExpr(
        *EPOCH, "seq - entries - 1 as seq", "seq as ended_seq", "event_time"
    )
    starts = raw.where(f"kind = '{Kind.SNAPSHOT_STARTED}' and left_out is null").select(*EPOCH, "seq")
    whole = sound.join(starts, [*EPOCH, "seq"], "left_semi").join(told_by_one, [*EPOCH], "left_semi")
    end = f.max(f.when(f.col("has_time"), f.col("ended"))).over(Window.partitionBy("cluster_id"))
    around = (
        spans.withColumn("end", end)
        .where("has_time")
        .select(*EPOCH, f.col("first_seq").alias("span_first_seq"), "last_seq", "began", "ended", "end")
    )
    placed = whole.join(f.broadcast(around), [*EPOCH]).where("ended_seq between span_first_seq and last_seq")
    placed = placed.withColumn("at", f.expr("greatest(began, least(event_time, ended))"))
    old = placed.where(f"at <= end - interval {days} days")
    last = old.groupBy("cluster_id").agg(
        f.max_by(f.struct("controller_epoch", "seq", "at"), f.struct("controller_epoch", "seq")).alias("it")
    )
    return last.selectExpr("cluster_id", "it.controller_epoch as first_epoch", "it.seq as first_seq", "it.at as before")


def mark_forgotten(rows: DataFrame, beginnings: DataFrame) -> DataFrame:
    """Add a column `is_forgotten`: True if the row is before the beginning of its cluster, `of_cluster`.

    Rows without a place in an epoch are compared by time."""
    first = beginnings.withColumnRenamed("cluster_id", "of_cluster")
    found = rows.join(f.broadcast(first), "of_cluster", "left")
    by_place = "controller_epoch < first_epoch or controller_epoch = first_epoch and seq < first_seq"
    by_time = "coalesce(event_time < before, false)"
    is_old = f"first_seq is not null and if(controller_epoch is null or seq is null, {by_time}, {by_place})"
    return found.selectExpr(*rows.columns, f"{is_old} as is_forgotten")

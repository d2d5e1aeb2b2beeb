"""Where a history is to begin when what is older is forgotten: at a snapshot, as any history does.

So what is left is what would be there had nobody written before. Records have no place in time but by their order: a stamp
of 1970 in the middle of today is today's. What is older than a time is what comes before the last snapshot that was taken
before it, and a snapshot's time is bounded by what is known around it (`known_spans`).
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from controller_core.journal.changes import Kind
from kontroller.history.transforms.continuity.neighbours import EPOCH


def beginnings(raw: DataFrame, proofs: DataFrame, spans: DataFrame, told_by_one: DataFrame, days: int) -> DataFrame:
    """The first record that each cluster keeps: `cluster_id`, `first_epoch`, `first_seq`; and `before`, when that was.

    So many days before the end of what is known of it, or more. No row for a cluster of which nothing is forgotten."""
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


def is_forgotten(rows: DataFrame, beginnings: DataFrame) -> DataFrame:
    """Rows with a column `is_forgotten`: whether they are of before the beginning of their cluster, `of_cluster`. What has
    no place in an epoch goes by its time."""
    first = beginnings.withColumnRenamed("cluster_id", "of_cluster")
    found = rows.join(f.broadcast(first), "of_cluster", "left")
    by_place = "controller_epoch < first_epoch or controller_epoch = first_epoch and seq < first_seq"
    by_time = "coalesce(event_time < before, false)"
    is_old = f"first_seq is not null and if(controller_epoch is null or seq is null, {by_time}, {by_place})"
    return found.selectExpr(*rows.columns, f"{is_old} as is_forgotten")

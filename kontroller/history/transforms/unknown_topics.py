"""Finds records of partitions whose topic is not in the first snapshot of a known span, nor in a later record."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from controller_core.journal.changes import Kind
from kontroller.history.schemas import FINDINGS
from kontroller.history.transforms.intervals import place_records
from kontroller.history.transforms.lines import LOGS

_OF_PARTITIONS: Final = (Kind.LEADERSHIP, Kind.ASSIGNMENT)


def unknown_topics(events: DataFrame, spans: DataFrame) -> DataFrame:
    """Return findings `unknown_topic`, one for each topic and chain of known spans."""
    of_partitions = f"kind in ({', '.join(repr(str(kind)) for kind in _OF_PARTITIONS)})"
    spans = spans.where(f"origin <> '{LOGS}'")  # logs have no snapshots that would name the topics
    rows = place_records(events.where(f"kind = '{Kind.TOPIC}' or {of_partitions}"), spans)
    topics = rows.groupBy("cluster_id", "chain", "topic").agg(
        f.max(f.col("kind") == Kind.TOPIC.value).alias("is_known"),
        f.count_if(f.expr(of_partitions)).alias("count"),
        f.min("controller_epoch").alias("controller_epoch"),
        f.min("seq").alias("seq"),
        f.min("event_time").alias("event_time"),
        f.min("source").alias("source"),
    )
    detail = "concat('no record says that the topic ', topic, ' was created: its state is shown, but cannot be judged')"
    unknown = topics.where("not is_known").selectExpr(
        "*", "'unknown_topic' as problem", "bigint(null) as line", f"{detail} as detail"
    )
    return unknown.select(*FINDINGS.schema.fieldNames())

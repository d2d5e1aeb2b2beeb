"""Invariants of topics: a topic keeps its id while it exists, because brokers identify its logs by it."""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from kontroller.history.audit.invariants import RECORD, Invariant, violations

INVARIANTS: Final = (
    Invariant(
        id="TopicKeepsItsId",
        broken="topic_id <> id_was AND czxid = czxid_was",
        detail="the id of the topic changed from {id_was} to {topic_id}, though it is the same topic (czxid {czxid}): "
        "brokers refuse to serve it, as their logs are of the former id",
        evidence=("record_was",),
    ),
)


def find_topic_violations(known_events: DataFrame) -> DataFrame:
    """Return topics whose id changed. A topic without an id may get one."""
    of_the_topic = Window.partitionBy("cluster_id", "topic").orderBy("controller_epoch", "seq")
    rows = (
        known_events.where("kind = 'topic' AND topic_id IS NOT NULL")
        .withColumn("record", f.expr(RECORD))
        .withColumns(
            {
                "id_was": f.lag("topic_id").over(of_the_topic),
                "czxid_was": f.lag("czxid").over(of_the_topic),
                "record_was": f.lag("record").over(of_the_topic),
            }
        )
    )
    return violations(rows, INVARIANTS)

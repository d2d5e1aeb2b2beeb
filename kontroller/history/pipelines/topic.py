"""The journal's topic, batch after batch, into a history that is kept.

A batch may run twice, when Spark was stopped between its end and the record of it, and a line may be in the topic twice,
also hours apart. So a batch is taken in as a folder of segments is, into the same tables: whatever comes again changes
nothing. Spark's own dropping of duplicates needs a watermark, which would drop the lines of clusters that are behind.
"""

import hashlib
from collections.abc import Mapping
from typing import Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from kontroller.history.generations.errors import StoreError
from kontroller.history.kept_history import KeptHistory
from kontroller.history.sources import kafka_topic

_ANSWER_SOON: Final = {"kafka.default.api.timeout.ms": "30000", "fetchOffset.numRetries": "1"}
"""Somebody waits for a command; by itself Spark takes five minutes to say that no broker answers, which suits a stream
that goes on."""
_ADVICE: Final = {
    "waiting for a node assignment": "no broker answered: are they up, and reachable from here under this address?",
    "UnknownTopicOrPartition": "there is no such topic: give the one that controllers write their journals to",
}
"""What to say where Kafka's client says this."""


class TopicUnreadable(Exception):
    """What is new in a topic could not be read; the message says what to do."""


def ingest_topic(
    kept: KeptHistory,
    topic: str,
    bootstrap_servers: str,
    options: Mapping[str, str] | None = None,
    *,
    most_at_once: int = kafka_topic.MOST_AT_ONCE,
) -> None:
    """Takes what is new in the topic into the history, and returns; `KeptHistory.fold` makes the layers of it.

    How far it came is noted beside the tables (`checkpoint_of`); without that note all is read again, and changes nothing.
    One call at a time for a history. Raises `NoConnector`, and `TopicUnreadable` where the brokers are out of reach or
    messages were deleted before they were read.
    """
    spark, checkpoint = kept.store.spark, checkpoint_of(kept, topic, bootstrap_servers)
    options = _ANSWER_SOON | dict(options or {})
    kept.steps.console.print(f"Looking for what is new in topic {topic} of {bootstrap_servers} ...", soft_wrap=True)
    try:
        ingest(
            kept, kafka_topic.stream(spark, topic, bootstrap_servers, options, most_at_once=most_at_once), checkpoint
        )
    except StreamingQueryException as error:
        why = _reason(error)
        told = next((advice for sign, advice in _ADVICE.items() if sign in why), None) or (
            f"{why}. If the brokers are there, the topic was made anew, or messages were deleted before they were taken "
            f"in: remove {checkpoint} to read from the first message that is left"
        )
        raise TopicUnreadable(f"topic {topic} of {bootstrap_servers} could not be read: {told}") from error


def checkpoint_of(kept: KeptHistory, topic: str, bootstrap_servers: str) -> str:
    """Where it is recorded how far a topic was read."""
    where = hashlib.sha256(bootstrap_servers.encode()).hexdigest()[:12]
    return f"{kept.location}/checkpoints/{topic}-{where}"


def _reason(error: StreamingQueryException) -> str:
    """Why a query ended, without its number."""
    first = str(error).strip().partition("\n")[0]
    return first.rpartition("terminated with exception: ")[2].partition(" SQLSTATE")[0].rstrip(".")


def ingest(kept: KeptHistory, lines: DataFrame, checkpoint: str) -> None:
    """Takes what is new in a stream of lines into the history, as `ingest_topic` does. Raises `StreamingQueryException`
    and `StoreError`."""
    failures: list[StoreError] = []

    def take_in(batch: DataFrame, _: int) -> None:
        try:
            kept.take_in_lines(batch)
        except StoreError as error:
            failures.append(error)
            raise

    query = lines.writeStream.foreachBatch(take_in).option("checkpointLocation", checkpoint)
    try:
        query.trigger(availableNow=True).start().awaitTermination()
    except StreamingQueryException as error:
        if failures:  # of which Spark would only say that there was one
            raise failures[0] from error
        raise

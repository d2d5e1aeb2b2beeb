"""Ingests the journal's topic in batches into a kept history.

A batch may run twice if Spark was stopped between its end and the record of that, and the topic may have a line twice,
even hours apart. So a batch is ingested like a folder of segments, into the same tables, which is idempotent. Spark's
own deduplication needs a watermark, which would drop the lines of clusters that lag behind.
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
"""A user waits for the command. By default Spark reports unreachable brokers only after five minutes, which suits a
stream."""
_ADVICE: Final = {
    "waiting for a node assignment": "no broker answered: are they up, and reachable from here under this address?",
    "UnknownTopicOrPartition": "there is no such topic: give the one that controllers write their journals to",
}
"""Advice by a part of the Kafka client's message."""


class TopicUnreadable(Exception):
    """The new part of a topic could not be read. The message says what to do."""


def ingest_topic(
    kept: KeptHistory,
    topic: str,
    bootstrap_servers: str,
    options: Mapping[str, str] | None = None,
) -> None:
    """Ingest the new part of the topic into the history, and return. `KeptHistory.fold` makes the layers of it.

    The progress is recorded beside the tables (`checkpoint_of`); without it all is read again, which changes nothing.
    Only one call at a time per history, also where it has no lock, because Spark writes the progress without a condition.
    Raises `NoConnector`, and `TopicUnreadable` if the brokers are unreachable or messages were deleted before they were
    read.
    """
    spark, checkpoint = kept.store.spark, checkpoint_of(kept, topic, bootstrap_servers)
    options = _ANSWER_SOON | dict(options or {})
    kept.steps.console.print(f"Reading new records of topic {topic} of {bootstrap_servers} ...", soft_wrap=True)
    try:
        ingest(kept, kafka_topic.stream(spark, topic, bootstrap_servers, options), checkpoint)
    except StreamingQueryException as error:
        why = _reason(error)
        told = next((advice for sign, advice in _ADVICE.items() if sign in why), None) or (
            f"{why}. If the brokers are up, the topic was created again, or messages were deleted before they were "
            f"read: remove {checkpoint} to read from the first remaining message"
        )
        raise TopicUnreadable(f"topic {topic} of {bootstrap_servers} could not be read: {told}") from error


def checkpoint_of(kept: KeptHistory, topic: str, bootstrap_servers: str) -> str:
    """Return the folder that records the progress in a topic."""
    where = hashlib.sha256(bootstrap_servers.encode()).hexdigest()[:12]
    return f"{kept.location}/checkpoints/{topic}-{where}"


def _reason(error: StreamingQueryException) -> str:
    """Return the reason of a query's end without its number."""
    first = str(error).strip().partition("\n")[0]
    return first.rpartition("terminated with exception: ")[2].partition(" SQLSTATE")[0].rstrip(".")


def ingest(kept: KeptHistory, lines: DataFrame, checkpoint: str) -> None:
    """Ingest the new part of a stream of lines into the history, as `ingest_topic` does.

    Raises `StreamingQueryException` and `StoreError`."""
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
        if failures:  # Spark's own error would not show the reason
            raise failures[0] from error
        raise

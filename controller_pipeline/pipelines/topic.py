"""The journal's topic, batch after batch: into the store of events, and into alarms.

A batch may run twice, when Spark was stopped between its end and the note of it, and a line may be in the topic twice, also
hours apart. So a batch is merged with the days that it touches, and those are replaced: whatever comes again is there once.
Spark's own dropping of duplicates needs a watermark, which would drop the lines of clusters that are behind.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from controller_pipeline.alarms.stream import raise_alarms, write_alarms
from controller_pipeline.schemas import EVENTS, FINDINGS
from controller_pipeline.sources import kafka_topic
from controller_pipeline.store import Store
from controller_pipeline.transforms import journals
from controller_pipeline.transforms import lines as journal_lines


def ingest_topic(
    store: Store,
    topic: str,
    bootstrap_servers: str,
    checkpoint: str,
    options: Mapping[str, str] | None = None,
    *,
    most_at_once: int = 500_000,
) -> None:
    """Adds what is new in the topic to the store's `events` and `findings`, each once, and returns.

    `checkpoint` is the folder that says how far it came before; without it all is read again, which changes nothing. One
    call at a time for a store. Raises `NoConnector`, and `pyspark.errors.StreamingQueryException` where the brokers are out
    of reach or messages were deleted before they were read.
    """
    lines = kafka_topic.stream(store.spark, topic, bootstrap_servers, options, most_at_once=most_at_once)
    query = lines.writeStream.foreachBatch(_merge_into(store)).option("checkpointLocation", checkpoint)
    query.trigger(availableNow=True).start().awaitTermination()


def watch_topic(
    store: Store,
    topic: str,
    bootstrap_servers: str,
    location: str,
    checkpoint: str,
    options: Mapping[str, str] | None = None,
    *,
    every_seconds: float | None = 5,
    **rules: Any,
) -> StreamingQuery:
    """Starts to write alarms on what comes into the topic; `rules` are those of `raise_alarms`, the rest is as in
    `write_alarms` and `ingest_topic`."""
    lines = kafka_topic.stream(store.spark, topic, bootstrap_servers, options)
    return write_alarms(raise_alarms(events_of(lines), **rules), location, checkpoint, every_seconds=every_seconds)


def events_of(lines: DataFrame) -> DataFrame:
    """The events among lines, also of a stream: as often as they come, and without what only whole journals tell."""
    checked = journal_lines.checked(lines)
    return checked.where("problem IS NULL").select(*EVENTS.schema.fieldNames())


def merge(store: Store, lines: DataFrame) -> None:
    """Adds lines to the store's `events` and `findings`; what is there already changes nothing."""
    found, unreadable = journal_lines.read(lines)
    day = f.to_date("event_time")
    days = [row.day for row in found.select(day.alias("day")).distinct().collect()]
    if days:
        # The range is what the files of other days are skipped by.
        kept = store.read_if_kept(EVENTS).where(f.col("event_time") >= f.lit(min(days))).where(day.isin(days))
        events, repeated = journals.once(kept.unionByName(found))
        # Computed before anything is written: it reads the files that are replaced.
        unreadable = unreadable.unionByName(repeated).localCheckpoint()
        store.write_days(EVENTS, events)
    if not unreadable.isEmpty():
        findings = store.read_if_kept(FINDINGS).unionByName(unreadable).dropDuplicates(list(FINDINGS.order))
        store.write(FINDINGS, findings.localCheckpoint())


def _merge_into(store: Store) -> Callable[[DataFrame, int], None]:
    def merge_batch(batch: DataFrame, _: int) -> None:
        merge(store, batch)

    return merge_batch

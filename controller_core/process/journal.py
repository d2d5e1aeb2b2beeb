"""The journal of a controller process: its writers, from the settings, and their metrics."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from controller_core.journal.record_encoder import RecordEncoder
from controller_core.journal.segments import SegmentFiles
from controller_core.journal.writer import Counts, JournalWriter
from controller_core.process.settings import ProcessSettings

CLOSE_TIMEOUT_S = 5.0
"""Seconds that an ending process waits for its journal."""


def open_journal(
    directory: Path, settings: ProcessSettings, registry: CollectorRegistry, encoder: RecordEncoder | None = None
) -> JournalWriter:
    """Begin to write a journal. A directory that cannot be written causes a warning and a metric, never an error.

    `encoder`: that of a recorder which continues the present epoch of the journal."""
    files = SegmentFiles(
        directory,
        segment_bytes=settings.journal_segment_bytes,
        retention_bytes=settings.journal_retention_bytes,
        retention_ms=settings.journal_retention_hours * 3_600_000,
    )
    writer = JournalWriter(files, encoder=encoder)
    registry.register(JournalMetrics(writer.counts))
    return writer


def open_topic_journal(
    topic: str, bootstrap: str, registry: CollectorRegistry, security: Callable[[], Mapping[str, str]] = dict
) -> JournalWriter:
    """Begin to write a journal to a topic. `security`: as for `TopicSink`.

    Raises `MissingLibrary`. A topic that cannot be reached causes a warning."""
    try:
        from controller_core.journal.topic import TopicSink
    except ImportError as error:
        raise MissingLibrary(
            "--journal-topic needs confluent-kafka: in a checkout of Kontroller, pip install '.[journal-topic]'"
        ) from error
    writer = JournalWriter(TopicSink(topic, bootstrap, security=security))
    registry.register(JournalMetrics(writer.counts, TOPIC_PREFIX))
    return writer


async def close_journals(writers: Iterable[JournalWriter]) -> None:
    """Flush and close the journals, except for what a disk or a topic does not accept in time."""
    await asyncio.gather(*(asyncio.to_thread(writer.close, CLOSE_TIMEOUT_S) for writer in writers))


class MissingLibrary(Exception):
    """A setting needs a library that is not installed. The message names it."""


TOPIC_PREFIX: Final = "kontroller_journal_topic"
"""The beginning of the metrics' names of the journal in a topic."""


class JournalMetrics(Collector):
    """Metrics of the records of a journal."""

    def __init__(self, counts: Counts, prefix: str = "kontroller_journal") -> None:
        self._counts = counts
        self._prefix = prefix

    def collect(self) -> Iterator[Metric]:
        counts = self._counts
        for kind, name, documentation, value in (
            (CounterMetricFamily, "records_written", "Records written to the journal", counts.written),
            (CounterMetricFamily, "bytes_written", "Bytes written to the journal", counts.written_bytes),
            (CounterMetricFamily, "records_dropped",
             "Records that found the journal's buffer full, or are too large for it", counts.dropped),
            (CounterMetricFamily, "gaps", "Gaps that such records left in the journal", counts.gaps),
            (CounterMetricFamily, "write_errors", "Writes of the journal that failed", counts.errors),
            (GaugeMetricFamily, "failing", "1 while the journal cannot be written", int(counts.is_failing)),
            (GaugeMetricFamily, "last_write_error_timestamp_seconds",
             "Time of the last failed write of the journal; 0 if none has failed", counts.last_error_s),
        ):  # fmt: skip
            yield kind(f"{self._prefix}_{name}", documentation, value=value)

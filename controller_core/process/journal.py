"""The journal of a controller process: from its settings to a writer, and the metrics of that writer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from controller_core.journal.segments import SegmentFiles
from controller_core.journal.writer import Counts, JournalWriter

CLOSE_TIMEOUT_S = 5.0
"""How long a process that ends waits for its journal."""


class JournalSettings(Protocol):
    """What is set about a journal."""

    @property
    def journal_segment_bytes(self) -> int: ...

    @property
    def journal_retention_bytes(self) -> int: ...

    @property
    def journal_retention_hours(self) -> int: ...


def open_journal(directory: Path, settings: JournalSettings, registry: CollectorRegistry) -> JournalWriter:
    """Begins to write a journal. A directory that cannot be written is a warning and a metric, never an error."""
    files = SegmentFiles(
        directory,
        segment_bytes=settings.journal_segment_bytes,
        retention_bytes=settings.journal_retention_bytes,
        retention_ms=settings.journal_retention_hours * 3_600_000,
    )
    writer = JournalWriter(files)
    registry.register(JournalMetrics(writer.counts))
    return writer


class JournalMetrics(Collector):
    """What became of the records of a journal."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        counts = self._counts
        yield _counter("records_written", "Records written to the journal", counts.written)
        yield _counter("bytes_written", "Bytes written to the journal", counts.written_bytes)
        yield _counter("records_dropped", "Records that found the journal's buffer full", counts.dropped)
        yield _counter("gaps", "Gaps that such records left in the journal", counts.gaps)
        yield _counter("write_errors", "Writes of the journal that failed", counts.errors)
        yield GaugeMetricFamily(
            "kontroller_journal_failing", "1 while the journal cannot be written", value=int(counts.is_failing)
        )
        yield GaugeMetricFamily(
            "kontroller_journal_last_write_error_timestamp_seconds",
            "When a write of the journal failed last; 0 if none has",
            value=counts.last_error_s,
        )


def _counter(name: str, documentation: str, value: float) -> Metric:
    return CounterMetricFamily(f"kontroller_journal_{name}", documentation, value=value)

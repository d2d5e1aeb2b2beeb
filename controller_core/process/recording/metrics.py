"""How well a recorder sees."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from controller_core.recorder.metadata_log.looking import MetadataLogLooker
from controller_core.recorder.polled.looking import PolledLooker
from controller_core.recorder.recorder import Recorder


class RecorderMetrics(Collector):
    """How well a recorder sees."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def collect(self) -> Iterator[Metric]:
        recorder, seen, role = (
            self._recorder,
            self._recorder.observed_journal.seen,
            self._recorder.observed_journal.role,
        )
        yield _counter("looks", "Looks at the cluster", recorder.looks)
        yield _counter("reads", "What was read: znodes, records of a log, or answers", recorder.looker.reads)
        yield _counter(
            "partition_versions_missed",
            "States of partitions that were written again before they were seen",
            seen.versions_missed,
        )
        yield _counter(
            "unobserved_changes", "Changes that nobody saw when they happened, but only later", seen.unobserved
        )
        yield GaugeMetricFamily(
            "kontroller_recorder_last_look_timestamp_seconds",
            "When the cluster was looked at last; 0 if it was not yet",
            value=recorder.last_look_s,
        )
        yield GaugeMetricFamily(
            "kontroller_recorder_controller_epoch",
            "The controller epoch that is being recorded; -1 while there is no controller",
            value=-1 if role is None else role.epoch,
        )
        yield GaugeMetricFamily(
            "kontroller_recorder_polls",
            "1 where brokers are asked again and again, and versions may be missed, as the metadata log cannot be followed",
            value=isinstance(recorder.looker, PolledLooker),
        )
        if isinstance(recorder.looker, MetadataLogLooker):
            yield GaugeMetricFamily(
                "kontroller_recorder_log_offset",
                "The offset of the metadata log up to which all is recorded",
                value=recorder.looker.position,
            )
            yield _counter(
                "unknown_records",
                "Records of the metadata log of kinds that only later releases of Kontroller know",
                recorder.looker.events.records_unknown,
            )


def _counter(name: str, documentation: str, value: float) -> Metric:
    return CounterMetricFamily(f"kontroller_recorder_{name}", documentation, value=value)

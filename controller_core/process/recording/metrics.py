"""Metrics of a recorder."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from controller_core.recorder.metadata_log.looking import MetadataLogLooker
from controller_core.recorder.polled.looking import PolledLooker
from controller_core.recorder.recorder import Recorder


class RecorderMetrics(Collector):
    """Metrics that tell how completely a recorder sees the cluster."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def collect(self) -> Iterator[Metric]:
        recorder, seen, role = (
            self._recorder,
            self._recorder.observed_journal.seen,
            self._recorder.observed_journal.role,
        )
        yield _make_counter("looks", "Looks at the cluster", recorder.looks)
        yield _make_counter("reads", "Znodes, records of a log, or answers that were read", recorder.looker.reads)
        yield _make_counter(
            "partition_versions_missed",
            "States of partitions that were overwritten before they were seen",
            seen.versions_missed,
        )
        yield _make_counter(
            "unobserved_changes", "Changes that were seen only some time after they happened", seen.unobserved
        )
        yield GaugeMetricFamily(
            "kontroller_recorder_last_look_timestamp_seconds",
            "Time of the last look at the cluster; 0 before the first one",
            value=recorder.last_look_s,
        )
        yield GaugeMetricFamily(
            "kontroller_recorder_controller_epoch",
            "The recorded controller epoch; -1 while there is no controller",
            value=-1 if role is None else role.epoch,
        )
        yield GaugeMetricFamily(
            "kontroller_recorder_polls",
            "1 if brokers are polled and versions may be missed, because the metadata log cannot be followed",
            value=isinstance(recorder.looker, PolledLooker),
        )
        if isinstance(recorder.looker, MetadataLogLooker):
            yield GaugeMetricFamily(
                "kontroller_recorder_log_offset",
                "The offset of the metadata log up to which everything is recorded",
                value=recorder.looker.position,
            )
            yield _make_counter(
                "unknown_records",
                "Records of the metadata log of unknown kinds",
                recorder.looker.events.records_unknown,
            )


def _make_counter(name: str, documentation: str, value: float) -> Metric:
    return CounterMetricFamily(f"kontroller_recorder_{name}", documentation, value=value)

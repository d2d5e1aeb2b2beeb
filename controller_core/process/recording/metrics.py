"""Metrics of a recorder."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from controller_core.recorder.metadata_log.looking import MetadataLogLooker
from controller_core.recorder.polled.looking import PolledLooker
from controller_core.recorder.recorder import Recorder

_COUNTER, _GAUGE = CounterMetricFamily, GaugeMetricFamily


class RecorderMetrics(Collector):
    """Metrics of the completeness of a recorder's view of the cluster."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def collect(self) -> Iterator[Metric]:
        recorder, looker = self._recorder, self._recorder.looker
        seen, role = recorder.observed_journal.seen, recorder.observed_journal.role
        rows: list[tuple[type[CounterMetricFamily | GaugeMetricFamily], str, str, float]] = [
            (_COUNTER, "looks", "Reads of the changes of the cluster", recorder.looks),
            (_COUNTER, "reads", "Znodes, records of a log, or answers that were read", looker.reads),
            (_COUNTER, "partition_versions_missed",
             "States of partitions that were overwritten before they were seen", seen.versions_missed),
            (_COUNTER, "unobserved_changes",
             "Changes that were seen only some time after they happened", seen.unobserved),
            (_GAUGE, "last_look_timestamp_seconds",
             "Time of the last read of the cluster; 0 before the first one", recorder.last_look_s),
            (_GAUGE, "controller_epoch", "The recorded controller epoch; -1 while there is no controller",
             -1 if role is None else role.epoch),
            (_GAUGE, "polls",
             "1 if brokers are polled and versions may be missed, because the metadata log cannot be followed",
             isinstance(looker, PolledLooker)),
        ]  # fmt: skip
        if isinstance(looker, MetadataLogLooker):
            rows += [
                (_GAUGE, "log_offset", "The offset of the metadata log up to which everything is recorded",
                 looker.position),
                (_COUNTER, "unknown_records", "Records of the metadata log of unknown kinds",
                 looker.events.records_unknown),
            ]  # fmt: skip
        for kind, name, documentation, value in rows:
            yield kind(f"kontroller_recorder_{name}", documentation, value=value)

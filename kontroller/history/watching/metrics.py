"""Prometheus metrics of a watch: raised alarms, the age of the data, and the health of journals and receivers."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kontroller.history.alarms.records import PROBLEMS
from kontroller.history.watching.board import Board
from kontroller.history.watching.fleet import Fleet

_COUNTER, _GAUGE = CounterMetricFamily, GaugeMetricFamily
_BY_PROBLEM: Final = ("cluster", "problem")
_BY_CLUSTER: Final = ("cluster",)
_BY_JOURNAL: Final = ("journal",)
_BY_RECEIVER: Final = ("receiver",)


class Receiver(Protocol):
    """The counters of a receiver of alarms."""

    name: str
    sent: int
    failures: int
    dropped: int

    @property
    def pending(self) -> int: ...


class WatchMetrics(Collector):
    """The metrics. `readable`: if the last read of each journal succeeded. `monotonic` is the fleet's clock."""

    def __init__(
        self,
        fleet: Fleet,
        board: Board,
        receivers: Sequence[Receiver],
        readable: dict[str, bool],
        monotonic: Callable[[], float],
    ) -> None:
        self._fleet = fleet
        self._board = board
        self._receivers = receivers
        self._readable = readable
        self._monotonic = monotonic

    def collect(self) -> Iterator[Metric]:
        clusters, journals, now_s = self._fleet.clusters, self._fleet.idle, self._monotonic()
        standing = {(cluster, problem): 0 for cluster in clusters for problem in PROBLEMS}
        raised = dict(standing) | self._board.raised
        for key in self._board.standing:
            standing[key.cluster_id, key.problem] = standing.get((key.cluster_id, key.problem), 0) + 1
        stamps_s = {(name,): cluster.time.stamp_us / 1e6 for name, cluster in clusters.items()}
        ages_s = {(name,): now_s - cluster.heard_s for name, cluster in clusters.items()}
        sent, failures, refused, unsent = (
            {(each.name,): getattr(each, name) for each in self._receivers}
            for name in ("sent", "failures", "dropped", "pending")
        )
        readable, at_end, unusable = (
            {(name,): values[name] for name in journals}
            for values in (self._readable, journals, self._fleet.unreadable)
        )
        for kind, name, documentation, labels, values in (
            (_GAUGE, "alarms", "Alarms that are raised and not cleared", _BY_PROBLEM, standing),
            (_COUNTER, "alarms_raised", "Alarms that were raised", _BY_PROBLEM, raised),
            (_GAUGE, "last_record_timestamp_seconds",
             "The event time of a cluster's newest record, by its controller's clock", _BY_CLUSTER, stamps_s),
            (_GAUGE, "last_record_age_seconds",
             "Seconds since a cluster's newest record arrived, by the watch's clock", _BY_CLUSTER, ages_s),
            (_GAUGE, "journal_readable", "1 if the journal can be read", _BY_JOURNAL, readable),
            (_GAUGE, "journal_at_end", "1 if the journal has been read to its end", _BY_JOURNAL, at_end),
            (_COUNTER, "unreadable_lines", "Journal lines that could not be used", _BY_JOURNAL, unusable),
            (_COUNTER, "alarms_sent", "Alarms that a receiver accepted", _BY_RECEIVER, sent),
            (_COUNTER, "alarms_send_failures", "Failed attempts to send alarms", _BY_RECEIVER, failures),
            (_COUNTER, "alarms_refused", "Requests with alarms that a receiver refused permanently", _BY_RECEIVER, refused),
            (_GAUGE, "alarms_unsent", "Alarms that wait for a receiver", _BY_RECEIVER, unsent),
        ):  # fmt: skip
            family = kind(f"kontroller_watch_{name}", documentation, labels=labels)
            for label_values, number in values.items():
                family.add_metric(label_values, float(number))
            yield family

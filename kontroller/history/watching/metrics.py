"""Prometheus metrics of a watch: raised alarms, the age of the data, and the health of journals and receivers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kontroller.history.alarms.records import PROBLEMS
from kontroller.history.watching.board import Board
from kontroller.history.watching.fleet import Fleet

_BY_PROBLEM: Final = ("cluster", "problem")


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
        yield from self._alarms()
        yield from self._clusters()
        yield from self._journals()
        of = self._receivers
        yield _counter("alarms_sent", "Alarms that a receiver accepted", "receiver", ((it.name, it.sent) for it in of))
        yield _counter(
            "alarms_send_failures", "Failed attempts to send alarms", "receiver", ((it.name, it.failures) for it in of)
        )
        yield _counter(
            "alarms_refused",
            "Times that a receiver refused alarms for good",
            "receiver",
            ((it.name, it.dropped) for it in of),
        )
        yield _gauge(
            "alarms_unsent", "Alarms that wait for a receiver", "receiver", ((it.name, it.pending) for it in of)
        )

    def _alarms(self) -> Iterator[Metric]:
        standing = {(cluster, problem): 0 for cluster in self._fleet.clusters for problem in PROBLEMS}
        raised = dict(standing) | self._board.raised
        for key in self._board.standing:
            standing[key.cluster_id, key.problem] = standing.get((key.cluster_id, key.problem), 0) + 1
        now = GaugeMetricFamily("kontroller_watch_alarms", "Alarms that are raised and not cleared", labels=_BY_PROBLEM)
        so_far = CounterMetricFamily("kontroller_watch_alarms_raised", "Alarms that were raised", labels=_BY_PROBLEM)
        for labels, count in standing.items():
            now.add_metric(labels, count)
        for labels, count in raised.items():
            so_far.add_metric(labels, count)
        yield now
        yield so_far

    def _clusters(self) -> Iterator[Metric]:
        clusters, now_s = self._fleet.clusters.items(), self._monotonic()
        yield _gauge(
            "last_record_timestamp_seconds",
            "The event time of a cluster's newest record, by its controller's clock",
            "cluster",
            ((name, cluster.time.stamp_us / 1e6) for name, cluster in clusters),
        )
        yield _gauge(
            "last_record_age_seconds",
            "Seconds since a cluster's newest record came, by the watch's clock",
            "cluster",
            ((name, now_s - cluster.heard_s) for name, cluster in clusters),
        )

    def _journals(self) -> Iterator[Metric]:
        yield _gauge("journal_readable", "1 if the journal can be read", "journal", self._readable.items())
        yield _gauge("journal_at_end", "1 if the journal has been read to its end", "journal", self._fleet.idle.items())
        yield _counter(
            "unreadable_lines", "Journal lines that could not be used", "journal", self._fleet.unreadable.items()
        )


def _gauge(name: str, documentation: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
    family = GaugeMetricFamily(f"kontroller_watch_{name}", documentation, labels=[label])
    for value, number in values:
        family.add_metric([value], float(number))
    return family


def _counter(name: str, documentation: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
    family = CounterMetricFamily(f"kontroller_watch_{name}", documentation, labels=[label])
    for value, number in values:
        family.add_metric([value], float(number))
    return family

"""The operator's metrics, on a registry of its own."""

from collections import Counter as CounterOf
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class Said(NamedTuple):
    """A condition of an object, as a label set."""

    kind: str
    type: str
    status: str
    reason: str


class Unready(NamedTuple):
    """An object that is not Ready, as a label set. Prometheus itself sets `namespace`, to that of the operator."""

    kind: str
    object_namespace: str
    name: str
    status: str
    reason: str


class BrokerLabels(NamedTuple):
    """A broker, as a label set: the KafkaCluster that it belongs to, and its id."""

    object_namespace: str
    name: str
    broker: str


MOST_UNREADY: Final = 1_000
"""As many objects as the metrics name, so that an outage with ten thousand topics does not flood a Prometheus."""


class OperatorMetrics:
    """One operator's metrics.

    Objects are named only while they are not Ready, at most `MOST_UNREADY` of them, as there may be many thousands."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reconciliations = Counter(
            "kontroller_operator_reconciliations_total",
            "Objects that were looked at.",
            ["kind", "result"],
            registry=self.registry,
        )
        self.duration_s = Histogram(
            "kontroller_operator_reconciliation_duration_seconds",
            "How long one look at an object took, with all that was done.",
            ["kind"],
            registry=self.registry,
        )
        self.queue_depth = Gauge(
            "kontroller_operator_queue_depth", "Objects that wait to be looked at.", registry=self.registry
        )
        self.objects = Gauge("kontroller_operator_objects", "Objects that are known.", ["kind"], registry=self.registry)
        self.status_writes = Counter(
            "kontroller_operator_status_writes_total", "Statuses that were written.", ["kind"], registry=self.registry
        )
        self.actions = Counter(
            "kontroller_operator_actions_total",
            "What was done to Kafka clusters and objects.",
            ["action", "outcome"],
            registry=self.registry,
        )
        self.left_behind = Counter(
            "kontroller_operator_left_behind_total",
            "Deleted objects that have left behind what their specs wanted gone.",
            ["kind"],
            registry=self.registry,
        )
        self.leader = Gauge(
            "kontroller_operator_leader",
            "1 where this process is the one that works, 0 where it waits for the lease.",
            registry=self.registry,
        )
        self.observation_lag_s = Histogram(
            "kontroller_operator_observation_lag_seconds",
            "From the first sign of a change in the cluster to the view that shows it.",
            registry=self.registry,
        )
        self.unreachable_clusters = Gauge(
            "kontroller_operator_unreachable_clusters",
            "Clusters whose ZooKeeper is out of reach.",
            registry=self.registry,
        )

    def observe(
        self,
        conditions: Callable[[], CounterOf[Said]],
        unready: Callable[[int], Iterable[Unready]],
        disks: Callable[[], Iterable[tuple[BrokerLabels, int]]],
    ) -> None:
        """Registers the gauges that count conditions and name objects and disks when they are scraped.

        `unready` returns at most so many objects that are not Ready; `disks` the percent that brokers have used."""
        self.registry.register(_Conditions(conditions))
        self.registry.register(_Unready(unready))
        self.registry.register(_Disks(disks))


class _Conditions(Collector):
    def __init__(self, conditions: Callable[[], CounterOf[Said]]) -> None:
        self._conditions = conditions

    def collect(self) -> Iterator[Metric]:
        gauge = GaugeMetricFamily(
            "kontroller_operator_conditions", "Objects by what their conditions say.", labels=Said._fields
        )
        for said, count in self._conditions().items():
            gauge.add_metric(said, count)
        yield gauge


class _Unready(Collector):
    def __init__(self, unready: Callable[[int], Iterable[Unready]]) -> None:
        self._unready = unready

    def collect(self) -> Iterator[Metric]:
        gauge = GaugeMetricFamily(
            "kontroller_operator_object_not_ready",
            f"1 for each object whose condition Ready is not True; stalled ones first, at most {MOST_UNREADY:,}.",
            labels=Unready._fields,
        )
        for each in self._unready(MOST_UNREADY):
            gauge.add_metric(each, 1)
        yield gauge


class _Disks(Collector):
    def __init__(self, disks: Callable[[], Iterable[tuple[BrokerLabels, int]]]) -> None:
        self._disks = disks

    def collect(self) -> Iterator[Metric]:
        gauge = GaugeMetricFamily(
            "kontroller_operator_broker_disk_used_percent",
            "How much of the fullest disk with a log directory a broker has used, as far as it says it.",
            labels=BrokerLabels._fields,
        )
        for labels, percent in self._disks():
            gauge.add_metric(labels, percent)
        yield gauge

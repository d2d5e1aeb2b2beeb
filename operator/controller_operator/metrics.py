"""The operator's metrics, on a registry of its own."""

from collections import Counter as CounterOf
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from controller_core.wire.listener.refusals import Port, Refusals


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
"""Number of objects that the metrics name, so that an outage with ten thousand topics does not flood a Prometheus."""


class OperatorMetrics:
    """One operator's metrics.

    Objects are named only while they are not Ready, at most `MOST_UNREADY` of them, because there may be thousands."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.refusals = Refusals(self.registry, (Port.HTTP,))
        self.reconciliations = Counter(
            "kontroller_operator_reconciliations_total",
            "Reconciliations of objects.",
            ["kind", "result"],
            registry=self.registry,
        )
        self.duration_s = Histogram(
            "kontroller_operator_reconciliation_duration_seconds",
            "Duration of the reconciliation of one object, including its actions.",
            ["kind"],
            registry=self.registry,
        )
        self.queue_depth = Gauge(
            "kontroller_operator_queue_depth", "Objects that wait for reconciliation.", registry=self.registry
        )
        self.objects = Gauge("kontroller_operator_objects", "Known objects.", ["kind"], registry=self.registry)
        self.status_writes = Counter(
            "kontroller_operator_status_writes_total", "Status writes.", ["kind"], registry=self.registry
        )
        self.actions = Counter(
            "kontroller_operator_actions_total",
            "Actions on Kafka clusters and objects.",
            ["action", "outcome"],
            registry=self.registry,
        )
        self.left_behind = Counter(
            "kontroller_operator_left_behind_total",
            "Deleted objects that left topics, moves or throttles behind.",
            ["kind"],
            registry=self.registry,
        )
        self.leader = Gauge(
            "kontroller_operator_leader",
            "1 if this process is the leader, 0 while it waits for the lease.",
            registry=self.registry,
        )
        self.observation_lag_s = Histogram(
            "kontroller_operator_observation_lag_seconds",
            "Seconds from the first notice of a change in the cluster to the view that includes it.",
            registry=self.registry,
        )
        self.unreachable_clusters = Gauge(
            "kontroller_operator_unreachable_clusters",
            "Clusters whose ZooKeeper or brokers are unreachable.",
            registry=self.registry,
        )

    def observe(
        self,
        conditions: Callable[[], CounterOf[Said]],
        unready: Callable[[int], Iterable[Unready]],
        disks: Callable[[], Iterable[tuple[BrokerLabels, int]]],
    ) -> None:
        """Register the gauges that count conditions and name objects and disks at each scrape.

        `unready` returns at most so many objects that are not Ready; `disks` the used percent of brokers' disks."""
        self.registry.register(
            _AtScrape(
                "kontroller_operator_conditions",
                "Objects by the content of their conditions.",
                Said._fields,
                lambda: conditions().items(),
            )
        )
        self.registry.register(
            _AtScrape(
                "kontroller_operator_object_not_ready",
                f"1 for each object whose condition Ready is not True; stalled ones first, at most {MOST_UNREADY:,}.",
                Unready._fields,
                lambda: ((each, 1) for each in unready(MOST_UNREADY)),
            )
        )
        self.registry.register(
            _AtScrape(
                "kontroller_operator_broker_disk_used_percent",
                "Used percent of a broker's fullest disk with a log directory, if the broker reports it.",
                BrokerLabels._fields,
                disks,
            )
        )


@dataclass(frozen=True, eq=False)
class _AtScrape(Collector):
    """A gauge whose label sets and values are read at each scrape."""

    name: str
    help: str
    labels: Sequence[str]
    read: Callable[[], Iterable[tuple[Sequence[str], int]]]

    def collect(self) -> Iterator[Metric]:
        gauge = GaugeMetricFamily(self.name, self.help, labels=self.labels)
        for labels, value in self.read():
            gauge.add_metric(labels, value)
        yield gauge

"""The operator's metrics, on a registry of its own."""

from collections import Counter as CounterOf
from collections.abc import Callable, Iterator
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class Said(NamedTuple):
    """A condition of an object, as a label set."""

    kind: str
    type: str
    status: str
    reason: str


class OperatorMetrics:
    """One operator's metrics. No label is an object's or a topic's name: there may be many thousands."""

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

    def observe(self, conditions: Callable[[], CounterOf[Said]]) -> None:
        """Registers the gauge that counts conditions when it is scraped."""
        self.registry.register(_Conditions(conditions))


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

"""The operator's metrics, on a registry of its own."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


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
        self.observation_lag_s = Histogram(
            "kontroller_operator_observation_lag_seconds",
            "From the first sign of a change in ZooKeeper to the view that shows it.",
            registry=self.registry,
        )
        self.unreachable_clusters = Gauge(
            "kontroller_operator_unreachable_clusters",
            "Clusters whose ZooKeeper is out of reach.",
            registry=self.registry,
        )

"""The metrics of a broker process: its counters, and the state of its replicas at the moment of the scrape.

They are served only if a port is set; by default on loopback, like those of a controller.
"""

from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from controller_core.process.http import read_http_access, serve_metrics
from replica_broker.counters import BrokerCounters
from replica_broker.log.directories import LogDirectories
from replica_broker.membership.node import UNREGISTERED, Node
from replica_broker.process.settings import BrokerProcessSettings
from replica_broker.replicas.replicas import Replicas


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplicaGauges(Collector):
    """Gauges that are computed at each scrape."""

    node: Node
    replicas: Replicas
    directories: LogDirectories

    def collect(self) -> Iterator[Metric]:
        hosted = list(self.replicas.hosted.values())
        led = [partition for partition in hosted if partition.is_leader and not partition.is_offline]
        yield _gauge(
            "kontroller_broker_registered",
            "1 after this process has registered in ZooKeeper, else 0",
            self.node.epoch != UNREGISTERED,
        )
        yield _gauge("kontroller_broker_partitions", "Partitions with a replica on this broker", len(hosted))
        yield _gauge("kontroller_broker_leaders", "Partitions that this broker leads", len(led))
        yield _gauge(
            "kontroller_broker_under_replicated_partitions",
            "Partitions led by this broker with a replica outside of the ISR",
            sum(len(partition.isr) < len(partition.assigned_replicas) for partition in led),
        )
        yield _gauge(
            "kontroller_broker_under_min_isr_partitions",
            "Partitions led by this broker whose ISR is smaller than min.insync.replicas: acks=all is refused",
            sum(self.replicas.is_under_min_isr(partition) for partition in led),
        )
        yield _gauge(
            "kontroller_broker_offline_replicas",
            "Replicas on this broker whose log directory failed",
            sum(partition.is_offline for partition in hosted),
        )
        yield _gauge(
            "kontroller_broker_offline_log_directories",
            "Log directories that failed since the process started",
            len(self.directories.offline_paths),
        )
        log_bytes = GaugeMetricFamily(
            "kontroller_broker_log_bytes", "Size of the logs in a log directory in bytes", labels=["directory"]
        )
        for path, size_bytes in self.directories.sizes_bytes().items():
            log_bytes.add_metric([str(path)], size_bytes)
        yield log_bytes


async def begin_metrics(
    stack: AsyncExitStack, settings: BrokerProcessSettings, counters: BrokerCounters, gauges: ReplicaGauges
) -> None:
    """Serve the metrics until the stack is unwound, if a port is set. Raises `InvalidSettings`, and `OSError` if the
    port is taken."""
    if settings.metrics_port is not None:
        registry, refusals = counters.registry, counters.refusals
        registry.register(gauges)
        access = read_http_access(settings)
        stop = await serve_metrics(
            settings.metrics_host, settings.metrics_port, registry, access=access, refusals=refusals
        )
        stack.push_async_callback(stop)


def _gauge(name: str, says: str, value: float) -> Metric:
    return GaugeMetricFamily(name, says, value=value)

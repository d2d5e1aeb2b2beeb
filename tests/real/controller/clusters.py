"""Six unmodified brokers and our controller, which most tests of the controller share."""

from collections.abc import Collection
from dataclasses import dataclass

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import serve_topic, wait_until_served


@dataclass(frozen=True, slots=True, kw_only=True)
class OurCluster:
    """A Kafka cluster with our controller, and its znodes."""

    kafka: KafkaCluster
    controller: ControllerProcess
    znodes: ClusterZnodes

    @property
    def bootstrap(self) -> str:
        return self.kafka.bootstrap_servers

    def serve_topic(self, topic: str, replicas: list[list[int]], config: dict[str, str] | None = None) -> None:
        """Create a topic and wait until every replica is in sync."""
        serve_topic(self.znodes, topic, replicas, config, brokers=self.kafka.brokers)

    def wait_until_served(self, topic: str, partitions: Collection[int] = (0,)) -> None:
        """Wait until every replica is in sync and its broker has a log."""
        wait_until_served(self.znodes, topic, partitions, brokers=self.kafka.brokers)

    def broker_log(self, broker_id: int) -> str:
        """Return the whole log of a broker."""
        return self.kafka.broker(broker_id).process.log_path.read_text(errors="replace")

    def controller_log(self) -> str:
        """Return the whole log of the controller."""
        return self.controller.process.log_path.read_text(errors="replace")

    def wait_until_no_stray_replicas(self, topic: str, partition: int) -> None:
        """Wait until no broker outside AR has a log of the partition."""
        wait_until(lambda: not self._strays(topic, partition), f"{topic}-{partition} is only where it belongs")

    def _strays(self, topic: str, partition: int) -> list[int]:
        assigned = self.znodes.read_assignment(topic, partition)
        return [
            broker_id
            for broker_id, broker in self.kafka.brokers.items()
            if broker_id not in assigned and (broker.log_folder / f"{topic}-{partition}").exists()
        ]

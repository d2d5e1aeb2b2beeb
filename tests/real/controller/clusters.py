"""Six unmodified brokers, and our controller in charge of them: what most tests of the controller share."""

from dataclasses import dataclass

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.running.processes import wait_until


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
        """Creates a topic and waits until every replica is in sync."""
        self.znodes.create_topic(topic, replicas, config)
        self.wait_until_served(topic, range(len(replicas)))

    def wait_until_served(self, topic: str, partitions: range) -> None:
        """Waits until every replica is in sync and its broker has a log: a new ISR is written before there are logs."""
        wait_until(
            lambda: self.znodes.is_served(topic, list(partitions)) and self._has_logs(topic, partitions),
            f"every replica of {topic} is in sync",
        )

    def _has_logs(self, topic: str, partitions: range) -> bool:
        return all(
            (self.kafka.broker(broker_id).log_folder / f"{topic}-{partition}").exists()
            for partition in partitions
            for broker_id in self.znodes.assigned(topic, partition)
        )

    def wait_until_moved(self, topic: str, partition: int, target: list[int]) -> None:
        wait_until(
            lambda: not self.znodes.has_reassignments() and self.znodes.assigned(topic, partition) == target,
            f"{topic}-{partition} moved to {target}",
        )

    def live_brokers(self) -> set[int]:
        return {int(broker_id) for broker_id in self.znodes.client.get_children("/brokers/ids")}

    def client_exists(self, path: str) -> bool:
        return self.znodes.client.exists(path) is not None

    def broker_log(self, broker_id: int) -> str:
        """All that a broker has logged."""
        return self.kafka.broker(broker_id).process.log_path.read_text(errors="replace")

    def controller_log(self) -> str:
        """All that the controller has logged."""
        return self.controller.process.log_path.read_text(errors="replace")

    def wait_until_logged(self, text: str) -> None:
        wait_until(lambda: text in self.controller_log(), f"the controller logs {text!r}")

    def wait_until_no_stray_replicas(self, topic: str, partition: int) -> None:
        """Waits until no broker outside AR has a log of the partition."""
        wait_until(lambda: not self._strays(topic, partition), f"{topic}-{partition} is only where it belongs")

    def _strays(self, topic: str, partition: int) -> list[int]:
        assigned = self.znodes.assigned(topic, partition)
        return [
            broker_id
            for broker_id, broker in self.kafka.brokers.items()
            if broker_id not in assigned and (broker.log_folder / f"{topic}-{partition}").exists()
        ]

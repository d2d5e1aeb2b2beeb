"""A cluster of two unmodified brokers and one of ours, as its clients and its controller see it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import Broker, KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.python_broker import PythonBroker
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import serve_topic, wait_until_served

STOCK = (1, 2)
OURS = 3
OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedCluster:
    """Brokers 1 and 2 are Kafka's, 3 is ours; the controller is one of the stock brokers, or ours."""

    kafka: KafkaCluster
    ours: PythonBroker
    znodes: ClusterZnodes
    own_controller: ControllerProcess | None

    @property
    def bootstrap(self) -> str:
        return f"{self.kafka.bootstrap_servers},{self.ours.address}"

    def broker(self, broker: int) -> Broker | PythonBroker:
        return self.ours if broker == OURS else self.kafka.broker(broker)

    def start_all(self) -> None:
        """Start all brokers and create the internal topics on the stock ones, whatever the last test left."""
        self.kafka.start()
        if not self.ours.process.is_running:
            self.ours.start()
        for internal in (OFFSETS, TRANSACTIONS):
            # Groups and transactions are left to stock brokers.
            if not self.znodes.partitions(internal):
                self.znodes.create_topic(internal, [[1, 2], [2, 1]] * 2, {"cleanup.policy": "compact"})
            self.wait_until_served(internal)

    def serve_topic(
        self, topic: str, replicas: Sequence[Sequence[int]], config: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic and wait until every replica is in sync."""
        serve_topic(self.znodes, topic, replicas, config)

    def wait_until_served(self, topic: str) -> None:
        wait_until_served(self.znodes, topic, self.znodes.partitions(topic))

    def wait_until_elsewhere(self, topic: str, broker: int) -> None:
        """Wait until a broker leads no partition of a topic, and every partition has a leader."""

        def leads_nothing() -> bool:
            leaders = [self.znodes.leader(topic, number) for number in self.znodes.partitions(topic)]
            return broker not in leaders and min(leaders) >= 0

        wait_until(leads_nothing, f"broker {broker} leads nothing of {topic}")

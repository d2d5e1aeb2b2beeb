"""The demo's first servers: ZooKeeper, six brokers, our controller, and a producer that never stops."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from devcluster.building.java import KAFKA_VERSION
from devcluster.clients.load import AckedProducer
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.demo.stage import Place, Stage
from devcluster.running.processes import wait_until


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The running servers of Kafka, and the demo's view of them."""

    stage: Stage
    folder: RunFolder
    kafka: KafkaCluster
    controller: ControllerProcess
    znodes: ClusterZnodes
    producers: dict[str, AckedProducer] = field(default_factory=dict)
    """The producers, by topic."""
    _running: ExitStack = field(init=False, default_factory=ExitStack)

    def is_served(self) -> bool:
        """Return True if every replica of every topic with a producer is in sync."""
        topics = {topic: list(self.znodes.partitions(topic)) for topic in self.producers}
        return all(self.znodes.is_served(topic, partitions) for topic, partitions in topics.items())

    def place(self, topic: str, partition: int) -> Place:
        """Return the place of a partition according to ZooKeeper."""
        state = self.znodes.state(topic, partition)
        assigned = tuple(sorted(self.znodes.read_assignment(topic, partition)))
        return Place(assigned=assigned, leader=state["leader"], isr=tuple(sorted(state["isr"])))

    def produce(self, topic: str) -> None:
        """Start a producer to a topic, which runs until it or the cluster is stopped."""
        producer = self._running.enter_context(AckedProducer(self.kafka.bootstrap_servers, topic))
        self.producers[topic] = producer
        wait_until(lambda: producer.acknowledged_count > 0, "the first acknowledgement")
        self.stage.say(f"A producer to {topic} with acks=all has started, and will not stop before the end.")

    def controller_log(self) -> str:
        return self.controller.process.log_path.read_text(errors="replace")

    def close(self) -> None:
        """Stop the producers."""
        self._running.close()


@contextmanager
def run_cluster(stage: Stage, folder: RunFolder) -> Iterator[Cluster]:
    """Start the brokers and give our controller the role; ends all of it, even after a failed start or Ctrl-C."""
    with ExitStack() as stack:
        stage.step("Start", f"ZooKeeper and six unmodified Apache Kafka {KAFKA_VERSION} brokers.")
        zookeeper = stack.enter_context(ZooKeeper(folder))
        kafka = stack.enter_context(KafkaCluster(folder, zookeeper, brokers=6))
        znodes = ClusterZnodes(stack.enter_context(zookeeper.client()))
        stage.await_(
            lambda: znodes.controller() is not None,
            "brokers 1 to 6 run, and one of them is the controller",
        )
        stage.step(
            "Our controller takes the role",
            "One transaction bumps the controller epoch and makes /controller ours; Kafka's own resigns.",
        )
        settings = {"default_replication_factor": 3}  # as the brokers have it
        controller = stack.enter_context(ControllerProcess(folder, kafka.zookeeper_connect, settings=settings))
        stage.expect(
            znodes.controller() == controller.controller_id,
            f"/controller names {znodes.controller()}, which no broker is; epoch {znodes.read('/controller_epoch')}",
        )
        cluster = Cluster(stage=stage, folder=folder, kafka=kafka, controller=controller, znodes=znodes)
        stack.callback(cluster.close)
        yield cluster


def stop_broker(cluster: Cluster, topic: str) -> None:
    """Stop the leader of the topic's partition 0 by a controlled shutdown, and start it again."""
    leader = cluster.znodes.leader(topic, 0)
    cluster.stage.step(
        f"Broker {leader} stops in good order",
        "SIGTERM: it asks our controller to take its leaderships away, and only then stops.",
    )
    cluster.kafka.broker(leader).stop()
    cluster.stage.expect(
        cluster.znodes.leader(topic, 0) not in (leader, -1), f"broker {cluster.znodes.leader(topic, 0)} leads now"
    )
    cluster.stage.expect(leader not in cluster.znodes.isr(topic, 0), f"{leader} left the ISR before it went")
    cluster.kafka.broker(leader).start()
    cluster.stage.await_(cluster.is_served, f"{leader} is back in the ISR")


def assignment(replicas: Sequence[Sequence[int]]) -> str:
    """Return replica lists in the format of Kafka's tools, such as `1:2:3,2:3:1`."""
    return ",".join(":".join(map(str, brokers)) for brokers in replicas)

"""The demo on Kafka 4 without ZooKeeper: Kafka's own controllers, our operator, and a producer that never stops."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from kio.schema.metadata.v11 import MetadataResponse
from kio.schema.metadata.v11.response import MetadataResponsePartition

from controller_core.wire.requests.metadata import ALL_TOPICS
from devcluster.building.java import KRAFT_VERSION
from devcluster.clients.load import AckedProducer
from devcluster.clients.requests import ConnectionClosed, send_request
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.demo.move import NEW, OLD, show_move
from devcluster.demo.operated import NAMESPACE, Operated
from devcluster.demo.stage import Place, Stage
from devcluster.running.processes import wait_until

TOPIC = "orders"
MOVE = "orders-to-4-5-6"
ELECTION = "orders-after-restart"
FOLDER = "without-zookeeper"
_RELEASE = "4.0"
"""The release of the initial features, so that there is something to upgrade."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brokers:
    """The brokers and their controllers, seen through any broker's metadata."""

    stage: Stage
    kafka: KRaftCluster

    def place(self, partition: int) -> Place:
        found = self._partitions()[partition]
        return Place(
            assigned=tuple(sorted(map(int, found.replica_nodes))),
            leader=int(found.leader_id),
            isr=tuple(sorted(map(int, found.isr_nodes))),
        )

    def find_preferred_leaders(self) -> dict[int, int]:
        """Return the preferred leader of each partition."""
        return {number: int(found.replica_nodes[0]) for number, found in self._partitions().items()}

    def is_served(self) -> bool:
        """Return True if every replica is in sync."""
        return all(len(found.isr_nodes) == len(found.replica_nodes) for found in self._partitions().values())

    def _partitions(self) -> dict[int, MetadataResponsePartition]:
        topic = next(topic for topic in self._metadata().topics if topic.name == TOPIC)
        return {int(found.partition_index): found for found in topic.partitions}

    def _metadata(self) -> MetadataResponse:
        """Return the metadata of the first broker that answers."""
        for broker in self.kafka.brokers.values():
            with suppress(OSError, ConnectionClosed):
                answer: MetadataResponse = send_request(("127.0.0.1", broker.port), ALL_TOPICS)
                return answer
        raise ConnectionError("no broker answers")


@contextmanager
def run_brokers(stage: Stage, folder: RunFolder) -> Iterator[Brokers]:
    """Start brokers and controllers; ends all of it, even after a failed start or Ctrl-C."""
    stage.step(
        "Start", f"Six unmodified Apache Kafka {KRAFT_VERSION} brokers and three controllers: there is no ZooKeeper."
    )
    with KRaftCluster(folder, brokers=6, release=_RELEASE) as kafka:
        stage.say(f"Brokers 1 to 6 run, and controllers {', '.join(map(str, kafka.controllers))}.")
        yield Brokers(stage=stage, kafka=kafka)


def only_part(demo: Operated, brokers: Brokers) -> AckedProducer:
    """Run the whole demo; returns the producer, which still runs."""
    producer = create_topic(demo, brokers)
    move_partition(demo, brokers)
    kill_broker(demo, brokers)
    elect_preferred(demo, brokers)
    raise_features(demo)
    kill_controller(demo, brokers)
    return producer


def create_topic(demo: Operated, brokers: Brokers) -> AckedProducer:
    demo.stage.step(
        "A topic, as a resource", "The same KafkaTopic as with ZooKeeper; the operator asks the controller for it."
    )
    demo.apply("topics.yaml")
    demo.wait_until_ready("kafkatopic", TOPIC)
    demo.show_resources("kafkatopic")
    producer = AckedProducer(brokers.kafka.bootstrap_servers, TOPIC)
    producer.start()
    wait_until(lambda: producer.acknowledged_count > 0, "the first acknowledgement")
    demo.stage.say(f"A producer to {TOPIC} with acks=all has started, and will not stop before the end.")
    demo.stage.await_(brokers.is_served, f"every replica of {TOPIC} is in sync")
    return producer


def move_partition(demo: Operated, brokers: Brokers) -> None:
    demo.stage.step(
        f"A PartitionReassignment {set(OLD)} -> {set(NEW)}", f"All of {TOPIC} moves. This is its partition 0."
    )
    show_move(
        demo.stage,
        lambda: brokers.place(0),
        lambda: demo.apply("reassignment.yaml"),
        lambda: demo.has_ended("partitionreassignment", MOVE),
    )
    demo.show_resources("partitionreassignment")
    demo.wait_until_completed("partitionreassignment", MOVE)


def kill_broker(demo: Operated, brokers: Brokers) -> None:
    leader = brokers.place(0).leader
    demo.stage.step(f"Broker {leader} is killed", "SIGKILL: its controllers miss its heartbeats, and elect others.")
    brokers.kafka.broker(leader).kill()
    demo.stage.await_(lambda: brokers.place(0).leader not in (leader, -1), "another replica of the ISR leads")
    demo.stage.await_(lambda: demo.count_under_replicated() > 0, "the KafkaCluster counts what is under-replicated")
    demo.show_resources("kafkacluster")
    brokers.kafka.broker(leader).start()
    demo.stage.await_(brokers.is_served, f"{leader} is back in the ISR")


def elect_preferred(demo: Operated, brokers: Brokers) -> None:
    demo.stage.step(
        "Preferred election", "Leadership is not where it should be after all that: a PreferredElection gives it back."
    )
    preferred = brokers.find_preferred_leaders()
    elsewhere = [number for number, broker in preferred.items() if brokers.place(number).leader != broker]
    demo.stage.expect(bool(elsewhere), f"partitions {elsewhere} are not led by their preferred replicas")
    demo.apply("preferred-election.yaml")
    demo.stage.await_(
        lambda: all(brokers.place(number).leader == broker for number, broker in preferred.items()),
        f"brokers {[preferred[number] for number in elsewhere]} lead them again",
    )
    demo.wait_until_completed("preferredelection", ELECTION)
    demo.show_resources("preferredelection")


def raise_features(demo: Operated) -> None:
    demo.stage.step(
        "Features",
        f"The cluster's metadata.version is that of Kafka {_RELEASE}. A FeatureSet asks first, and raises it then.",
    )
    demo.apply(f"{FOLDER}/features.yaml")
    demo.stage.await_(lambda: _says(demo, "to be changed"), "the controller would do it, and nothing was done")
    demo.show_resources("featureset")
    patch = json.dumps({"spec": {"dryRun": False}})
    demo.stage.show(
        f"kubectl patch featureset features --type merge --patch '{patch}'",
        demo.kubernetes.kubectl(
            "patch", "featureset", "features", "-n", NAMESPACE, "--type", "merge", "--patch", patch
        ),
    )
    demo.wait_until_ready("featureset", "features")
    demo.show_resources("featureset")


def kill_controller(demo: Operated, brokers: Brokers) -> None:
    former = int(demo.controller()["id"])
    demo.stage.step(
        f"Controller {former} is killed", "SIGKILL to the one that leads the quorum: the others elect the next."
    )
    brokers.kafka.controller(former).kill()
    demo.stage.await_(lambda: demo.controller().get("id") not in (None, former), "the KafkaCluster names another one")
    demo.show_resources("kafkacluster")
    brokers.kafka.controller(former).start()


def _says(demo: Operated, words: str) -> bool:
    return any(words in each.get("message", "") for each in demo.status("featureset", "features").get("features", []))

"""The decided state of a simulated KRaft cluster, and events of its brokers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from controller_core.model.ids import BrokerId, PartitionId, TopicId, TopicPartition
from controller_core.model.metadata import ReplicaAssignment, TopicAssignment
from simulation.kraft.partitions import NOBODY, Partition

TOPIC: Final = 2
"""The type of the resource that has a topic's configuration."""


@dataclass
class Topic:
    """A topic with its partitions in order and its configuration."""

    topic_id: UUID
    partitions: list[Partition]
    config: dict[str, str] = field(default_factory=dict)


@dataclass
class Broker:
    """A running broker. A hanging one does not replicate."""

    cluster: "QuorumCluster"
    is_hanging: bool = False

    def hang(self) -> None:
        self.is_hanging = True

    def resume(self) -> None:
        self.is_hanging = False


class QuorumCluster:
    """Brokers and controllers. `quorum_leader` leads the controllers, unless it is `NOBODY`."""

    def __init__(self, *brokers: int) -> None:
        self.topics: dict[str, Topic] = {}
        self.broker_defaults: dict[str, str] = {}
        """The dynamic configuration of all brokers."""
        self.features: dict[str, int] = {"metadata.version": 25}
        self.supported: dict[str, tuple[int, int]] = {"metadata.version": (7, 29)}
        self.brokers = {number: Broker(self) for number in brokers}
        self.quorum_leader, self.quorum_epoch = 101, 1
        self.voters = (101, 102, 103)
        self.decided = 10
        """The number of decisions: the end of the log."""
        self._ids = 0

    # events

    def create_topic(self, name: str, *replicas: Sequence[int], config: Mapping[str, str] | None = None) -> Topic:
        """Create a topic. Its id is the number of topics created so far."""
        self._ids += 1
        partitions = [Partition.create(each, self.brokers) for each in replicas]
        self.topics[name] = topic = Topic(UUID(int=self._ids), partitions, dict(config or {}))
        self.decided += 1
        return topic

    def broker(self, number: int) -> Broker:
        return self.brokers[number]

    def kill_broker(self, number: int) -> None:
        del self.brokers[number]
        for partition in self._partitions():
            partition.lose(number, self.brokers)
        self.decided += 1

    def start_broker(self, number: int) -> None:
        self.brokers[number] = Broker(self)
        self.replicate()

    def bounce_broker(self, number: int) -> None:
        """Restart a broker before anybody asks."""
        self.kill_broker(number)
        self.start_broker(number)

    def replicate(self) -> None:
        """Let every broker that does not hang catch up."""
        for partition in self._partitions():
            for number, broker in self.brokers.items():
                if not broker.is_hanging:
                    partition.catch_up(number, self.brokers)
        self.decided += 1

    # state

    def topic(self, name: str) -> TopicAssignment:
        found = self.topics[name]
        return TopicAssignment(
            topic_id=TopicId(found.topic_id),
            partitions={PartitionId(at): _assignment(each) for at, each in enumerate(found.partitions)},
        )

    def config_of(self, resource_type: int, name: str) -> dict[str, str] | None:
        """Return what is set on a resource; None if the topic does not exist."""
        if resource_type != TOPIC:
            return self.broker_defaults
        return self.topics[name].config if name in self.topics else None

    def find_leadership(self, at: TopicPartition) -> tuple[int, list[int]] | None:
        """Return the leader and the ISR, or None if the partition does not exist."""
        topic = self.topics.get(at.topic)
        if topic is None or at.partition >= len(topic.partitions):
            return None
        found = topic.partitions[at.partition]
        return found.leader, sorted(found.isr)

    @property
    def is_led(self) -> bool:
        return self.quorum_leader != NOBODY

    def _partitions(self) -> Iterator[Partition]:
        return (partition for topic in self.topics.values() for partition in topic.partitions)


def _assignment(partition: Partition) -> ReplicaAssignment:
    return ReplicaAssignment(
        replicas=tuple(map(BrokerId, partition.replicas)),
        adding=tuple(map(BrokerId, partition.adding)),
        removing=tuple(map(BrokerId, partition.removing)),
    )

"""What the controllers of a cluster have decided, and what happens to its brokers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from controller_core.model.ids import BrokerId, PartitionId, TopicId, TopicPartition
from controller_core.model.metadata import ReplicaAssignment, TopicAssignment
from simulation.kraft.partitions import NOBODY, Partition


@dataclass
class Topic:
    """A topic: its partitions in order, and what was set for it."""

    topic_id: UUID
    partitions: list[Partition]
    config: dict[str, str] = field(default_factory=dict)


@dataclass
class Broker:
    """A broker that is there. One that hangs copies nothing."""

    cluster: "QuorumCluster"
    is_hanging: bool = False

    def hang(self) -> None:
        self.is_hanging = True

    def resume(self) -> None:
        self.is_hanging = False


class QuorumCluster:
    """Brokers, and controllers of which one leads, unless `quorum_leader` is `NOBODY`."""

    def __init__(self, *brokers: int) -> None:
        self.topics: dict[str, Topic] = {}
        self.features: dict[str, int] = {"metadata.version": 25}
        self.supported: dict[str, tuple[int, int]] = {"metadata.version": (7, 29)}
        self.brokers = {number: Broker(self) for number in brokers}
        self.quorum_leader, self.quorum_epoch = 101, 1
        self.voters = (101, 102, 103)
        self.decided = 10
        """How much was decided: the end of the log."""
        self._ids = 0

    # what happens

    def create_topic(self, name: str, *replicas: Sequence[int], config: Mapping[str, str] | None = None) -> Topic:
        """Each topic has an id of its own, which says how many were created before."""
        self._ids += 1
        partitions = [Partition.created(each, self.brokers) for each in replicas]
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
        """It is back before anybody has asked."""
        self.kill_broker(number)
        self.start_broker(number)

    def replicate(self) -> None:
        """Every broker that is well has copied all there is."""
        for partition in self._partitions():
            for number, broker in self.brokers.items():
                if not broker.is_hanging:
                    partition.catch_up(number, self.brokers)
        self.decided += 1

    # what there is

    def topic(self, name: str) -> TopicAssignment:
        found = self.topics[name]
        return TopicAssignment(
            topic_id=TopicId(found.topic_id),
            partitions={PartitionId(at): _assignment(each) for at, each in enumerate(found.partitions)},
        )

    def led(self, at: TopicPartition) -> tuple[int, list[int]] | None:
        """The leader and the ISR; None where there is no such partition."""
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

"""Topics, the replicas assigned to their partitions, and the partitions on each broker.

Lookups that would otherwise walk all partitions have an index (KAFKA-10794).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from types import MappingProxyType
from typing import Final

from controller_core.journal.changes import Changes, Kind, make_tracked_dict
from controller_core.model.ids import BrokerId, PartitionId, PartitionReplica, TopicId, TopicName, TopicPartition
from controller_core.model.metadata import ReplicaAssignment, TopicAssignment
from controller_core.zk.session import ZkVersion

NO_PARTITIONS: Final[Mapping[PartitionId, ReplicaAssignment]] = MappingProxyType({})


class Topic:
    """A topic as last read: its id, the czxid of its znode, and its partitions."""

    __slots__ = ("_known", "_partitions", "_written", "czxid", "known", "partitions", "topic_id")

    def __init__(
        self,
        name: TopicName,
        *,
        topic_id: TopicId | None,
        czxid: int,
        partitions: Mapping[PartitionId, ReplicaAssignment],
    ) -> None:
        self.topic_id: Final = topic_id
        self.czxid: Final = czxid
        self._partitions = dict(partitions)
        self.partitions: Final[Mapping[PartitionId, ReplicaAssignment]] = self._partitions
        self._known = {number: TopicPartition(name, number) for number in partitions}
        self.known: Final[Mapping[PartitionId, TopicPartition]] = self._known
        """The same partitions by their full names.

        Each name is one object, shared by everything stored about the partition.
        """
        self._written: int | None = None

    @property
    def written(self) -> int | None:
        """The version of the znode that this controller wrote last."""
        return self._written


class AssignedReplicas:
    """The part of the cluster state that comes from topics' znodes."""

    def __init__(self, changes: Changes, recorded_by: Changes | None) -> None:
        self.changes: Final = changes
        """The changes of everything that the journal records."""
        self._topics: dict[TopicName, Topic] = make_tracked_dict(Kind.TOPIC, recorded_by)
        self.topics: Final[Mapping[TopicName, Topic]] = self._topics
        self._rewritten: dict[TopicName, tuple[ZkVersion, TopicAssignment]] = {}
        self.rewritten: Final[Mapping[TopicName, tuple[ZkVersion, TopicAssignment]]] = self._rewritten
        """The last content written to each topic's znode during reassignments, with the resulting version."""
        self._revision = 0
        self._names: dict[TopicId, TopicName] = {}
        self._partitions_on: defaultdict[BrokerId, dict[TopicPartition, None]] = defaultdict(dict)

    @property
    def revision(self) -> int:
        """Rises whenever topics come or go, or assignments change.

        Equal values mean that nothing changed in between.
        """
        return self._revision

    def add_topic(
        self,
        name: TopicName,
        topic_id: TopicId | None,
        czxid: int,
        partitions: Mapping[PartitionId, ReplicaAssignment] = NO_PARTITIONS,
    ) -> None:
        """Add a topic that is not known yet, with its assignments."""
        self._revision += 1
        topic = self._topics[name] = Topic(name, topic_id=topic_id, czxid=czxid, partitions=partitions)
        if topic_id is not None:
            self._names[topic_id] = name
        for topic_partition, assignment in zip(topic.known.values(), partitions.values(), strict=True):
            for broker in assignment.replicas:
                self._partitions_on[broker][topic_partition] = None
        if self.changes.is_open:
            for topic_partition, assignment in zip(topic.known.values(), partitions.values(), strict=True):
                self.changes.record(Kind.ASSIGNMENT, topic_partition, None, assignment)

    def _take_over_topics(self, read: "AssignedReplicas") -> None:
        self._topics.update(dict(sorted(read.topics.items())))
        self._partitions_on = read._partitions_on
        self._names = {topic.topic_id: name for name, topic in self.topics.items() if topic.topic_id is not None}

    def _forget_topic(self, name: TopicName) -> None:
        self._revision += 1
        self._rewritten.pop(name, None)
        topic = self._topics.pop(name)
        for number, assignment in topic.partitions.items():
            for broker in assignment.replicas:
                self._partitions_on[broker].pop(topic.known[number], None)
        if topic.topic_id is not None and self._names.get(topic.topic_id) == name:
            del self._names[topic.topic_id]

    def _forget_partition(self, topic_partition: TopicPartition) -> None:
        self._revision += 1
        self._rewritten.pop(topic_partition.topic, None)
        topic = self._topics[topic_partition.topic]
        before = topic._partitions.pop(topic_partition.partition)
        del topic._known[topic_partition.partition]
        for broker in before.replicas:
            self._partitions_on[broker].pop(topic_partition, None)
        self.changes.record(Kind.ASSIGNMENT, topic_partition, before, None)

    def list_partitions_of(self, name: TopicName) -> list[TopicPartition]:
        topic = self.topics.get(name)
        return list(topic.known.values()) if topic else []

    def all_partitions(self) -> Iterator[TopicPartition]:
        for topic in self.topics.values():
            yield from topic.known.values()

    def has(self, topic_partition: TopicPartition) -> bool:
        topic = self.topics.get(topic_partition.topic)
        return topic is not None and topic_partition.partition in topic.partitions

    def assignment(self, topic_partition: TopicPartition) -> ReplicaAssignment:
        return self.topics[topic_partition.topic].partitions[topic_partition.partition]

    def set_assignment(self, topic_partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        """Replace AR and update the index by broker. The topic must be known."""
        self._revision += 1
        topic = self._topics[topic_partition.topic]
        topic_partition = topic._known.setdefault(topic_partition.partition, topic_partition)
        before = topic.partitions.get(topic_partition.partition)
        if before is not None:
            for broker in set(before.replicas).difference(assignment.replicas):
                self._partitions_on[broker].pop(topic_partition, None)
        for broker in assignment.replicas:
            self._partitions_on[broker][topic_partition] = None
        if self.changes.is_open:
            self.changes.record(Kind.ASSIGNMENT, topic_partition, before, assignment)
        topic._partitions[topic_partition.partition] = assignment

    def remember_rewritten(self, name: TopicName, version: ZkVersion, content: TopicAssignment) -> None:
        """Record that this controller wrote a topic's znode, and its new version.

        The notification about that write is no news, unless the written content includes something that somebody else
        wrote.
        """
        self._rewritten[name] = version, content
        topic = self._topics[name]
        if topic.topic_id == content.topic_id and topic.partitions.keys() == content.partitions.keys():
            topic._written = version

    def forget_rewritten(self) -> None:
        """Drop the contents written to topics' znodes. They are not needed while nothing is reassigned."""
        self._rewritten.clear()

    def find_topic_name(self, topic_id: TopicId) -> TopicName | None:
        return self._names.get(topic_id)

    def list_partitions_on(self, brokers: Iterable[BrokerId]) -> list[TopicPartition]:
        """Return the partitions that have a replica on any of the brokers."""
        return list({partition: None for broker in brokers for partition in self._partitions_on[broker]})

    def list_replicas_on(self, brokers: Iterable[BrokerId]) -> list[PartitionReplica]:
        """Return the assigned replicas that the brokers host."""
        return [PartitionReplica(partition, broker) for broker in brokers for partition in self._partitions_on[broker]]

    def group_by_broker(self, partitions: Collection[TopicPartition]) -> dict[BrokerId, Collection[TopicPartition]]:
        """Return the partitions grouped by the brokers that are assigned replicas of them."""
        if not partitions:
            return {}
        if len(partitions) == sum(len(topic.partitions) for topic in self.topics.values()):
            return {broker: hosted for broker, hosted in self._partitions_on.items() if hosted}
        wanted = dict.fromkeys(partitions)
        return {
            broker: found
            for broker, hosted in self._partitions_on.items()
            if (found := [partition for partition in hosted if partition in wanted])
        }

    def list_replicas_among(
        self, partitions: Iterable[TopicPartition], brokers: Set[BrokerId]
    ) -> list[PartitionReplica]:
        """Return the assigned replicas of the partitions that are on the brokers."""
        return [
            PartitionReplica(partition, broker)
            for partition in partitions
            for broker in self.assignment(partition).replicas
            if broker in brokers
        ]

    def list_replicas_of(self, partitions: Iterable[TopicPartition]) -> list[PartitionReplica]:
        """Return all assigned replicas of the partitions."""
        return [
            PartitionReplica(partition, broker)
            for partition in partitions
            for broker in self.assignment(partition).replicas
        ]

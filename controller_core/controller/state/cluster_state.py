"""What the present controller knows of its cluster, in memory.

ZooKeeper is the truth; this is the copy that decisions are made from and requests to brokers are built from. It is
filled when a term begins, changed only by the event that is being handled, after the write that it follows, and dropped
when the term ends. Lookups that would otherwise walk all partitions have an index (KAFKA-10794).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from controller_core.controller.state.replica_statuses import ReplicaStatuses
from controller_core.controller.state.unusable_znodes import UnusableZnodes
from controller_core.journal.changes import Changes, Kind, tracked
from controller_core.journal.configs import RecordedConfig
from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import (
    NO_EPOCH,
    BrokerId,
    LeaderEpoch,
    PartitionId,
    PartitionReplica,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import Broker, PartitionState, ReplicaAssignment, TopicAssignment
from controller_core.model.transitions import PartitionStatus
from controller_core.zk import paths
from controller_core.zk.session import ZkVersion

_NONE: Final[Mapping[PartitionId, ReplicaAssignment]] = MappingProxyType({})


@dataclass(slots=True, kw_only=True)
class RunningReassignment:
    """A reassignment that the controller carries through: its target, and what the last steps still wait for."""

    full: ReplicaAssignment
    """AR as ZooKeeper has it while the reassignment runs: RAR + OAR, with what is added and removed."""
    awaiting_deletion: set[BrokerId] | None = None
    """The brokers that have not yet answered whether they deleted their replica; None before step 9."""
    deleted: set[BrokerId] = field(default_factory=set)
    """The brokers that answered that they deleted their replica."""

    @property
    def target(self) -> tuple[BrokerId, ...]:
        return self.full.target


@dataclass(slots=True, kw_only=True)
class RemovedReplica:
    """A replica that is assigned no more, and whose broker has not yet answered that it deleted the log."""

    topic_id: TopicId | None
    """Of the topic that the log is of."""
    leader_epoch: LeaderEpoch = NO_EPOCH
    """When it was removed: an answer to what the broker was sent under an older one is about a former removal."""
    is_refused: bool = False
    """Whether the broker answered that it cannot delete it; it is sent the request again when it starts anew."""


@dataclass(slots=True, kw_only=True)
class Topic:
    """A topic as last read: its id, which incarnation of the znode that was, and its partitions."""

    topic_id: TopicId | None
    czxid: int
    partitions: dict[PartitionId, ReplicaAssignment] = field(default_factory=dict)
    known: dict[PartitionId, TopicPartition] = field(default_factory=dict, repr=False)
    """The same partitions by their full names: one object each for all that is kept about them."""
    written: int | None = None
    """The version of the znode that this controller wrote last."""


@dataclass(slots=True, kw_only=True)
class TopicDeletion:
    """A topic on its way out: the replicas that have not yet been deleted by their brokers."""

    awaiting_deletion: set[PartitionReplica]
    refused: set[PartitionReplica] = field(default_factory=set)
    """Those that their brokers could not delete; the brokers are sent them again when they start anew."""
    started: bool = False
    """Whether the brokers have been sent it; a new controller has yet to do so."""


class ClusterState:
    """Brokers, topics, and the state of every partition and replica."""

    def __init__(self, *, is_journaled: bool = False) -> None:
        self.is_loaded = False
        """Whether everything has been read: what is not here until then may exist."""
        self.changes = Changes()
        """What changed of all that the journal knows."""
        self.unusable = UnusableZnodes()
        """Which znodes could not be taken into account."""
        recorded_by = self.changes if is_journaled else None
        self.brokers: dict[BrokerId, Broker] = tracked(Kind.BROKER, recorded_by)
        self.shutting_down: set[BrokerId] = set()
        self.topics: dict[TopicName, Topic] = tracked(Kind.TOPIC, recorded_by)
        self.states: dict[TopicPartition, PartitionState] = tracked(Kind.LEADERSHIP, recorded_by)
        self.topic_configs: dict[TopicName, RecordedConfig] = tracked(Kind.TOPIC_CONFIG, recorded_by)
        """Of those topics that have any; filled only where a journal is kept, as `broker_configs`."""
        self.broker_configs: dict[BrokerId | None, RecordedConfig] = tracked(Kind.BROKER_CONFIG, recorded_by)
        """Of those brokers that have any; None is the default of all of them."""
        self.partition_status: dict[TopicPartition, PartitionStatus] = {}
        self.replica_status = ReplicaStatuses()
        self.reassignments: dict[TopicPartition, RunningReassignment] = {}
        self.completable: set[TopicPartition] = set()
        """Reassignments for which nothing is awaited any more."""
        self.completable_since_ms: float | None = None
        """Since when some of them wait for others to be completed with."""
        self.rewritten: dict[TopicName, tuple[ZkVersion, TopicAssignment]] = {}
        """What was last written to topics' znodes while partitions are reassigned, and the version that this made."""
        self.deletions: dict[TopicName, TopicDeletion] = {}
        self.failed_replicas: dict[BrokerId, frozenset[TopicPartition]] = tracked(Kind.OFFLINE_REPLICAS, recorded_by)
        """The replicas of live brokers that are in failed log directories; without brokers that have none."""
        self.seen_config_changes: frozenset[str] = frozenset()
        """The configuration notifications that are there, and were handled."""
        self._finalized_features: FinalizedFeatures | None = None
        self.revision = 0
        """How often topics came or went, or assignments changed: what is equal twice was untouched between."""
        self.removed_replicas: dict[PartitionReplica, RemovedReplica] = {}
        self.deleted_topics: dict[TopicName, int] = {}
        """Topics that were deleted of late, the oldest first, and how many partitions they had."""
        self._names: dict[TopicId, TopicName] = {}
        self._partitions_on: defaultdict[BrokerId, dict[TopicPartition, None]] = defaultdict(dict)

    @property
    def finalized_features(self) -> FinalizedFeatures | None:
        """None where `/feature` says nothing that could be understood."""
        return self._finalized_features

    @finalized_features.setter
    def finalized_features(self, found: FinalizedFeatures | None) -> None:
        if found != self._finalized_features:
            self.changes.record(Kind.FEATURES, None, self._finalized_features, found)
        self._finalized_features = found

    # Brokers

    @property
    def live(self) -> Set[BrokerId]:
        """The brokers that may lead: registered and not shutting down."""
        return self.brokers.keys() - self.shutting_down

    @property
    def live_or_shutting_down(self) -> Set[BrokerId]:
        """The brokers that can be sent anything."""
        return self.brokers.keys()

    def rack_of_controller(self) -> str | None:
        """The rack that the controller has to brokers, which place replicas on racks only where every broker has one:
        the largest, where one more changes least. None where they do not place by racks anyway."""
        racks = [broker.rack for broker in self.brokers.values()]
        if not racks or None in racks:
            return None
        return min((rack for rack in racks if rack is not None), key=lambda rack: (-racks.count(rack), rack))

    def live_replicas(self, topic_partition: TopicPartition) -> Set[BrokerId]:
        """The assigned replicas that may lead: on a broker that may, and in a sound log directory."""
        assigned = self.live & set(self.assignment(topic_partition).replicas)
        return {broker for broker in assigned if self.is_served_by(topic_partition, broker)}

    def is_served_by(self, topic_partition: TopicPartition, broker: BrokerId) -> bool:
        """Whether a replica on the broker is alive: the broker is, and the log directory too."""
        return broker in self.brokers and topic_partition not in self.failed_replicas.get(broker, ())

    def set_failed_replicas(self, broker: BrokerId, failed: frozenset[TopicPartition]) -> None:
        """Replaces what is known of a live broker's failed log directories."""
        if not failed:
            self.failed_replicas.pop(broker, None)
        elif failed != self.failed_replicas.get(broker):
            self.failed_replicas[broker] = failed

    # Topics and partitions

    def add_topic(
        self,
        name: TopicName,
        topic_id: TopicId | None,
        czxid: int,
        partitions: Mapping[PartitionId, ReplicaAssignment] = _NONE,
    ) -> None:
        """A topic that is not known yet, with its assignments."""
        self.revision += 1
        known = {number: TopicPartition(name, number) for number in partitions}
        self.topics[name] = Topic(topic_id=topic_id, czxid=czxid, partitions=dict(partitions), known=known)
        if topic_id is not None:
            self._names[topic_id] = name
        self._index(known.values(), partitions.values())
        if self.changes.is_open:
            for topic_partition, assignment in zip(known.values(), partitions.values(), strict=True):
                self.changes.record(Kind.ASSIGNMENT, topic_partition, None, assignment)

    def take_over(self, read: "ClusterState") -> None:
        """Topics and the states of their partitions, as somebody else has read them, whose they are no longer.

        Before anything else is known of topics. They are in the order of their names, as ZooKeeper lists them."""
        self.topics.update(dict(sorted(read.topics.items())))
        self.states.update(read.states)
        self._partitions_on = read._partitions_on
        self._names = {topic.topic_id: name for name, topic in self.topics.items() if topic.topic_id is not None}

    def _index(self, partitions: Iterable[TopicPartition], assignments: Iterable[ReplicaAssignment]) -> None:
        for topic_partition, assignment in zip(partitions, assignments, strict=True):
            for broker in assignment.replicas:
                self._partitions_on[broker][topic_partition] = None

    def remove_topic(self, name: TopicName) -> list[TopicPartition]:
        """Forgets a topic with everything about its partitions; returns what they were."""
        self.revision += 1
        forgotten = self.partitions_of(name)
        for topic_partition in forgotten:
            for broker in self.known_replicas(topic_partition):
                self._partitions_on[broker].pop(topic_partition, None)
                self.replica_status.pop(PartitionReplica(topic_partition, broker), None)
            self.states.pop(topic_partition, None)
            self.partition_status.pop(topic_partition, None)
            self.reassignments.pop(topic_partition, None)
        for broker, failed in list(self.failed_replicas.items()):
            if not failed.isdisjoint(forgotten):
                self.set_failed_replicas(broker, failed.difference(forgotten))
        self.deletions.pop(name, None)
        self.rewritten.pop(name, None)
        self.topic_configs.pop(name, None)
        topic = self.topics.pop(name)
        if topic.topic_id is not None and self._names.get(topic.topic_id) == name:
            del self._names[topic.topic_id]
        return forgotten

    def partitions_of(self, name: TopicName) -> list[TopicPartition]:
        topic = self.topics.get(name)
        return list(topic.known.values()) if topic else []

    def all_partitions(self) -> Iterator[TopicPartition]:
        for topic in self.topics.values():
            yield from topic.known.values()

    def has(self, topic_partition: TopicPartition) -> bool:
        topic = self.topics.get(topic_partition.topic)
        return topic is not None and topic_partition.partition in topic.partitions

    def may_have(self, topic_partition: TopicPartition) -> bool:
        """Whether there is such a partition, or nobody can tell: its topic's znode makes no sense, or not all of it."""
        return self.has(topic_partition) or self.unusable.has(paths.topic(topic_partition.topic))

    def assignment(self, topic_partition: TopicPartition) -> ReplicaAssignment:
        return self.topics[topic_partition.topic].partitions[topic_partition.partition]

    def set_assignment(self, topic_partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        """Replaces AR and keeps the index by broker; the topic must be known."""
        self.revision += 1
        topic = self.topics[topic_partition.topic]
        topic_partition = topic.known.setdefault(topic_partition.partition, topic_partition)
        before = topic.partitions.get(topic_partition.partition)
        if before is not None:
            for broker in set(before.replicas).difference(assignment.replicas):
                self._partitions_on[broker].pop(topic_partition, None)
        for broker in assignment.replicas:
            self._partitions_on[broker][topic_partition] = None
        if self.changes.is_open:
            self.changes.record(Kind.ASSIGNMENT, topic_partition, before, assignment)
        topic.partitions[topic_partition.partition] = assignment

    def known_replicas(self, topic_partition: TopicPartition) -> tuple[BrokerId, ...]:
        """The assigned replicas and, in the last steps of a reassignment, those that are on their way out."""
        assigned = self.assignment(topic_partition).replicas
        running = self.reassignments.get(topic_partition)
        leaving = running.full.removing if running else ()
        return (*assigned, *(broker for broker in leaving if broker not in assigned))

    def is_assigned(self, replica: PartitionReplica) -> bool:
        """Whether the replica is one of its partition, be it on its way out."""
        return self.has(replica.topic_partition) and replica.broker in self.known_replicas(replica.topic_partition)

    def is_being_deleted(self, name: TopicName) -> bool:
        """Whether a topic is served no more. None of its partitions is being reassigned then: deletion wins."""
        return name in self.deletions

    def is_held_up(self, name: TopicName) -> bool:
        """Whether a topic on its way out waits: for a dead broker, or a replica that cannot be deleted."""
        deletion = self.deletions[name]
        return not deletion.started or any(
            replica in deletion.refused or not self.is_served_by(replica.topic_partition, replica.broker)
            for replica in deletion.awaiting_deletion
        )

    def topic_named(self, topic_id: TopicId) -> TopicName | None:
        return self._names.get(topic_id)

    # Questions of the operations

    def partitions_on(self, brokers: Iterable[BrokerId]) -> list[TopicPartition]:
        """The partitions that have a replica on any of the brokers."""
        return list({partition: None for broker in brokers for partition in self._partitions_on[broker]})

    def replicas_on(self, brokers: Iterable[BrokerId]) -> list[PartitionReplica]:
        """The assigned replicas that the brokers host."""
        return [PartitionReplica(partition, broker) for broker in brokers for partition in self._partitions_on[broker]]

    def by_broker(self, partitions: Collection[TopicPartition]) -> dict[BrokerId, Collection[TopicPartition]]:
        """The brokers that are assigned replicas of the partitions, and the partitions of each."""
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

    def replicas_among(self, partitions: Iterable[TopicPartition], brokers: Set[BrokerId]) -> list[PartitionReplica]:
        """The assigned replicas of the partitions that are on the brokers."""
        return [
            PartitionReplica(partition, broker)
            for partition in partitions
            for broker in self.assignment(partition).replicas
            if broker in brokers
        ]

    def replicas_of(self, partitions: Iterable[TopicPartition]) -> list[PartitionReplica]:
        """All assigned replicas of the partitions."""
        return [
            PartitionReplica(partition, broker)
            for partition in partitions
            for broker in self.assignment(partition).replicas
        ]

    def partitions_in(self, *statuses: PartitionStatus) -> list[TopicPartition]:
        wanted = set(statuses)
        return [partition for partition, status in self.partition_status.items() if status in wanted]

    def led_by(self, partitions: Iterable[TopicPartition], leaders: Set[BrokerId]) -> list[TopicPartition]:
        """Those of the partitions whose leader is one of the given brokers."""
        return [
            partition
            for partition in partitions
            if (state := self.states.get(partition)) and state.leader_and_isr.leader in leaders
        ]

    def is_leader_live(self, topic_partition: TopicPartition) -> bool:
        state = self.states.get(topic_partition)
        return state is not None and self.is_served_by(topic_partition, state.leader_and_isr.leader)


def bounced(known: Mapping[BrokerId, Broker], present: Mapping[BrokerId, Broker]) -> list[BrokerId]:
    """The brokers that were down and are back before anyone noticed: the same id with a larger epoch (KIP-380)."""
    return [broker for broker in present if broker in known and present[broker].epoch > known[broker].epoch]

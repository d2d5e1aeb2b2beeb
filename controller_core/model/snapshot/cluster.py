"""The whole cluster of a snapshot, and its controller."""

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Final

from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import UNTOLD_CONTROLLER_EPOCH, BrokerId, ControllerEpoch, TopicName, TopicPartition
from controller_core.model.metadata import (
    Broker,
    PartitionState,
    PreferredElectionPlan,
    ReassignmentPlan,
    ReplicaAssignment,
)
from controller_core.model.snapshot.topic import Counts, PartitionSnapshot, TopicSnapshot, sum_counts
from controller_core.model.topics.topic_names import normalize


class ControllerKind(StrEnum):
    """The program that is the controller. With ZooKeeper, Kontroller has an id that no broker has."""

    KONTROLLER = "Kontroller"
    KAFKA = "Kafka"
    KRAFT = "KRaft"
    """A quorum of Kafka's own controllers, in a cluster without ZooKeeper."""
    UNTOLD = "Unknown"
    """The source does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """The controller (with ZooKeeper: the holder of `/controller`) and its epoch."""

    id: BrokerId
    epoch: ControllerEpoch = UNTOLD_CONTROLLER_EPOCH
    kind: ControllerKind = ControllerKind.UNTOLD


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """The abilities that not every cluster has, by the way in which it is reached."""

    chooses_topic_ids: bool = True
    """True if the creator of a topic chooses its id."""
    validates_features: bool = False
    """True if the controller can validate other levels without changing them."""
    may_hide_topics: bool = False
    """True if topics may exist that are not shown, because the operator's user may not Describe them."""


WITH_ZOOKEEPER: Final = Abilities()
WITHOUT_ZOOKEEPER: Final = Abilities(chooses_topic_ids=False, validates_features=True, may_hide_topics=True)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A cluster as its ZooKeeper or its brokers show it at one moment. It never changes."""

    version: int
    """It rises with every snapshot of one reader."""
    cluster_id: str | None = None
    controller: Controller | None = None
    brokers: Mapping[BrokerId, Broker] = field(default_factory=dict)
    cordoned: frozenset[BrokerId] = frozenset()
    """Live brokers that take no new replicas because all their log directories are cordoned (KIP-1066)."""
    to_remove: frozenset[BrokerId] = frozenset()
    """Brokers that take no new replicas because they are to be removed from the cluster, live or not."""
    topics: Mapping[TopicName, TopicSnapshot] = field(default_factory=dict)
    reassignment: ReassignmentPlan | None = None
    """The request in `/admin/reassign_partitions`; None if there is no such znode."""
    preferred_election: PreferredElectionPlan | None = None
    """The request in `/admin/preferred_replica_election`; None if there is no such znode."""
    deleting: frozenset[TopicName] = frozenset()
    """The topics that are marked for deletion."""
    features: FinalizedFeatures | None = None
    """The finalized features; None if no controller has set them up, or if they are unreadable."""
    voters: tuple[BrokerId, ...] | None = None
    """Without ZooKeeper: the controllers of the quorum, as far as they are known. Otherwise, or if the source does not
    tell, None."""
    malformed: Mapping[str, str] = field(default_factory=dict)
    """Malformed znodes by path, with the error. Their content is missing in this snapshot."""
    changed: frozenset[TopicName] = frozenset()
    """The topics that are new, gone or changed since the snapshot of the version before."""
    unsupported_brokers: tuple[BrokerId, ...] = ()
    """Registered brokers that the controller cannot lead because of their release or mode of Kafka."""
    is_controller_id_taken: bool = False
    """True if a broker is registered under Kontroller's id. Kontroller ignores it, and `brokers` leaves it out."""
    abilities: Abilities = WITH_ZOOKEEPER
    """The abilities of the cluster."""
    known_counts: Counts | None = None
    """The counts of all topics together, if the reader has kept them; otherwise they are summed up."""
    known_holders: frozenset[BrokerId] | None = None
    """The holders of all topics together, if the reader has kept them."""

    @cached_property
    def counts(self) -> Counts:
        return self.known_counts or sum_counts(topic.counts for topic in self.topics.values())

    @cached_property
    def holders(self) -> frozenset[BrokerId]:
        """The brokers with replicas, registered or not."""
        if self.known_holders is not None:
            return self.known_holders
        return frozenset().union(*(topic.holders for topic in self.topics.values()))

    @cached_property
    def metric_names(self) -> Mapping[str, TopicName]:
        """The topics by their names in Kafka's metrics. Computed once for all topics created over this snapshot."""
        return {normalize(topic): topic for topic in self.topics}

    @property
    def has_zookeeper(self) -> bool:
        return self.voters is None

    @property
    def racks(self) -> dict[BrokerId, str | None]:
        """The live brokers with their racks, in the form that placement needs."""
        return {broker.id: broker.rack for broker in self.brokers.values()}

    @property
    def closed(self) -> frozenset[BrokerId]:
        """The brokers that keep their replicas and take no new ones."""
        return self.cordoned | self.to_remove

    @property
    def racks_of_takers(self) -> dict[BrokerId, str | None]:
        """The live brokers that take new replicas, with their racks."""
        return {number: rack for number, rack in self.racks.items() if number not in self.closed}

    def replace_brokers_to_remove(self, brokers: frozenset[BrokerId]) -> "Snapshot":
        """Return this snapshot with other brokers to be removed. The result is kept, because its counts are expensive."""
        if brokers == self.to_remove:
            return self
        if brokers not in self._marked:
            self._marked[brokers] = replace(self, to_remove=brokers)
        return self._marked[brokers]

    @cached_property
    def _marked(self) -> dict[frozenset[BrokerId], "Snapshot"]:
        return {}

    def features_epoch(self, before: int | None, *, are_same: bool) -> int | None:
        """Return the epoch of the finalized features.

        Without ZooKeeper it is the offset at which they were read, which is no news if the features are the same."""
        if not self.has_zookeeper and are_same and before is not None:
            return before
        return self.features.epoch if self.features else None

    def list_partitions(self) -> Iterator[PartitionSnapshot]:
        """Yield the partitions of all topics."""
        for topic in self.topics.values():
            yield from topic.list_partitions()

    def list_partitions_on(self, broker: BrokerId) -> tuple[PartitionSnapshot, ...]:
        """Return the partitions that have a replica on a broker."""
        return tuple(each for each in self.list_partitions() if broker in each.replicas)

    def count_replicas(self) -> Counter[BrokerId]:
        """Return the number of replicas on each broker. A controller that is listed as a broker has none."""
        return Counter(broker for each in self.list_partitions() for broker in each.replicas)

    def list_topics_on(self, broker: BrokerId) -> frozenset[TopicName]:
        """Return the topics that have a replica on a broker."""
        return frozenset(name for name, topic in self.topics.items() if broker in topic.holders)

    def select_topics(self, topics: Set[TopicName]) -> "Snapshot":
        """Return the same snapshot with these topics only."""
        selected = {name: topic for name, topic in self.topics.items() if name in topics}
        return replace(self, topics=selected, known_counts=None, known_holders=None)

    def assignment_of(self, partition: TopicPartition) -> ReplicaAssignment | None:
        topic = self.topics.get(partition.topic)
        return topic.partitions.get(partition.partition) if topic else None

    def state_of(self, partition: TopicPartition) -> PartitionState | None:
        topic = self.topics.get(partition.topic)
        return topic.states.get(partition.partition) if topic else None

"""A Kafka cluster as its ZooKeeper or its brokers show it at one moment. Every plan is made over such a view.

A `ClusterView` is immutable, and every change makes a new one. A topic without changes is the same object in the next
view, and `changed` names the other topics. So nobody has to search thousands of topics for a change, and the counts of
a topic are computed once.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Final

from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import NO_LEADER, BrokerId, ControllerEpoch, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import Broker, PartitionState, ReplicaAssignment, TopicAssignment
from controller_core.model.topics.config_keys import MIN_INSYNC_REPLICAS
from controller_core.model.wording import list_some
from controller_core.zk.codecs import PreferredElectionPlan, ReassignmentPlan
from controller_core.zk.session import ZkVersion

_NUMBER: Final = re.compile(r"[0-9]{1,9}")


def read_min_isr(config: Mapping[str, str], default: int) -> int:
    """Return the number in a configuration, or the default if it has none."""
    configured = config.get(MIN_INSYNC_REPLICAS, "")
    return int(configured) if _NUMBER.fullmatch(configured) else default


class ControllerKind(StrEnum):
    """The program that is the controller. With ZooKeeper, Kontroller has an id that no broker has."""

    KONTROLLER = "Kontroller"
    KAFKA = "Kafka"
    KRAFT = "KRaft"
    """A quorum of Kafka's own controllers, in a cluster without ZooKeeper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """The controller (with ZooKeeper: the holder of `/controller`) and its epoch."""

    id: BrokerId
    epoch: ControllerEpoch
    kind: ControllerKind


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The number of partitions, and of those that need attention."""

    partitions: int = 0
    offline: int = 0
    never_led: int = 0
    """The part of `offline` that never had a leader. Partitions of a new topic have none for a moment."""
    under_replicated: int = 0
    under_min_isr: int = 0
    non_preferred_leader: int = 0
    reassigning: int = 0

    @property
    def online(self) -> int:
        return self.partitions - self.offline

    @property
    def lost_leader(self) -> int:
        """Partitions that had a leader and have none now."""
        return self.offline - self.never_led

    @property
    def lost_replicas(self) -> int:
        """Under-replicated partitions that had a leader: those of a new topic have no ISR for a moment."""
        return max(0, self.under_replicated - self.never_led)

    def __add__(self, other: "Counts") -> "Counts":
        return self._add_times(other, 1)

    def __sub__(self, other: "Counts") -> "Counts":
        return self._add_times(other, -1)

    def _add_times(self, other: "Counts", times: int) -> "Counts":
        return Counts(
            partitions=self.partitions + times * other.partitions,
            offline=self.offline + times * other.offline,
            never_led=self.never_led + times * other.never_led,
            under_replicated=self.under_replicated + times * other.under_replicated,
            under_min_isr=self.under_min_isr + times * other.under_min_isr,
            non_preferred_leader=self.non_preferred_leader + times * other.non_preferred_leader,
            reassigning=self.reassigning + times * other.reassigning,
        )


@dataclass(frozen=True, kw_only=True)
class TopicView:
    """One topic: its assignment and configuration with the versions that guard a write of them, and its partitions."""

    name: TopicName
    assignment: TopicAssignment
    version: ZkVersion
    config: Mapping[str, str] = field(default_factory=dict)
    config_version: ZkVersion | None = None
    """None if the topic has no znode for its configuration."""
    is_config_known: bool = True
    """True if the operator can read the configuration. Otherwise it seems to be empty."""
    states: Mapping[PartitionId, PartitionState] = field(default_factory=dict)
    """A partition without an entry has no leader yet, because the controller has not handled it."""
    default_min_isr: int = 1

    @property
    def partitions(self) -> Mapping[PartitionId, ReplicaAssignment]:
        return self.assignment.partitions

    @property
    def is_being_reassigned(self) -> bool:
        return self.counts.reassigning > 0

    @property
    def awaits_first_leaders(self) -> bool:
        """True if no partition has lost its leader: all partitions without a leader never had one."""
        return self.counts.offline > 0 and self.counts.offline == self.counts.never_led

    @property
    def min_isr(self) -> int:
        return read_min_isr(self.config, self.default_min_isr)

    @cached_property
    def counts(self) -> Counts:
        return count_partitions(self)

    @cached_property
    def holders(self) -> frozenset[BrokerId]:
        """The brokers with replicas of the topic."""
        return frozenset(broker for assignment in self.partitions.values() for broker in assignment.replicas)


@dataclass(frozen=True, kw_only=True)
class ClusterView:
    """The whole cluster. `version` rises with every view of one observer."""

    version: int
    cluster_id: str | None = None
    controller: Controller | None = None
    brokers: Mapping[BrokerId, Broker] = field(default_factory=dict)
    cordoned: frozenset[BrokerId] = frozenset()
    """Live brokers that take no new replicas because all their log directories are cordoned (KIP-1066)."""
    to_remove: frozenset[BrokerId] = frozenset()
    """Brokers that take no new replicas because `spec.brokersToRemove` of a KafkaCluster names them, live or not."""
    topics: Mapping[TopicName, TopicView] = field(default_factory=dict)
    reassignment: ReassignmentPlan | None = None
    """The request in `/admin/reassign_partitions`; None if there is no such znode."""
    preferred_election: PreferredElectionPlan | None = None
    """The request in `/admin/preferred_replica_election`; None if there is no such znode."""
    deleting: frozenset[TopicName] = frozenset()
    """The topics that are marked for deletion."""
    features: FinalizedFeatures | None = None
    """The finalized features; None if no controller has set them up, or if they are unreadable."""
    voters: tuple[BrokerId, ...] | None = None
    """Without ZooKeeper: the controllers of the quorum, as far as they are known."""
    malformed: Mapping[str, str] = field(default_factory=dict)
    """Malformed znodes by path, with the error. Their content is missing in this view."""
    changed: frozenset[TopicName] = frozenset()
    """The topics that are new, gone or changed since the view of the version before."""
    unsupported_brokers: tuple[BrokerId, ...] = ()
    """Registered brokers that the controller cannot lead because of their release or mode of Kafka."""
    abilities: Abilities = WITH_ZOOKEEPER
    """The abilities of the cluster."""
    known_counts: Counts | None = None
    """The counts of all topics together, if the maker of the view has kept them; otherwise they are summed up."""
    known_holders: frozenset[BrokerId] | None = None
    """The holders of all topics together, if the maker of the view has kept them."""

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
        """The topics by their names in Kafka's metrics. Computed once for all topics created over this view."""
        return {metric_name(topic): topic for topic in self.topics}

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

    @property
    def and_who_takes_none(self) -> str:
        """Words to add if there are not enough brokers; empty if all take new replicas."""
        words = ""
        if self.cordoned:
            cordoned = list_some(sorted(self.cordoned))
            words += f"; those whose log directories are all cordoned take no new replicas: {cordoned}"
        if self.to_remove:
            leaving = list_some(sorted(self.to_remove))
            words += f"; those in spec.brokersToRemove of the KafkaCluster take no new replicas: {leaving}"
        return words

    def replace_brokers_to_remove(self, brokers: frozenset[BrokerId]) -> "ClusterView":
        """Return this view with other brokers to be removed. The result is kept, because its counts are expensive."""
        if brokers == self.to_remove:
            return self
        if brokers not in self._marked:
            self._marked[brokers] = replace(self, to_remove=brokers)
        return self._marked[brokers]

    @cached_property
    def _marked(self) -> dict[frozenset[BrokerId], "ClusterView"]:
        return {}

    def features_epoch(self, before: int | None, *, are_same: bool) -> int | None:
        """Return the epoch of the finalized features.

        Without ZooKeeper it is the offset at which they were read, which is no news if the features are the same."""
        if not self.has_zookeeper and are_same and before is not None:
            return before
        return self.features.epoch if self.features else None

    def assignment_of(self, partition: TopicPartition) -> ReplicaAssignment | None:
        topic = self.topics.get(partition.topic)
        return topic.partitions.get(partition.partition) if topic else None

    def state_of(self, partition: TopicPartition) -> PartitionState | None:
        topic = self.topics.get(partition.topic)
        return topic.states.get(partition.partition) if topic else None


def metric_name(topic: str) -> str:
    """Return a topic's name as Kafka's metrics show it. They cannot distinguish '.' and '_'."""
    return topic.replace(".", "_")


def count_partitions(topic: TopicView) -> Counts:
    """Return the counts of the partitions of one topic.

    A partition is offline if it has no leader. It is under-replicated if its ISR lacks one of the replicas that it
    should have (not counting those that a reassignment still adds). It counts as led by a non-preferred replica only if
    it has a leader. The leader's required ISR size is at most the number of assigned replicas, including those being
    added.
    """
    offline = never_led = under_replicated = under_min_isr = not_preferred = reassigning = 0
    for partition, assignment in topic.partitions.items():
        state = topic.states.get(partition)
        isr = state.leader_and_isr.isr if state else ()
        leader = state.leader_and_isr.leader if state else NO_LEADER
        is_moving = assignment.is_being_reassigned
        wanted = assignment.origin if is_moving else assignment.replicas
        reassigning += is_moving
        offline += leader == NO_LEADER
        never_led += state is None
        under_replicated += not set(wanted) <= set(isr)
        under_min_isr += len(isr) < min(topic.min_isr, len(assignment.replicas))
        not_preferred += leader not in (NO_LEADER, *assignment.replicas[:1])
    return Counts(
        partitions=len(topic.partitions),
        offline=offline,
        never_led=never_led,
        under_replicated=under_replicated,
        under_min_isr=under_min_isr,
        non_preferred_leader=not_preferred,
        reassigning=reassigning,
    )


def sum_counts(counts: Iterable[Counts]) -> Counts:
    """Return the sum of the counts of several topics."""
    return sum(counts, start=Counts())

"""What the present controller knows of its cluster, in memory.

ZooKeeper is the truth; this is the copy that decisions are made from and requests to brokers are built from. It is
filled when a term begins, changed only by the event that is being handled, after the write that it follows, and dropped
when the term ends. Everybody reads it, and whoever changes it does so by its methods: to others its collections are
read-only. Topics and their assignments are in a part of its own (`assigned_replicas`).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Set
from typing import Final, TypeVar

from controller_core.controller.state.assigned_replicas import NO_PARTITIONS, AssignedReplicas
from controller_core.controller.state.partition_counts import PartitionTally
from controller_core.controller.state.partition_removals import PartitionRemovals
from controller_core.controller.state.reassignments import Reassignments
from controller_core.controller.state.removed_replicas import RemovedReplicas
from controller_core.controller.state.replica_statuses import ReplicaStatuses
from controller_core.controller.state.topic_deletion import TopicDeletion
from controller_core.controller.state.unusable_znodes import UnusableZnodes
from controller_core.journal.changes import Changes, Kind, tracked
from controller_core.journal.configs import RecordedConfig, StaticConfig
from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import (
    BrokerId,
    PartitionId,
    PartitionReplica,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import Broker, PartitionState, ReplicaAssignment
from controller_core.model.transitions import PartitionStatus
from controller_core.zk import paths

_Key = TypeVar("_Key")


class ClusterState(AssignedReplicas):
    """Brokers, topics, and the state of every partition and replica."""

    def __init__(self, *, is_journaled: bool = False) -> None:
        changes = Changes()
        recorded_by = changes if is_journaled else None
        super().__init__(changes, recorded_by)
        self._is_loaded = False
        self.unusable: Final = UnusableZnodes()
        """Which znodes could not be taken into account."""
        self._brokers: dict[BrokerId, Broker] = tracked(Kind.BROKER, recorded_by)
        self.brokers: Final[Mapping[BrokerId, Broker]] = self._brokers
        self._shutting_down: set[BrokerId] = set()
        self.shutting_down: Final[Set[BrokerId]] = self._shutting_down
        self._states: dict[TopicPartition, PartitionState] = tracked(Kind.LEADERSHIP, recorded_by)
        self.states: Final[Mapping[TopicPartition, PartitionState]] = self._states
        self._topic_configs: dict[TopicName, RecordedConfig] = tracked(Kind.TOPIC_CONFIG, recorded_by)
        self.topic_configs: Final[Mapping[TopicName, RecordedConfig]] = self._topic_configs
        """Of those topics that have any; filled only where a journal is kept, as `broker_configs`."""
        self._broker_configs: dict[BrokerId | None, RecordedConfig] = tracked(Kind.BROKER_CONFIG, recorded_by)
        self.broker_configs: Final[Mapping[BrokerId | None, RecordedConfig]] = self._broker_configs
        """Of those brokers that have any; None is the default of all of them."""
        self._static_configs: dict[BrokerId, StaticConfig] = tracked(Kind.BROKER_STATIC_CONFIG, recorded_by)
        self.static_configs: Final[Mapping[BrokerId, StaticConfig]] = self._static_configs
        """What registered brokers said of their own files; filled only where a journal is kept."""
        self._partition_status: dict[TopicPartition, PartitionStatus] = {}
        self.partition_status: Final[Mapping[TopicPartition, PartitionStatus]] = self._partition_status
        self.replica_status: Final = ReplicaStatuses()
        self.reassignments: Final = Reassignments()
        self.removals: Final = PartitionRemovals()
        self._deletions: dict[TopicName, TopicDeletion] = {}
        self.deletions: Final[Mapping[TopicName, TopicDeletion]] = self._deletions
        self._failed_replicas: dict[BrokerId, frozenset[TopicPartition]] = tracked(Kind.OFFLINE_REPLICAS, recorded_by)
        self.failed_replicas: Final[Mapping[BrokerId, frozenset[TopicPartition]]] = self._failed_replicas
        """The replicas of live brokers that are in failed log directories; without brokers that have none."""
        self._seen_config_changes: frozenset[str] = frozenset()
        self._finalized_features: FinalizedFeatures | None = None
        self.removed_replicas: Final = RemovedReplicas()
        self._deleted_topics: Mapping[TopicName, int] = {}
        self._tally: PartitionTally | None = None
        """None until somebody asks: reading a whole cluster is not slower for it."""

    @property
    def is_loaded(self) -> bool:
        """Whether everything has been read: what is not here until then may exist."""
        return self._is_loaded

    def mark_loaded(self) -> None:
        """Everything has been read."""
        self._is_loaded = True

    @property
    def finalized_features(self) -> FinalizedFeatures | None:
        """None where `/feature` says nothing that could be understood."""
        return self._finalized_features

    def set_finalized_features(self, found: FinalizedFeatures | None) -> None:
        """What `/feature` says now."""
        if found != self._finalized_features:
            self.changes.record(Kind.FEATURES, None, self._finalized_features, found)
        self._finalized_features = found

    # Configurations

    @property
    def seen_config_changes(self) -> frozenset[str]:
        """The configuration notifications that are there, and were handled."""
        return self._seen_config_changes

    def remember_config_changes(self, present: frozenset[str]) -> None:
        """These configuration notifications are there, and are being handled."""
        self._seen_config_changes = present

    def set_topic_config(self, name: TopicName, config: RecordedConfig) -> None:
        """What a topic's configuration says now; empty where there is none."""
        _keep(self._topic_configs, name, config)

    def set_broker_config(self, broker: BrokerId | None, config: RecordedConfig) -> None:
        """What a broker's configuration says now, or that of all of them; empty where there is none."""
        _keep(self._broker_configs, broker, config)

    def set_static_config(self, broker: BrokerId, config: StaticConfig) -> None:
        """What a registered broker's own file says."""
        if config != self._static_configs.get(broker):
            self._static_configs[broker] = config

    # Brokers

    @property
    def live(self) -> Set[BrokerId]:
        """The brokers that may lead: registered and not shutting down."""
        return self.brokers.keys() - self.shutting_down

    @property
    def live_or_shutting_down(self) -> Set[BrokerId]:
        """The brokers that can be sent anything."""
        return self.brokers.keys()

    def add_broker(self, broker: Broker) -> None:
        """A broker registered, or its registration is another one now."""
        self._brokers[broker.id] = broker

    def remove_broker(self, broker: BrokerId) -> None:
        """A broker is registered no more."""
        self._brokers.pop(broker, None)
        self._shutting_down.discard(broker)
        self.set_failed_replicas(broker, frozenset())
        self._static_configs.pop(broker, None)

    def begin_shutdown(self, broker: BrokerId) -> None:
        """A live broker is about to end, and may lead nothing any more."""
        self._shutting_down.add(broker)

    def rack_of_controller(self) -> str | None:
        """The rack that the controller has to brokers, which place replicas on racks only where every broker has one:
        the largest, where one more changes least. None where they do not place by racks anyway."""
        racks = Counter(broker.rack for broker in self.brokers.values())
        if None in racks:
            return None
        return min(((-number, rack) for rack, number in racks.items() if rack is not None), default=(0, None))[1]

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
            self._failed_replicas.pop(broker, None)
        elif failed != self._failed_replicas.get(broker):
            self._failed_replicas[broker] = failed
        if self._tally is not None:
            led = self.led_by(filter(self.has, failed), {broker})
            self._tally.set_led_on_failed(broker, len(led))

    # Topics and partitions

    def add_topic(
        self,
        name: TopicName,
        topic_id: TopicId | None,
        czxid: int,
        partitions: Mapping[PartitionId, ReplicaAssignment] = NO_PARTITIONS,
    ) -> None:
        """See `AssignedReplicas`."""
        super().add_topic(name, topic_id, czxid, partitions)
        self._count_in(self.partitions_of(name))

    def set_assignment(self, topic_partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        """See `AssignedReplicas`."""
        self._count_out((topic_partition,))
        super().set_assignment(topic_partition, assignment)
        self._count_in((topic_partition,))

    def take_over(self, read: "ClusterState") -> None:
        """Topics and the states of their partitions, as somebody else has read them, whose they are no longer.

        Before anything else is known of topics. They are in the order of their names, as ZooKeeper lists them."""
        self._tally = None
        self._take_over_topics(read)
        self._states.update(read.states)

    def remove_topic(self, name: TopicName) -> list[TopicPartition]:
        """Forgets a topic with everything about its partitions; returns what they were."""
        forgotten = self.partitions_of(name)
        self._forget_leaderships(forgotten)
        self.removals.forget_topic(name)
        self._deletions.pop(name, None)
        self._topic_configs.pop(name, None)
        self._count_out(forgotten)
        self._forget_topic(name)
        return forgotten

    def begin_removals(self, partitions: Collection[TopicPartition]) -> None:
        """Forgets partitions of topics that stay, but for the replicas that are to be deleted."""
        for topic_partition in partitions:
            self.removals.begin(topic_partition, self.known_replicas(topic_partition))
        self._forget_leaderships(partitions)
        self._count_out(partitions)
        for topic_partition in partitions:
            self._forget_partition(topic_partition)

    def _forget_leaderships(self, partitions: Iterable[TopicPartition]) -> None:
        forgotten = list(partitions)
        self._count_out(forgotten)
        for topic_partition in forgotten:
            for broker in self.known_replicas(topic_partition):
                self.replica_status.remove(PartitionReplica(topic_partition, broker))
            self._states.pop(topic_partition, None)
            self._partition_status.pop(topic_partition, None)
            if topic_partition in self.reassignments:
                self.reassignments.end(topic_partition)
        self._count_in(forgotten)
        for broker, failed in list(self.failed_replicas.items()):
            if not failed.isdisjoint(forgotten):
                self.set_failed_replicas(broker, failed.difference(forgotten))

    def may_have(self, topic_partition: TopicPartition) -> bool:
        """Whether there is such a partition, or nobody can tell: its topic's znode makes no sense, or not all of it."""
        return self.has(topic_partition) or self.unusable.has(paths.topic(topic_partition.topic))

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

    def mark_for_deletion(self, name: TopicName, replicas: Iterable[PartitionReplica]) -> None:
        """A topic with these replicas is to be deleted."""
        self._deletions[name] = TopicDeletion(replicas)

    @property
    def deleted_topics(self) -> Mapping[TopicName, int]:
        """Topics that were deleted of late, the oldest first, and how many partitions they had."""
        return self._deleted_topics

    def set_deleted_topics(self, topics: Mapping[TopicName, int]) -> None:
        """The topics that were deleted of late, the oldest first."""
        self._deleted_topics = topics

    # States of partitions

    def set_states(self, states: Mapping[TopicPartition, PartitionState]) -> None:
        """The states of these partitions, as they were read or written."""
        self._count_out(states)
        self._states.update(states)
        self._count_in(states)

    def forget_state(self, topic_partition: TopicPartition) -> None:
        """What was read of a partition's state is so no longer."""
        self._count_out((topic_partition,))
        self._states.pop(topic_partition, None)
        self._count_in((topic_partition,))

    def start_partitions(self, statuses: Mapping[TopicPartition, PartitionStatus]) -> None:
        """The first status of partitions."""
        self._partition_status.update(statuses)

    def set_partition_status(
        self, partitions: Iterable[TopicPartition], status: PartitionStatus
    ) -> Mapping[PartitionStatus, list[TopicPartition]]:
        """Sets the status of partitions; returns those that had another, by which that was."""
        statuses = self._partition_status
        changed: defaultdict[PartitionStatus, list[TopicPartition]] = defaultdict(list)
        for partition in partitions:
            before = statuses.get(partition, PartitionStatus.NON_EXISTENT)
            if before is not status:
                statuses[partition] = status
                changed[before].append(partition)
        return changed

    # Counts

    @property
    def tally(self) -> PartitionTally:
        """The counts of the partitions, kept from the first time on that they are asked for: that looks at all of them."""
        if self._tally is None:
            self._tally = PartitionTally(self.failed_replicas)
            self._count_in(self.all_partitions())
        return self._tally

    def _count_in(self, partitions: Iterable[TopicPartition]) -> None:
        if self._tally is not None:
            for alike in self._alike(partitions):
                self._tally.count_in(*alike)

    def _count_out(self, partitions: Iterable[TopicPartition]) -> None:
        """Before anything of them is changed that counts."""
        if self._tally is not None:
            for alike in self._alike(partitions):
                self._tally.count_out(*alike)

    def _alike(
        self, partitions: Iterable[TopicPartition]
    ) -> Iterable[tuple[list[TopicPartition], ReplicaAssignment, PartitionState | None]]:
        """The known ones of the partitions, those together that count alike: a cluster has few different ones."""
        found: dict[Hashable, tuple[list[TopicPartition], ReplicaAssignment, PartitionState | None]] = {}
        topics, states = self.topics, self.states
        for partition in partitions:
            topic = topics.get(partition.topic)
            assignment = topic.partitions.get(partition.partition) if topic is not None else None
            if assignment is None:
                continue
            state = states.get(partition)
            # An assignment is shared by all partitions that have the same.
            key = id(assignment), state and (state.leader_and_isr.leader, state.leader_and_isr.isr)
            alike = found.get(key)
            if alike is None:
                alike = found[key] = [], assignment, state
            alike[0].append(partition)
        return found.values()

    # Questions of the operations

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


def _keep(configs: dict[_Key, RecordedConfig], key: _Key, config: RecordedConfig) -> None:
    if not config:
        configs.pop(key, None)
    elif configs.get(key) != config:
        configs[key] = config


def bounced(known: Mapping[BrokerId, Broker], present: Mapping[BrokerId, Broker]) -> list[BrokerId]:
    """The brokers that were down and are back before anyone noticed: the same id with a larger epoch (KIP-380)."""
    return [broker for broker in present if broker in known and present[broker].epoch > known[broker].epoch]

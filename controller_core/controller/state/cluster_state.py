"""The present controller's copy of the cluster, in memory.

ZooKeeper has the truth. Decisions are made, and requests built, from this copy. It is filled when a term begins,
changed only by the event that is being handled, after the corresponding write, and dropped when the term ends.
Everybody reads it. Changes go through its methods; its collections are read-only to others. Topics and their
assignments are in `assigned_replicas`.
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
from controller_core.journal.changes import Changes, Kind, make_tracked_dict
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
        """The znodes that could not be used."""
        self._brokers: dict[BrokerId, Broker] = make_tracked_dict(Kind.BROKER, recorded_by)
        self.brokers: Final[Mapping[BrokerId, Broker]] = self._brokers
        self._shutting_down: set[BrokerId] = set()
        self.shutting_down: Final[Set[BrokerId]] = self._shutting_down
        self._drained: set[BrokerId] = set()
        self.drained: Final[Set[BrokerId]] = self._drained
        """The brokers that were shutting down when they ended, and have not returned."""
        self._states: dict[TopicPartition, PartitionState] = make_tracked_dict(Kind.LEADERSHIP, recorded_by)
        self.states: Final[Mapping[TopicPartition, PartitionState]] = self._states
        self._topic_configs: dict[TopicName, RecordedConfig] = make_tracked_dict(Kind.TOPIC_CONFIG, recorded_by)
        self.topic_configs: Final[Mapping[TopicName, RecordedConfig]] = self._topic_configs
        """For topics that have any. Filled only if there is a journal, like `broker_configs`."""
        self._broker_configs: dict[BrokerId | None, RecordedConfig] = make_tracked_dict(Kind.BROKER_CONFIG, recorded_by)
        self.broker_configs: Final[Mapping[BrokerId | None, RecordedConfig]] = self._broker_configs
        """For brokers that have any; None is the default for all of them."""
        self._static_configs: dict[BrokerId, StaticConfig] = make_tracked_dict(Kind.BROKER_STATIC_CONFIG, recorded_by)
        self.static_configs: Final[Mapping[BrokerId, StaticConfig]] = self._static_configs
        """The static configurations that registered brokers returned. Filled only if there is a journal."""
        self._partition_status: dict[TopicPartition, PartitionStatus] = {}
        self.partition_status: Final[Mapping[TopicPartition, PartitionStatus]] = self._partition_status
        self.replica_status: Final = ReplicaStatuses()
        self.reassignments: Final = Reassignments()
        self.removals: Final = PartitionRemovals()
        self._deletions: dict[TopicName, TopicDeletion] = {}
        self.deletions: Final[Mapping[TopicName, TopicDeletion]] = self._deletions
        self._failed_replicas: dict[BrokerId, frozenset[TopicPartition]] = make_tracked_dict(
            Kind.OFFLINE_REPLICAS, recorded_by
        )
        self.failed_replicas: Final[Mapping[BrokerId, frozenset[TopicPartition]]] = self._failed_replicas
        """The replicas of live brokers that are in failed log directories. Brokers without any have no entry."""
        self._seen_config_changes: frozenset[str] = frozenset()
        self._finalized_features: FinalizedFeatures | None = None
        self.removed_replicas: Final = RemovedReplicas()
        self._deleted_topics: Mapping[TopicName, int] = {}
        self._tally: PartitionTally | None = None
        """None until the first use, so that counting does not slow down the loading of a cluster."""

    @property
    def is_loaded(self) -> bool:
        """True if everything has been read. Before that, something that is missing here may exist."""
        return self._is_loaded

    def mark_loaded(self) -> None:
        """Mark the state as loaded: everything has been read."""
        self._is_loaded = True

    @property
    def finalized_features(self) -> FinalizedFeatures | None:
        """None if `/feature` has no readable content."""
        return self._finalized_features

    def set_finalized_features(self, found: FinalizedFeatures | None) -> None:
        """Set the present content of `/feature`."""
        if found != self._finalized_features:
            self.changes.record(Kind.FEATURES, None, self._finalized_features, found)
        self._finalized_features = found

    # Configurations

    @property
    def seen_config_changes(self) -> frozenset[str]:
        """The present configuration notifications that were handled."""
        return self._seen_config_changes

    def remember_config_changes(self, present: frozenset[str]) -> None:
        """Set the present configuration notifications. They are being handled."""
        self._seen_config_changes = present

    def set_topic_config(self, name: TopicName, config: RecordedConfig) -> None:
        """Set the present configuration of a topic; empty if it has none."""
        _keep(self._topic_configs, name, config)

    def set_broker_config(self, broker: BrokerId | None, config: RecordedConfig) -> None:
        """Set the present configuration of a broker, or of all brokers (None); empty if there is none."""
        _keep(self._broker_configs, broker, config)

    def set_static_config(self, broker: BrokerId, config: StaticConfig) -> None:
        """Set the static configuration of a registered broker."""
        if config != self._static_configs.get(broker):
            self._static_configs[broker] = config

    # Brokers

    @property
    def live(self) -> Set[BrokerId]:
        """The brokers that may lead: registered and not shutting down."""
        return self.brokers.keys() - self.shutting_down

    @property
    def live_or_shutting_down(self) -> Set[BrokerId]:
        """The brokers to which requests can be sent."""
        return self.brokers.keys()

    def add_broker(self, broker: Broker) -> None:
        """Add a registered broker, or replace its registration."""
        self._brokers[broker.id] = broker
        self._drained.discard(broker.id)

    def remove_broker(self, broker: BrokerId) -> None:
        """Remove a broker that is no longer registered."""
        self._brokers.pop(broker, None)
        if broker in self._shutting_down:
            self._shutting_down.discard(broker)
            self.mark_drained(broker)
        self.set_failed_replicas(broker, frozenset())
        self._static_configs.pop(broker, None)

    def begin_shutdown(self, broker: BrokerId) -> None:
        """Mark a live broker as shutting down. It may not lead any longer."""
        self._shutting_down.add(broker)

    def mark_drained(self, broker: BrokerId) -> None:
        """Mark a broker that is not registered as one whose end was in order."""
        self._drained.add(broker)

    def find_relieved(self) -> Set[BrokerId]:
        """Return the brokers that are shutting down and lead nothing any more, so that no client needs them."""
        return {broker for broker in self.shutting_down if not self.tally.count_led_by(broker)}

    def find_rack_of_controller(self) -> str | None:
        """Return the rack that brokers see for the controller; None if they do not place replicas by racks.

        They do so only if every broker has a rack, so the controller needs one too. It gets the largest rack, where one
        more broker changes least.
        """
        racks = Counter(broker.rack for broker in self.brokers.values())
        if None in racks:
            return None
        return min(((-number, rack) for rack, number in racks.items() if rack is not None), default=(0, None))[1]

    def find_live_replicas(self, topic_partition: TopicPartition) -> Set[BrokerId]:
        """Return the assigned replicas that may lead: their broker may, and their log directory is sound."""
        assigned = self.live & set(self.assignment(topic_partition).replicas)
        return {broker for broker in assigned if self.is_served_by(topic_partition, broker)}

    def is_served_by(self, topic_partition: TopicPartition, broker: BrokerId) -> bool:
        """Return True if a replica on the broker is alive: its broker is, and so is its log directory."""
        return broker in self.brokers and topic_partition not in self.failed_replicas.get(broker, ())

    def set_failed_replicas(self, broker: BrokerId, failed: frozenset[TopicPartition]) -> None:
        """Replace the known replicas in failed log directories of a live broker."""
        if not failed:
            self._failed_replicas.pop(broker, None)
        elif failed != self._failed_replicas.get(broker):
            self._failed_replicas[broker] = failed
        if self._tally is not None:
            led = self.find_led_by(filter(self.has, failed), {broker})
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
        self._count_in(self.list_partitions_of(name))

    def set_assignment(self, topic_partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        """See `AssignedReplicas`."""
        self._count_out((topic_partition,))
        super().set_assignment(topic_partition, assignment)
        self._count_in((topic_partition,))

    def take_over(self, read: "ClusterState") -> None:
        """Take over the topics and partition states that a standby has read. The standby must not use them afterwards.

        Call this before any topic is known. Topics are sorted by name, as ZooKeeper lists them.
        """
        self._tally = None
        self._take_over_topics(read)
        self._states.update(read.states)

    def remove_topic(self, name: TopicName) -> list[TopicPartition]:
        """Forget a topic with everything about its partitions. Return the partitions."""
        forgotten = self.list_partitions_of(name)
        self._forget_leaderships(forgotten)
        self.removals.forget_topic(name)
        self._deletions.pop(name, None)
        self._topic_configs.pop(name, None)
        self._count_out(forgotten)
        self._forget_topic(name)
        return forgotten

    def begin_removals(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions of topics that stay, except the replicas that are to be deleted."""
        for topic_partition in partitions:
            self.removals.begin(topic_partition, self.list_known_replicas(topic_partition))
        self._forget_leaderships(partitions)
        self._count_out(partitions)
        for topic_partition in partitions:
            self._forget_partition(topic_partition)

    def _forget_leaderships(self, partitions: Iterable[TopicPartition]) -> None:
        forgotten = list(partitions)
        self._count_out(forgotten)
        for topic_partition in forgotten:
            for broker in self.list_known_replicas(topic_partition):
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
        """Return True if the partition exists, or may exist in the unreadable part of its topic's znode."""
        return self.has(topic_partition) or self.unusable.has(paths.topic(topic_partition.topic))

    def list_known_replicas(self, topic_partition: TopicPartition) -> tuple[BrokerId, ...]:
        """Return the assigned replicas and, in the last steps of a reassignment, those that are being removed."""
        assigned = self.assignment(topic_partition).replicas
        running = self.reassignments.get(topic_partition)
        leaving = running.full.removing if running else ()
        return (*assigned, *(broker for broker in leaving if broker not in assigned))

    def is_assigned(self, replica: PartitionReplica) -> bool:
        """Return True if the replica is assigned to the partition, or is being removed from it."""
        return self.has(replica.topic_partition) and replica.broker in self.list_known_replicas(replica.topic_partition)

    def is_being_deleted(self, name: TopicName) -> bool:
        """Return True if a topic is no longer served. Deletion ends all reassignments of its partitions."""
        return name in self.deletions

    def has_deletion_started(self, name: TopicName) -> bool:
        """Return True if brokers have been sent the deletion of the topic."""
        return name in self.deletions and self.deletions[name].started

    def is_held_up(self, name: TopicName) -> bool:
        """Return True if a topic's deletion waits: for a dead broker, or for a replica that cannot be deleted."""
        deletion = self.deletions[name]
        return not deletion.started or any(
            replica in deletion.refused or not self.is_served_by(replica.topic_partition, replica.broker)
            for replica in deletion.awaiting_deletion
        )

    def mark_for_deletion(self, name: TopicName, replicas: Iterable[PartitionReplica]) -> None:
        """Mark a topic with these replicas for deletion."""
        self._deletions[name] = TopicDeletion(replicas)

    @property
    def deleted_topics(self) -> Mapping[TopicName, int]:
        """The recently deleted topics, the oldest first, with their numbers of partitions."""
        return self._deleted_topics

    def set_deleted_topics(self, topics: Mapping[TopicName, int]) -> None:
        """Set the recently deleted topics, the oldest first."""
        self._deleted_topics = topics

    # States of partitions

    def set_states(self, states: Mapping[TopicPartition, PartitionState]) -> None:
        """Set the states of these partitions, as they were read or written."""
        self._count_out(states)
        self._states.update(states)
        self._count_in(states)

    def forget_state(self, topic_partition: TopicPartition) -> None:
        """Forget the state of a partition, because it has changed since it was read."""
        self._count_out((topic_partition,))
        self._states.pop(topic_partition, None)
        self._count_in((topic_partition,))

    def start_partitions(self, statuses: Mapping[TopicPartition, PartitionStatus]) -> None:
        """Set the first status of partitions."""
        self._partition_status.update(statuses)

    def set_partition_status(
        self, partitions: Iterable[TopicPartition], status: PartitionStatus
    ) -> Mapping[PartitionStatus, list[TopicPartition]]:
        """Set the status of partitions. Return those that had another one, by that former status."""
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
        """The counts of the partitions. The first use counts all of them; later changes update the counts."""
        if self._tally is None:
            self._tally = PartitionTally(self.failed_replicas)
            self._count_in(self.all_partitions())
        return self._tally

    def _count_in(self, partitions: Iterable[TopicPartition]) -> None:
        if self._tally is not None:
            for alike in self._alike(partitions):
                self._tally.count_in(*alike)

    def _count_out(self, partitions: Iterable[TopicPartition]) -> None:
        """Must be called before anything changes that counts."""
        """Before anything of them is changed that counts."""
        if self._tally is not None:
            for alike in self._alike(partitions):
                self._tally.count_out(*alike)

    def _alike(
        self, partitions: Iterable[TopicPartition]
    ) -> Iterable[tuple[list[TopicPartition], ReplicaAssignment, PartitionState | None]]:
        """Group the known ones of the partitions by what counts. A cluster has few different groups."""
        found: dict[Hashable, tuple[list[TopicPartition], ReplicaAssignment, PartitionState | None]] = {}
        topics, states = self.topics, self.states
        for partition in partitions:
            topic = topics.get(partition.topic)
            assignment = topic.partitions.get(partition.partition) if topic is not None else None
            if assignment is None:
                continue
            state = states.get(partition)
            # All partitions with the same assignment share one object.
            key = id(assignment), state and (state.leader_and_isr.leader, state.leader_and_isr.isr)
            alike = found.get(key)
            if alike is None:
                alike = found[key] = [], assignment, state
            alike[0].append(partition)
        return found.values()

    # Questions of the operations

    def list_partitions_in(self, *statuses: PartitionStatus) -> list[TopicPartition]:
        wanted = set(statuses)
        return [partition for partition, status in self.partition_status.items() if status in wanted]

    def find_led_by(self, partitions: Iterable[TopicPartition], leaders: Set[BrokerId]) -> list[TopicPartition]:
        """Return the partitions whose leader is one of the given brokers."""
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


def find_bounced(known: Mapping[BrokerId, Broker], present: Mapping[BrokerId, Broker]) -> list[BrokerId]:
    """Return the brokers that restarted before anybody noticed: the same id with a larger epoch (KIP-380)."""
    return [broker for broker in present if broker in known and present[broker].epoch > known[broker].epoch]

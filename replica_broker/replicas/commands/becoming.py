"""Applies the controller's LeaderAndIsr to replicas (seed 004, C). Each of its partitions succeeds or fails alone.

These are the seed's `on_LeaderAndISRCommand`, `startReplica`, `becomeLeader` and `becomeFollower` with two rules of
Kafka. Only a larger leader epoch is applied. A replica whose log has another topic id is left alone, because only the
controller knows which of the two topics is deleted.

The seed's flag INIT, which deletes all unlisted replicas, does not exist: stock brokers would not know it. Unlisted
replicas stay until a StopReplica deletes them. The controller's `controller_core.controller.znodes.removed_replicas`
makes sure that it is sent.
"""

from collections.abc import Mapping

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.model.ids import NO_EPOCH, BrokerId, TopicId, TopicPartition
from controller_core.wire.messages import (
    ErrorCode,
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from replica_broker.log.errors import LogError
from replica_broker.replicas.errors import ReplicaRefused, StorageFailed
from replica_broker.replicas.following.applying import Applying
from replica_broker.replicas.following.fetchers import Fetchers
from replica_broker.replicas.leading.committing import Committing
from replica_broker.replicas.leading.isr_changes import IsrChanges
from replica_broker.replicas.partition import Partition
from replica_broker.replicas.replica import Replica
from replica_broker.replicas.seams import LeaderEndpoint, TopicConfigs
from replica_broker.replicas.settings import ReplicaSettings
from replica_broker.replicas.storage import Storage

log = structlog.get_logger()

Leaders = Mapping[BrokerId, LeaderEndpoint]


class Becoming:
    """Applies the controller's decisions about replicas."""

    def __init__(
        self,
        settings: ReplicaSettings,
        storage: Storage,
        fetchers: Fetchers,
        applying: Applying,
        committing: Committing,
        isr_changes: IsrChanges,
        configs: TopicConfigs,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._storage = storage
        self._fetchers = fetchers
        self._applying = applying
        self._committing = committing
        self._isr_changes = isr_changes
        self._configs = configs
        self._clock = clock

    def on_leader_and_isr_command(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Apply the seed's `on_LeaderAndISRCommand`."""
        leaders = {
            leader.broker_id: LeaderEndpoint(leader.broker_id, leader.host_name, leader.port)
            for leader in request.live_leaders
        }
        topics = []
        for topic in request.topic_states:
            errors = []
            for state in topic.partition_states:
                topic_partition = TopicPartition(topic.topic_name, state.partition_index)
                error = self._judge(topic_partition, topic.topic_id, state, leaders)
                errors.append(LeaderAndIsrPartitionError(partition_index=state.partition_index, error_code=error))
            topics.append(LeaderAndIsrTopicError(topic_id=topic.topic_id, partition_errors=tuple(errors)))
        return LeaderAndIsrResponse(error_code=ErrorCode.none, topics=tuple(topics))

    def _judge(
        self,
        topic_partition: TopicPartition,
        topic_id: TopicId | None,
        state: LeaderAndIsrPartitionState,
        leaders: Leaders,
    ) -> ErrorCode:
        try:
            return self._apply(topic_partition, topic_id, state, leaders)
        except (ReplicaRefused, LogError) as error:
            log.warning("a command was refused", partition=str(topic_partition), reason=str(error))
            return error.error_code

    def _apply(
        self,
        topic_partition: TopicPartition,
        topic_id: TopicId | None,
        state: LeaderAndIsrPartitionState,
        leaders: Leaders,
    ) -> ErrorCode:
        """Apply the state of one partition. Raises `ReplicaRefused` and `LogError`."""
        if self._storage.is_offline(topic_partition):
            return ErrorCode.kafka_storage_error
        known_id = self._storage.directories.find_topic_id(topic_partition)
        if None not in (known_id, topic_id) and known_id != topic_id:
            return ErrorCode.inconsistent_topic_id
        partition = self._storage.hosted.get(topic_partition)
        current_epoch = NO_EPOCH if partition is None else partition.leader_epoch
        if partition is not None and state.leader_epoch == current_epoch and known_id is None and topic_id is not None:
            self._learn_id(partition, topic_id)
            return ErrorCode.none
        if state.leader_epoch <= current_epoch:
            return ErrorCode.stale_controller_epoch
        if self._settings.broker_id not in state.replicas:
            return ErrorCode.unknown_topic_or_partition
        if partition is None:
            partition = self._start_replica(topic_partition, topic_id, is_new=state.is_new)
        elif known_id is None and topic_id is not None:
            self._learn_id(partition, topic_id)
        if state.leader == self._settings.broker_id:
            self._become_leader(partition, state)
        else:
            self._become_follower(partition, state, leaders.get(state.leader))
        return ErrorCode.none

    def _start_replica(self, topic_partition: TopicPartition, topic_id: TopicId | None, *, is_new: bool) -> Partition:
        """Run the seed's `startReplica`. The next periodic checkpoint includes the replica.

        If a directory has failed, the log may be in it. Then a log is created in another directory only for a new
        replica.
        """
        directories = self._storage.directories
        if self._storage.may_be_offline(topic_partition) and not is_new:
            raise StorageFailed(topic_partition, "its log may be in the directory that failed")
        with self._storage.guard(topic_partition):
            its_log = directories.open_log(topic_partition, topic_id, self._configs.log_config(topic_partition.topic))
        checkpointed = directories.find_high_watermark(topic_partition) or 0
        replica = Replica(broker_id=self._settings.broker_id, log=its_log, high_watermark=checkpointed)
        replica.cut_high_watermark()
        partition = Partition(topic_partition, topic_id or directories.find_topic_id(topic_partition), replica)
        self._storage.hosted[topic_partition] = partition
        return partition

    def _learn_id(self, partition: Partition, topic_id: TopicId) -> None:
        """Write the topic id of a log that was created before the topic had one."""
        config = self._configs.log_config(partition.topic_partition.topic)
        with self._storage.guard(partition.topic_partition):
            self._storage.directories.open_log(partition.topic_partition, topic_id, config)
        partition.topic_id = topic_id

    def _become_leader(self, partition: Partition, state: LeaderAndIsrPartitionState) -> None:
        """Run the seed's `becomeLeader`. The high watermark stays, and may be lower than the previous leader's."""
        if state.partition_epoch < partition.partition_epoch:
            log.warning("a command is older than the known state", partition=str(partition.topic_partition))
            return
        self._fetchers.stop(partition.topic_partition)
        with self._storage.guard(partition.topic_partition):
            is_new = partition.become_leader(state, self._clock.monotonic_ms())
        log.info(
            "leading" if is_new else "still leading",
            partition=str(partition.topic_partition),
            leader_epoch=partition.leader_epoch,
            isr=partition.isr,
            high_watermark=partition.high_watermark,
            end_offset=partition.replica.end_offset,
        )
        self._committing.advance(partition)
        self._isr_changes.report_recovered(partition)
        partition.notify()

    def _become_follower(
        self, partition: Partition, state: LeaderAndIsrPartitionState, leader: LeaderEndpoint | None
    ) -> None:
        """Run the seed's `becomeFollower`. Without a live leader, nothing is fetched."""
        self._fetchers.stop(partition.topic_partition)
        partition.become_follower(state)
        log.info(
            "following", partition=str(partition.topic_partition), leader=state.leader, leader_epoch=state.leader_epoch
        )
        partition.notify()
        if self._settings.truncate_to == "high watermark":
            self._applying.cut_to_high_watermark(partition)
        if leader is not None and not partition.is_offline:
            self._fetchers.follow(partition, leader)

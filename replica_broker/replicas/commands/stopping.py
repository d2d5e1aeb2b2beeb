"""Applies the controller's StopReplica (seed 004, C): stops a replica, and deletes it if the command says so.

The seed always deletes. Kafka's command has a flag (KIP-570), because a broker that shuts down keeps its logs. A
deletion of a missing log succeeds, because the controller repeats the command after a lost answer. A log without a
running replica is deleted, too: it may be left from a topic that was deleted while this broker was down.
"""

from controller_core.model.ids import EPOCH_DURING_DELETE, NO_EPOCH, TopicPartition
from controller_core.wire.messages import (
    ErrorCode,
    StopReplicaPartitionError,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
)
from replica_broker.log.errors import LogError
from replica_broker.replicas.errors import ReplicaRefused
from replica_broker.replicas.following.fetchers import Fetchers
from replica_broker.replicas.storage import Storage


class Stopping:
    """Stops and deletes replicas."""

    def __init__(self, storage: Storage, fetchers: Fetchers) -> None:
        self._storage = storage
        self._fetchers = fetchers

    def on_stop_replica_command(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Apply the seed's `on_StopReplicaCommand`."""
        errors = tuple(
            StopReplicaPartitionError(
                topic_name=topic.topic_name,
                partition_index=state.partition_index,
                error_code=self._stop(TopicPartition(topic.topic_name, state.partition_index), state),
            )
            for topic in request.topic_states
            for state in topic.partition_states
        )
        return StopReplicaResponse(error_code=ErrorCode.none, partition_errors=errors)

    def _stop(self, topic_partition: TopicPartition, state: StopReplicaPartitionState) -> ErrorCode:
        """Run the seed's `stopReplica`."""
        if self._storage.is_offline(topic_partition):
            return ErrorCode.kafka_storage_error
        partition = self._storage.hosted.get(topic_partition)
        # These two say that the epoch is unknown, or that the topic is deleted, and switch the check off.
        is_epoch_compared = state.leader_epoch not in (NO_EPOCH, EPOCH_DURING_DELETE)
        if partition is not None and is_epoch_compared and state.leader_epoch < partition.leader_epoch:
            return ErrorCode.fenced_leader_epoch
        self._fetchers.stop(topic_partition)
        if partition is not None:
            partition.stop()
        if not state.delete_partition:
            return ErrorCode.none
        self._storage.hosted.pop(topic_partition, None)
        try:
            with self._storage.guard(topic_partition):
                self._storage.directories.delete(topic_partition)
        except (ReplicaRefused, LogError) as error:
            return error.error_code
        finally:
            if partition is not None:
                partition.notify()
        return ErrorCode.none

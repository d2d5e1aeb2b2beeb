"""The errors of a replica, each with Kafka's error code.

They never harm the broker. The code tells the client whether and whom to ask again.
"""

from typing import ClassVar

from controller_core.model.ids import TopicPartition
from controller_core.wire.messages import ErrorCode


class ReplicaRefused(Exception):
    """A request is refused for one partition. The subclass gives the reason."""

    error_code: ClassVar[ErrorCode] = ErrorCode.unknown_server_error

    def __init__(self, topic_partition: TopicPartition, why: str) -> None:
        super().__init__(f"{topic_partition}: {why}")
        self.topic_partition = topic_partition


class UnknownPartition(ReplicaRefused):
    """No controller has announced such a partition to this broker."""

    error_code = ErrorCode.unknown_topic_or_partition


class NotLeader(ReplicaRefused):
    """The seed's NotLeaderException: another broker leads the partition, or it has no leader."""

    error_code = ErrorCode.not_leader_or_follower


class FencedLeaderEpoch(ReplicaRefused):
    """The request has an older leader epoch than this broker."""

    error_code = ErrorCode.fenced_leader_epoch


class UnknownLeaderEpoch(ReplicaRefused):
    """The request has a newer leader epoch than this broker, which will learn it soon."""

    error_code = ErrorCode.unknown_leader_epoch


class InconsistentTopicId(ReplicaRefused):
    """The topic was deleted and created again, and one side does not know it yet."""

    error_code = ErrorCode.inconsistent_topic_id


class NotEnoughReplicas(ReplicaRefused):
    """The ISR is smaller than `min.insync.replicas`. Nothing was appended."""

    error_code = ErrorCode.not_enough_replicas


class NotEnoughReplicasAfterAppend(ReplicaRefused):
    """Too many members left the ISR during the replication: the messages are in the log and may be lost."""

    error_code = ErrorCode.not_enough_replicas_after_append


class ReplicationTimedOut(ReplicaRefused):
    """The messages are in the log, but did not reach the whole ISR in time."""

    error_code = ErrorCode.request_timed_out


class OffsetNotAvailable(ReplicaRefused):
    """A new leader does not know the committed offset yet: its high watermark is from its time as a follower."""

    error_code = ErrorCode.offset_not_available


class BeyondHighWatermark(ReplicaRefused):
    """The offset to delete up to is above the high watermark. Nothing was deleted."""

    error_code = ErrorCode.offset_out_of_range


class NotDeletable(ReplicaRefused):
    """The topic's `cleanup.policy` has no `delete`, so its consumers need all messages."""

    error_code = ErrorCode.policy_violation


class StorageFailed(ReplicaRefused):
    """The log directory of the partition failed. The replica is offline until the broker restarts."""

    error_code = ErrorCode.kafka_storage_error

"""Why a replica refuses what it is asked. Each error carries the code with which Kafka answers it.

None of them harms the broker: who asked is told, and whether to ask again, and whom, is in the code (Kafka's
`retriable` ones are so).
"""

from typing import ClassVar

from controller_core.model.ids import TopicPartition
from controller_core.wire.messages import ErrorCode


class ReplicaRefused(Exception):
    """One partition's part of a request is refused. The subclass says why."""

    error_code: ClassVar[ErrorCode] = ErrorCode.unknown_server_error

    def __init__(self, topic_partition: TopicPartition, why: str) -> None:
        super().__init__(f"{topic_partition}: {why}")
        self.topic_partition = topic_partition


class UnknownPartition(ReplicaRefused):
    """Nobody has told this broker of such a partition."""

    error_code = ErrorCode.unknown_topic_or_partition


class NotLeader(ReplicaRefused):
    """The seed's NotLeaderException: another broker leads the partition, or nobody does."""

    error_code = ErrorCode.not_leader_or_follower


class FencedLeaderEpoch(ReplicaRefused):
    """Whoever asks knows an older leader epoch than this broker."""

    error_code = ErrorCode.fenced_leader_epoch


class UnknownLeaderEpoch(ReplicaRefused):
    """Whoever asks knows a newer leader epoch than this broker, which hears of it soon."""

    error_code = ErrorCode.unknown_leader_epoch


class InconsistentTopicId(ReplicaRefused):
    """The topic was deleted and created again, and one of the two has not noticed."""

    error_code = ErrorCode.inconsistent_topic_id


class NotEnoughReplicas(ReplicaRefused):
    """Fewer replicas are in sync than `min.insync.replicas`: nothing was appended."""

    error_code = ErrorCode.not_enough_replicas


class NotEnoughReplicasAfterAppend(ReplicaRefused):
    """So many left the ISR while the messages were replicated: they are in the log, and may be lost."""

    error_code = ErrorCode.not_enough_replicas_after_append


class ReplicationTimedOut(ReplicaRefused):
    """The messages are in the log, and were not on all replicas in sync within the time."""

    error_code = ErrorCode.request_timed_out


class OffsetNotAvailable(ReplicaRefused):
    """A new leader does not know yet what is committed: its high watermark is that of its time as a follower."""

    error_code = ErrorCode.offset_not_available


class BeyondHighWatermark(ReplicaRefused):
    """What is to be deleted is not committed, or not there: nothing was deleted."""

    error_code = ErrorCode.offset_out_of_range


class NotDeletable(ReplicaRefused):
    """The topic's `cleanup.policy` has no `delete`: its messages are of those who need all of them."""

    error_code = ErrorCode.policy_violation


class StorageFailed(ReplicaRefused):
    """The log directory of the partition failed: the replica is offline until the broker starts again."""

    error_code = ErrorCode.kafka_storage_error

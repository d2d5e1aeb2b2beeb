"""OffsetForLeaderEpoch: the end of a leader epoch in the leader's log.

Followers use it to truncate, and consumers to detect lost messages (KIP-101, KIP-320).
"""

from typing import Final

from kio.schema.errors import ErrorCode
from kio.schema.offset_for_leader_epoch.v4.request import OffsetForLeaderEpochRequest, OffsetForLeaderPartition
from kio.schema.offset_for_leader_epoch.v4.response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kio.static.primitive import i32, i64

from controller_core.model.ids import LeaderEpoch, PartitionId, TopicName, TopicPartition
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.limits.request_limits import RequestLimits
from controller_core.wire.messages import NO_THROTTLE
from replica_broker.log.errors import LogError
from replica_broker.replicas.errors import ReplicaRefused
from replica_broker.replicas.replicas import Replicas

VERSIONS: Final = Versions(OffsetForLeaderEpochRequest, oldest=2)
LIMITS: Final = RequestLimits(max_items=1_000_000)


def on_offset_for_leader_epoch(
    replicas: Replicas, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Answer for each partition on its own."""
    return OffsetForLeaderEpochResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(_end(replicas, TopicName(topic.topic), asked) for asked in topic.partitions),
            )
            for topic in request.topics
        ),
    )


def _end(replicas: Replicas, topic: TopicName, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        end = replicas.find_epoch_end(
            TopicPartition(topic, PartitionId(asked.partition)),
            current_leader_epoch=LeaderEpoch(asked.current_leader_epoch),
            asked_epoch=LeaderEpoch(asked.leader_epoch),
        )
    except (ReplicaRefused, LogError) as error:
        return EpochEndOffset(error_code=error.error_code, partition=asked.partition)
    return EpochEndOffset(
        error_code=ErrorCode.none,
        partition=asked.partition,
        leader_epoch=i32(end.epoch),
        end_offset=i64(end.end_offset),
    )

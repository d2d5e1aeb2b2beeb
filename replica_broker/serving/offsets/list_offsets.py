"""ListOffsets: the first and last offset of a partition, and the offset of a timestamp."""

from typing import Final

from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v9.request import ListOffsetsPartition, ListOffsetsRequest
from kio.schema.list_offsets.v9.response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kio.static.primitive import i32, i64

from controller_core.model.ids import BrokerId, LeaderEpoch, PartitionId, TopicName, TopicPartition
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.limits.request_limits import RequestLimits
from controller_core.wire.messages import NO_THROTTLE
from replica_broker.log.errors import LogError
from replica_broker.replicas.errors import ReplicaRefused
from replica_broker.replicas.replicas import Replicas

VERSIONS: Final = Versions(ListOffsetsRequest, oldest=1)
LIMITS: Final = RequestLimits(max_items=1_000_000)


def on_list_offsets(replicas: Replicas, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Answer for each partition on its own."""
    return ListOffsetsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    _list_offset(replicas, request, TopicName(topic.name), one) for one in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _list_offset(
    replicas: Replicas, request: ListOffsetsRequest, topic: TopicName, asked: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    try:
        found = replicas.list_offset(
            TopicPartition(topic, PartitionId(asked.partition_index)),
            asked.timestamp,
            current_leader_epoch=LeaderEpoch(asked.current_leader_epoch),
            replica_id=BrokerId(request.replica_id),
        )
    except (ReplicaRefused, LogError) as error:
        return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error.error_code)
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        error_code=ErrorCode.none,
        timestamp=i64(found.timestamp_ms),
        offset=i64(found.offset),
        leader_epoch=i32(found.leader_epoch),
    )

"""ListOffsets: the first and last offset of a partition, and the offset of a timestamp.

The search for a timestamp reads records, so the event loop runs after each. Repeated partitions are refused, as in
Kafka.
"""

from collections import Counter
from typing import Final

from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v9.request import ListOffsetsPartition, ListOffsetsRequest
from kio.schema.list_offsets.v9.response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kio.static.primitive import i32, i64

from controller_core.controller.loop.slices import SLICE, slice_up
from controller_core.model.ids import BrokerId, LeaderEpoch, PartitionId, TopicName, TopicPartition
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.limits.request_limits import RequestLimits
from controller_core.wire.messages import NO_THROTTLE
from replica_broker.log.errors import LogError
from replica_broker.replicas.errors import ReplicaRefused
from replica_broker.replicas.replicas import Replicas
from replica_broker.replicas.requests import EARLIEST, EARLIEST_LOCAL, LATEST

VERSIONS: Final = Versions(ListOffsetsRequest, oldest=1)
LIMITS: Final = RequestLimits(max_items=1_000_000)


async def on_list_offsets(replicas: Replicas, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Answer for each partition on its own."""
    named = Counter([(topic.name, one.partition_index) for topic in request.topics for one in topic.partitions])
    topics = []
    for topic in request.topics:
        partitions = [
            _list_offset(replicas, request, TopicName(topic.name), one)
            if named[topic.name, one.partition_index] == 1
            else _refuse(one, ErrorCode.invalid_request)
            async for one in slice_up(topic.partitions, _weigh)
        ]
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=tuple(partitions)))
    return ListOffsetsResponse(throttle_time=NO_THROTTLE, topics=tuple(topics))


def _weigh(asked: ListOffsetsPartition) -> int:
    return 1 if asked.timestamp in (LATEST, EARLIEST, EARLIEST_LOCAL) else SLICE


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
        return _refuse(asked, error.error_code)
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        error_code=ErrorCode.none,
        timestamp=i64(found.timestamp_ms),
        offset=i64(found.offset),
        leader_epoch=i32(found.leader_epoch),
    )


def _refuse(asked: ListOffsetsPartition, error_code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error_code)

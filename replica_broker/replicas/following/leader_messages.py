"""Conversion between a follower's questions about epochs and offsets and Kafka's messages.

The versions are those of inter-broker protocol 3.9 (OffsetForLeaderEpoch 4, ListOffsets 9). They are not negotiated.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v9.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.list_offsets.v9.response import ListOffsetsResponse
from kio.schema.offset_for_leader_epoch.v4.request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kio.schema.offset_for_leader_epoch.v4.response import OffsetForLeaderEpochResponse
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i8, i32, i64

from controller_core.model.ids import BrokerId, LeaderEpoch, PartitionId, TopicName, TopicPartition, group_by_topic
from replica_broker.replicas.requests import EpochEnd

_READ_UNCOMMITTED: Final = i8(0)


def ends_request(
    asked: Mapping[TopicPartition, tuple[LeaderEpoch, LeaderEpoch]], replica_id: BrokerId
) -> OffsetForLeaderEpochRequest:
    """Return the request for pairs of (current leader epoch, requested epoch)."""
    return OffsetForLeaderEpochRequest(
        replica_id=WireBrokerId(replica_id),
        topics=tuple(
            OffsetForLeaderTopic(
                topic=WireTopicName(topic),
                partitions=tuple(
                    OffsetForLeaderPartition(
                        partition=i32(each.partition),
                        current_leader_epoch=i32(asked[each][0]),
                        leader_epoch=i32(asked[each][1]),
                    )
                    for each in of_topic
                ),
            )
            for topic, of_topic in group_by_topic(asked)
        ),
    )


def ends(response: OffsetForLeaderEpochResponse) -> dict[TopicPartition, EpochEnd | ErrorCode]:
    """Return the end of the epoch of each partition."""
    return {
        _make_topic_partition(topic.topic, one.partition): (
            EpochEnd(LeaderEpoch(one.leader_epoch), int(one.end_offset))
            if one.error_code is ErrorCode.none
            else one.error_code
        )
        for topic in response.topics
        for one in topic.partitions
    }


def offsets_request(
    asked: Mapping[TopicPartition, tuple[LeaderEpoch, int]], replica_id: BrokerId
) -> ListOffsetsRequest:
    """Return the request for pairs of (current leader epoch, timestamp)."""
    return ListOffsetsRequest(
        replica_id=WireBrokerId(replica_id),
        isolation_level=_READ_UNCOMMITTED,
        topics=tuple(
            ListOffsetsTopic(name=WireTopicName(topic), partitions=_make_partitions(asked, of_topic))
            for topic, of_topic in group_by_topic(asked)
        ),
    )


def _make_partitions(
    asked: Mapping[TopicPartition, tuple[LeaderEpoch, int]], of_topic: Iterable[TopicPartition]
) -> tuple[ListOffsetsPartition, ...]:
    return tuple(
        ListOffsetsPartition(
            partition_index=i32(each.partition),
            current_leader_epoch=i32(asked[each][0]),
            timestamp=i64(asked[each][1]),
        )
        for each in of_topic
    )


def offsets(response: ListOffsetsResponse) -> dict[TopicPartition, int | ErrorCode]:
    """Return the offset of each partition."""
    return {
        _make_topic_partition(topic.name, one.partition_index): (
            int(one.offset) if one.error_code is ErrorCode.none else one.error_code
        )
        for topic in response.topics
        for one in topic.partitions
    }


def _make_topic_partition(topic: str, partition: int) -> TopicPartition:
    return TopicPartition(TopicName(str(topic)), PartitionId(int(partition)))

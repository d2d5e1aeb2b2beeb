"""What a follower asks its leader, as Kafka's messages, and their answers as values: at the versions of inter-broker
protocol 3.9 (Fetch 17, OffsetForLeaderEpoch 4, ListOffsets 9), which are not negotiated."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v17.request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kio.schema.fetch.v17.response import FetchResponse, PartitionData
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
from kio.static.primitive import i8, i32, i32Timedelta, i64

from controller_core.model.ids import BrokerId, LeaderEpoch, PartitionId, TopicName, TopicPartition, by_topic
from replica_broker.replicas.requests import Asked, EpochEnd, Fetch, Fetched

_READ_UNCOMMITTED: Final = i8(0)


def fetch_request(asked: Fetch) -> FetchRequest:
    """Without a session. A partition without a topic id cannot be asked for, and is left out."""
    by_id: dict[UUID, list[FetchPartition]] = {}
    for topic_partition, one in asked.partitions.items():
        if one.topic_id is not None:
            by_id.setdefault(one.topic_id, []).append(_fetch_partition(topic_partition, one))
    return FetchRequest(
        replica_state=ReplicaState(replica_id=WireBrokerId(asked.replica_id)),
        max_wait=i32Timedelta.parse(timedelta(milliseconds=asked.max_wait_ms)),
        min_bytes=i32(asked.min_bytes),
        max_bytes=i32(asked.max_bytes),
        topics=tuple(FetchTopic(topic_id=each, partitions=tuple(partitions)) for each, partitions in by_id.items()),
        forgotten_topics_data=(),
    )


def _fetch_partition(topic_partition: TopicPartition, one: Asked) -> FetchPartition:
    return FetchPartition(
        partition=i32(topic_partition.partition),
        current_leader_epoch=i32(one.current_leader_epoch),
        fetch_offset=i64(one.offset),
        last_fetched_epoch=i32(one.last_fetched_epoch),
        log_start_offset=i64(one.log_start_offset),
        partition_max_bytes=i32(one.max_bytes),
    )


def fetched(asked: Fetch, response: FetchResponse) -> dict[TopicPartition, Fetched]:
    """What the leader has of each partition. An error of the whole request is that of each."""
    if response.error_code is not ErrorCode.none:
        return dict.fromkeys(asked.partitions, Fetched(error_code=response.error_code))
    names = {(one.topic_id, each.partition): each for each, one in asked.partitions.items()}
    answers = {}
    for topic in response.responses:
        for data in topic.partitions:
            topic_partition = names.get((topic.topic_id, PartitionId(data.partition_index)))  # type: ignore[arg-type]
            if topic_partition is not None:
                answers[topic_partition] = _fetched(data)
    return answers


def _fetched(data: PartitionData) -> Fetched:
    diverging = data.diverging_epoch
    return Fetched(
        error_code=data.error_code,
        high_watermark=int(data.high_watermark),
        last_stable_offset=int(data.last_stable_offset),
        log_start_offset=int(data.log_start_offset),
        records=data.records or b"",
        diverging_epoch=(
            EpochEnd(LeaderEpoch(diverging.epoch), int(diverging.end_offset)) if diverging.epoch >= 0 else None
        ),
        leader=BrokerId(data.current_leader.leader_id),
        leader_epoch=LeaderEpoch(data.current_leader.leader_epoch),
    )


def ends_request(
    asked: Mapping[TopicPartition, tuple[LeaderEpoch, LeaderEpoch]], replica_id: BrokerId
) -> OffsetForLeaderEpochRequest:
    """By (current leader epoch, epoch asked)."""
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
            for topic, of_topic in by_topic(asked)
        ),
    )


def ends(response: OffsetForLeaderEpochResponse) -> dict[TopicPartition, EpochEnd | ErrorCode]:
    """Where epochs end, by partition."""
    return {
        _named(topic.topic, one.partition): (
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
    """By (current leader epoch, timestamp)."""
    return ListOffsetsRequest(
        replica_id=WireBrokerId(replica_id),
        isolation_level=_READ_UNCOMMITTED,
        topics=tuple(
            ListOffsetsTopic(name=WireTopicName(topic), partitions=_listed(asked, of_topic))
            for topic, of_topic in by_topic(asked)
        ),
    )


def _listed(
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
    """Offsets by partition."""
    return {
        _named(topic.name, one.partition_index): (
            int(one.offset) if one.error_code is ErrorCode.none else one.error_code
        )
        for topic in response.topics
        for one in topic.partitions
    }


def _named(topic: str, partition: int) -> TopicPartition:
    return TopicPartition(TopicName(str(topic)), PartitionId(int(partition)))

"""Reads the end of a replica's log under an epoch from a broker that need not be the leader.

Only leaders answer OffsetForLeaderEpoch. Followers answer Fetch too (KIP-392), with the point where their log diverges
from that of the sender (KIP-595). So a request that claims to have all records up to the largest offset, under some
epoch, gets the end of the broker's own records of that epoch. The broker reads no records for it.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v12.response import FetchResponse, PartitionData
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32, i32Timedelta, i64

from controller_core.model.ids import LeaderEpoch, PartitionId, TopicName, TopicPartition, group_by_topic
from controller_core.model.metadata import LogEnd
from controller_core.wire.codecs.decoding import Undecodable
from controller_core.wire.codecs.frames import decode_response

_EVERYTHING: Final = i64(2**63 - 1)


def log_ends_request(epochs: Mapping[TopicPartition, LeaderEpoch]) -> FetchRequest:
    """Return a request for the end of one epoch in each partition. Like a consumer's request, it needs READ on the
    topics."""
    return FetchRequest(
        max_wait=i32Timedelta.parse(timedelta(0)),
        min_bytes=i32(0),
        topics=tuple(
            FetchTopic(
                topic=WireTopicName(topic),
                partitions=tuple(
                    FetchPartition(
                        partition=i32(each.partition),
                        fetch_offset=_EVERYTHING,
                        last_fetched_epoch=i32(epochs[each]),
                        partition_max_bytes=i32(0),
                    )
                    for each in partitions
                ),
            )
            for topic, partitions in group_by_topic(epochs)
        ),
        forgotten_topics_data=(),
    )


def decode_log_ends(content: bytes) -> dict[TopicPartition, LogEnd | None]:
    """Return the ends by partition: None if the log has nothing of that epoch or a later one. Other errors give no
    entry.

    Raises `Undecodable`, also for an error of the whole answer.
    """
    response = decode_response(FetchResponse, content)
    if response.error_code is not ErrorCode.none:
        raise Undecodable(f"Fetch: {response.error_code.name}")
    ends: dict[TopicPartition, LogEnd | None] = {}
    for topic in response.responses:
        for data in topic.partitions:
            partition = TopicPartition(TopicName(str(topic.topic)), PartitionId(int(data.partition_index)))
            if data.error_code is ErrorCode.offset_out_of_range:
                ends[partition] = None
            elif (end := _end(data)) is not None:
                ends[partition] = end
    return ends


def _end(data: PartitionData) -> LogEnd | None:
    diverging = data.diverging_epoch
    if data.error_code is not ErrorCode.none or diverging.epoch < 0:
        return None
    return LogEnd(LeaderEpoch(int(diverging.epoch)), int(diverging.end_offset))

"""Where a replica's log ends under an epoch, asked of a broker that need not lead the partition.

OffsetForLeaderEpoch is answered by leaders alone. A Fetch is answered by followers, too (KIP-392), and says where the log
of who asks parts from theirs (KIP-595): whoever claims to have all up to the last offset there can be, under some epoch,
is told where the broker's own records of that epoch end. No record is read for it.
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
    """Asks of each partition where the records of one epoch end. As a consumer's request it needs READ on the topics."""
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
    """The ends by partition: None where the log has nothing of the asked epoch or a later one. Of what the broker does not
    say there is no entry. Raises `Undecodable`, also where it says nothing at all."""
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

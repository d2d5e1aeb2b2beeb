"""Reads the end of a replica's log under an epoch from a broker that need not be the leader.

Only leaders answer OffsetForLeaderEpoch. Followers answer Fetch too (KIP-392), with the point where their log diverges
from that of the sender (KIP-595). So a request that claims to have all records up to the largest offset, under some
epoch, gets the end of the broker's own records of that epoch. The broker reads no records for it.
"""

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12.response import FetchResponse, PartitionData

from controller_core.model.ids import LeaderEpoch, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import LogEnd
from controller_core.wire.codecs.decoding import Undecodable
from controller_core.wire.codecs.frames import decode_response


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

"""ListOffsets, in the newest version that brokers of Kafka 2.8 know."""

from collections.abc import Iterable
from typing import Final

from kio.schema.list_offsets.v6.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i8, i32, i64

from controller_core.model.ids import TopicPartition, group_by_topic

LATEST: Final = -1
EARLIEST: Final = -2
"""Timestamps that ask for the next offset of a partition, and for its first one."""
_CLIENT: Final = WireBrokerId(-1)
_READ_UNCOMMITTED: Final = i8(0)


def make_offsets_request(partitions: Iterable[TopicPartition], timestamp: int) -> ListOffsetsRequest:
    """Return a request to the leader of these partitions, as a consumer sends it."""
    return ListOffsetsRequest(
        replica_id=_CLIENT,
        isolation_level=_READ_UNCOMMITTED,
        topics=tuple(
            ListOffsetsTopic(
                name=WireTopicName(topic),
                partitions=tuple(
                    ListOffsetsPartition(partition_index=i32(each.partition), timestamp=i64(timestamp))
                    for each in of_topic
                ),
            )
            for topic, of_topic in group_by_topic(partitions)
        ),
    )

"""Fetch, to find the ends of logs, and Fetch and FetchSnapshot (KIP-595, KIP-630), to read the metadata log."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final
from uuid import UUID

from kio.schema.fetch.v12 import FetchRequest as FetchRequest12
from kio.schema.fetch.v12.request import FetchPartition as FetchPartition12
from kio.schema.fetch.v12.request import FetchTopic as FetchTopic12
from kio.schema.fetch.v16 import FetchRequest as FetchRequest16
from kio.schema.fetch.v16.request import FetchPartition as FetchPartition16
from kio.schema.fetch.v16.request import FetchTopic as FetchTopic16
from kio.schema.fetch_snapshot.v0 import FetchSnapshotRequest
from kio.schema.fetch_snapshot.v0.request import PartitionSnapshot, SnapshotId, TopicSnapshot
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32, i32Timedelta, i64

from controller_core.model.ids import LeaderEpoch, TopicPartition, group_by_topic
from controller_core.model.topics.topic_names import CLUSTER_METADATA_TOPIC

_BEYOND_EVERYTHING: Final = i64(2**63 - 1)
_METADATA_TOPIC_ID: Final = UUID(int=1)
_METADATA_PARTITION: Final = i32(0)


def make_log_ends_request(epochs: Mapping[TopicPartition, LeaderEpoch]) -> FetchRequest12:
    """Return a request for the end of one epoch in each partition (`wire.codecs.log_ends` says how). Like a consumer's
    request, it needs READ on the topics."""
    return FetchRequest12(
        max_wait=i32Timedelta.parse(timedelta(0)),
        min_bytes=i32(0),
        topics=tuple(
            FetchTopic12(
                topic=WireTopicName(topic),
                partitions=tuple(
                    FetchPartition12(
                        partition=i32(each.partition),
                        fetch_offset=_BEYOND_EVERYTHING,
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


def make_metadata_log_request(
    cluster_id: str | None, *, leader_epoch: int, offset: int, last_epoch: int, max_wait_ms: int, max_bytes: int
) -> FetchRequest16:
    """Return a request for the metadata log from an offset on. `last_epoch` is the epoch of the record before it."""
    partition = FetchPartition16(
        partition=_METADATA_PARTITION,
        current_leader_epoch=i32(leader_epoch),
        fetch_offset=i64(offset),
        last_fetched_epoch=i32(last_epoch),
        partition_max_bytes=i32(max_bytes),
    )
    return FetchRequest16(
        cluster_id=cluster_id,
        max_wait=i32Timedelta.parse(timedelta(milliseconds=max_wait_ms)),
        min_bytes=i32(0),
        max_bytes=i32(max_bytes),
        topics=(FetchTopic16(topic_id=_METADATA_TOPIC_ID, partitions=(partition,)),),
        forgotten_topics_data=(),
    )


def make_metadata_snapshot_request(
    cluster_id: str | None, *, leader_epoch: int, end_offset: int, end_epoch: int, position: int, max_bytes: int
) -> FetchSnapshotRequest:
    """Return a request for the piece of a snapshot from a position on. The snapshot is named by its end."""
    partition = PartitionSnapshot(
        partition=_METADATA_PARTITION,
        current_leader_epoch=i32(leader_epoch),
        snapshot_id=SnapshotId(end_offset=i64(end_offset), epoch=i32(end_epoch)),
        position=i64(position),
    )
    return FetchSnapshotRequest(
        cluster_id=cluster_id,
        max_bytes=i32(max_bytes),
        topics=(TopicSnapshot(name=WireTopicName(CLUSTER_METADATA_TOPIC), partitions=(partition,)),),
    )

"""AlterPartitionReassignments and ListPartitionReassignments (KIP-455), and ElectLeaders (KIP-183, KIP-460)."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from kio.schema.alter_partition_reassignments.v0 import AlterPartitionReassignmentsRequest
from kio.schema.alter_partition_reassignments.v0.request import ReassignablePartition, ReassignableTopic
from kio.schema.elect_leaders.v2 import ElectLeadersRequest
from kio.schema.elect_leaders.v2.request import TopicPartitions
from kio.schema.list_partition_reassignments.v0 import ListPartitionReassignmentsRequest
from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsTopics
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i8, i32, i32Timedelta

from controller_core.model.ids import BrokerId, TopicPartition, group_by_topic

PREFERRED: Final = i8(0)
UNCLEAN: Final = i8(1)
"""Types of elections (KIP-460)."""
DEFAULT_TIMEOUT: Final = i32Timedelta.parse(timedelta(seconds=60))
"""The default of Kafka's clients."""


def make_reassignment_request(
    targets: Mapping[TopicPartition, tuple[BrokerId, ...] | None], timeout: i32Timedelta
) -> AlterPartitionReassignmentsRequest:
    """Return a request for reassignments. A target of None cancels one."""
    return AlterPartitionReassignmentsRequest(
        timeout=timeout,
        topics=tuple(
            ReassignableTopic(
                name=WireTopicName(topic), partitions=tuple(_make_partition(each, targets[each]) for each in partitions)
            )
            for topic, partitions in group_by_topic(targets)
        ),
    )


def make_list_reassignments_request(
    partitions: Iterable[TopicPartition] | None, timeout: i32Timedelta = DEFAULT_TIMEOUT
) -> ListPartitionReassignmentsRequest:
    """Return a request for the ongoing reassignments of these partitions; None asks for all."""
    topics = None
    if partitions is not None:
        topics = tuple(
            ListPartitionReassignmentsTopics(
                name=WireTopicName(topic), partition_indexes=tuple(i32(each.partition) for each in group)
            )
            for topic, group in group_by_topic(partitions)
        )
    return ListPartitionReassignmentsRequest(timeout=timeout, topics=topics)


def make_election_request(
    election_type: i8, partitions: Iterable[TopicPartition] | None, timeout: i32Timedelta
) -> ElectLeadersRequest:
    """Return a request to elect leaders of these partitions; None asks for all."""
    wanted = None
    if partitions is not None:
        wanted = tuple(
            TopicPartitions(topic=WireTopicName(topic), partitions=tuple(i32(each.partition) for each in group))
            for topic, group in group_by_topic(partitions)
        )
    return ElectLeadersRequest(election_type=election_type, topic_partitions=wanted, timeout=timeout)


def _make_partition(partition: TopicPartition, replicas: tuple[BrokerId, ...] | None) -> ReassignablePartition:
    wanted = None if replicas is None else tuple(map(WireBrokerId, replicas))
    return ReassignablePartition(partition_index=i32(partition.partition), replicas=wanted)

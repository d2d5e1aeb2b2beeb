"""ListPartitionReassignments: the running reassignments (KIP-455). Kafka's tools use it to describe a topic."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32

from controller_core.controller.loop.slices import slice_up
from controller_core.controller.serving.served_api import ServedApi
from controller_core.controller.state.reassignments import RunningReassignment
from controller_core.controller.term.term import Term
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.messages import (
    NO_THROTTLE,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


async def on_list_reassignments(
    term: Term, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Return the running reassignments of the requested partitions, or all if none are named."""
    running: Mapping[TopicPartition, RunningReassignment] = term.state.reassignments
    if request.topics is not None:
        named = (
            TopicPartition(TopicName(topic.name), PartitionId(partition))
            for topic in request.topics
            for partition in topic.partition_indexes
        )
        running = {partition: running[partition] async for partition in slice_up(named) if partition in running}
    by_topic: defaultdict[TopicName, list[OngoingPartitionReassignment]] = defaultdict(list)
    async for partition, run in slice_up(running.items()):
        by_topic[partition.topic].append(
            OngoingPartitionReassignment(
                partition_index=i32(partition.partition),
                replicas=_ids(run.full.replicas),
                adding_replicas=_ids(run.full.adding),
                removing_replicas=_ids(run.full.removing),
            )
        )
    return ListPartitionReassignmentsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        error_message=None,
        topics=tuple(
            OngoingTopicReassignment(name=WireTopicName(topic), partitions=tuple(partitions))
            for topic, partitions in by_topic.items()
        ),
    )


def refusal(_: ListPartitionReassignmentsRequest, error_code: ErrorCode) -> ListPartitionReassignmentsResponse:
    """Return the answer that refuses the request."""
    return ListPartitionReassignmentsResponse(
        throttle_time=NO_THROTTLE, error_code=error_code, error_message=None, topics=()
    )


def _ids(brokers: tuple[BrokerId, ...]) -> tuple[WireBrokerId, ...]:
    return tuple(WireBrokerId(broker) for broker in brokers)


API: Final = ServedApi(
    versions=Versions(ListPartitionReassignmentsRequest), answer=on_list_reassignments, refuse=refusal
)

"""Reads which replicas reassignments bring to a broker, by ListPartitionReassignments (KIP-455)."""

from typing import Final

from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0 import ListPartitionReassignmentsResponse

from controller_core.client.transport.request_client import ControllerClient
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.wire.requests.partitions import make_list_reassignments_request

_ALL_THAT_RUN: Final = make_list_reassignments_request(None)


class ArrivalsRefused(Exception):
    """The controller refuses to list its reassignments. The message has the reason."""


async def ask_arrivals(client: ControllerClient, broker: BrokerId) -> frozenset[TopicPartition]:
    """Return the partitions that get a replica on the broker. Raises `ArrivalsRefused` and `RequestError`."""
    answer = await client.ask(_ALL_THAT_RUN, ListPartitionReassignmentsResponse)
    if answer.error_code is not ErrorCode.none:
        why = f"{answer.error_code.name}{f' ({answer.error_message})' if answer.error_message else ''}"
        raise ArrivalsRefused(f"the controller does not list its reassignments: {why}")
    return frozenset(
        TopicPartition(TopicName(topic.name), PartitionId(partition.partition_index))
        for topic in answer.topics
        for partition in topic.partitions
        if int(broker) in map(int, partition.adding_replicas)
    )

"""Reads which replicas reassignments bring to a broker, by ListPartitionReassignments (KIP-455)."""

from typing import Final

from kio.schema.list_partition_reassignments.v0 import ListPartitionReassignmentsResponse

from controller_core.client.errors import require
from controller_core.client.transport.request_client import ControllerClient
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.wire.requests.partitions import make_list_reassignments_request

_ALL_THAT_RUN: Final = make_list_reassignments_request(None)


async def ask_arrivals(client: ControllerClient, broker: BrokerId) -> frozenset[TopicPartition]:
    """Return the partitions that get a replica on the broker. Raises `AdminError`."""
    answer = await client.ask(_ALL_THAT_RUN, ListPartitionReassignmentsResponse)
    require("the list of reassignments", answer.error_code, answer.error_message)
    return frozenset(
        TopicPartition(TopicName(topic.name), PartitionId(partition.partition_index))
        for topic in answer.topics
        for partition in topic.partitions
        if int(broker) in map(int, partition.adding_replicas)
    )

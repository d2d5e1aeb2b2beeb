"""Leaders that are elected: the first replica of each partition, or uncleanly any that lives."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from kio.schema.elect_leaders.v2 import ElectLeadersRequest, ElectLeadersResponse
from kio.schema.elect_leaders.v2.request import TopicPartitions
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i8, i32

from controller_admin.client.cluster import Call
from controller_admin.client.errors import Refused
from controller_admin.client.reassigning.reassignments import Progress
from controller_core.model.ids import PartitionId, TopicName, TopicPartition

_PREFERRED: Final = i8(0)
_UNCLEAN: Final = i8(1)

Elected = Mapping[TopicPartition, Refused | None]
"""For each partition None where its leader is the one that was asked for, else why not."""


async def elect_preferred(call: Call, partitions: Sequence[TopicPartition] | None) -> Elected:
    """Of some partitions, or of all that are not led by their first replica."""
    return await _elect(call, _PREFERRED, partitions)


async def elect_unclean(call: Call, partitions: Sequence[TopicPartition] | None) -> Elected:
    """Of partitions without a leader, by a live replica that may lack records: those are lost."""
    return await _elect(call, _UNCLEAN, partitions)


async def verify_preferred(call: Call, partitions: Sequence[TopicPartition] | None) -> dict[TopicPartition, Progress]:
    """Whether each partition is led by its first replica, as a broker tells it.

    No message says whether an election runs, so a partition that is not is IN_PROGRESS as long as its first replica could
    lead, and FAILED where that is not in sync or the partition is not there."""
    names = sorted({tp.topic for tp in partitions}) if partitions is not None else ()
    metadata = await call.metadata(*names, of_all=partitions is None)
    known = {
        TopicPartition(TopicName(topic.name), PartitionId(each.partition_index)): each
        for topic in metadata.topics
        if topic.name is not None and topic.error_code is ErrorCode.none
        for each in topic.partitions
    }
    found: dict[TopicPartition, Progress] = {}
    for tp in sorted(known) if partitions is None else partitions:
        each = known.get(tp)
        first = each.replica_nodes[0] if each is not None and each.replica_nodes else None
        if each is None or first is None:
            found[tp] = Progress.FAILED
        elif each.leader_id == first:
            found[tp] = Progress.COMPLETED
        else:
            found[tp] = Progress.IN_PROGRESS if first in each.isr_nodes else Progress.FAILED
    return found


async def _elect(call: Call, election_type: i8, partitions: Sequence[TopicPartition] | None) -> Elected:
    wanted = None
    if partitions is not None:
        wanted = tuple(
            TopicPartitions(topic=WireTopicName(topic), partitions=tuple(i32(tp.partition) for tp in group))
            for topic, group in groupby(sorted(partitions), key=lambda tp: tp.topic)
        )
    request = ElectLeadersRequest(election_type=election_type, topic_partitions=wanted, timeout=call.for_server)
    response = await call.ask_controller(request, ElectLeadersResponse)
    if response.error_code is not ErrorCode.none:
        raise Refused("the election", response.error_code, None)
    return {
        TopicPartition(TopicName(topic.topic), PartitionId(each.partition_id)): (
            None
            if each.error_code in (ErrorCode.none, ErrorCode.election_not_needed)
            else Refused(f"{topic.topic}-{each.partition_id}", each.error_code, each.error_message)
        )
        for topic in response.replica_election_results
        for each in topic.partition_result
    }

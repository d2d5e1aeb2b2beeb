"""Leader elections: of the first replica of each partition, or uncleanly of any live replica."""

from collections.abc import Mapping, Sequence
from typing import Final

from kio.schema.elect_leaders.v2 import ElectLeadersResponse
from kio.schema.errors import ErrorCode
from kio.static.primitive import i8, i32Timedelta

from controller_core.client.cluster import Call
from controller_core.client.errors import OutcomeUnknown, Refused
from controller_core.client.reassigning.reassignments import Progress
from controller_core.client.results import Result, Results
from controller_core.client.snapshot import read_snapshot
from controller_core.client.transport.request_client import ControllerClient
from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from controller_core.model.snapshot import PartitionSnapshot
from controller_core.wire.requests.partitions import PREFERRED, UNCLEAN, make_election_request

ELECTED: Final = (ErrorCode.none, ErrorCode.election_not_needed)
"""The codes of a partition whose requested leader leads."""

Elected = Mapping[TopicPartition, Refused | OutcomeUnknown | None]
"""The result for each partition: None if the requested leader leads, otherwise the error. OutcomeUnknown: not yet."""


async def elect_preferred(call: Call, partitions: Sequence[TopicPartition] | None) -> Elected:
    """Elect the first replica of some partitions, or of all that it does not lead."""
    return await _elect(call, PREFERRED, partitions)


async def elect_unclean(call: Call, partitions: Sequence[TopicPartition] | None) -> Elected:
    """Elect a live replica as leader of partitions without one. Records that it lacks are lost."""
    return await _elect(call, UNCLEAN, partitions)


async def verify_preferred(call: Call, partitions: Sequence[TopicPartition] | None) -> dict[TopicPartition, Progress]:
    """Return for each partition if its first replica leads, as a broker reports it.

    No message tells if an election is running. So a partition with another leader is IN_PROGRESS if its first replica
    could lead, and FAILED if that replica is not in sync or the partition does not exist."""
    names = sorted({tp.topic for tp in partitions}) if partitions is not None else ()
    metadata = await call.metadata(*names, of_all=partitions is None)
    known = {place.partition: place for place in read_snapshot(metadata).list_partitions()}
    return {tp: _judge_preference(known.get(tp)) for tp in (sorted(known) if partitions is None else partitions)}


def _judge_preference(place: PartitionSnapshot | None) -> Progress:
    if place is None or not place.replicas:
        return Progress.FAILED
    first = place.replicas[0]
    if place.leader == first:
        return Progress.COMPLETED
    return Progress.IN_PROGRESS if first in place.isr else Progress.FAILED


async def _elect(call: Call, election_type: i8, partitions: Sequence[TopicPartition] | None) -> Elected:
    results = await elect_leaders(call.target_controller(), election_type, partitions, call.for_server)
    return {
        tp: None if result.code in ELECTED else result.make_error(str(tp))
        for tp, result in results.require("the election").items()
    }


async def elect_leaders(
    client: ControllerClient, election_type: i8, partitions: Sequence[TopicPartition] | None, timeout: i32Timedelta
) -> Results[TopicPartition]:
    """Request elections in some partitions, or in all. Return the result of each partition."""
    response = await client.ask(make_election_request(election_type, partitions, timeout), ElectLeadersResponse)
    return Results(
        overall=Result(code=response.error_code),
        by_item={
            TopicPartition(TopicName(topic.topic), PartitionId(each.partition_id)): Result(
                code=each.error_code, message=each.error_message
            )
            for topic in response.replica_election_results
            for each in topic.partition_result
        },
    )

"""ElectLeaders: preferred or unclean elections by partition (KIP-460).

A requested unclean election ignores the topic's configuration, because the user who names the partition accepts that
acknowledged messages may be lost. It takes place only if there is no live leader.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final, NamedTuple

from kio.schema.elect_leaders.v2.request import ElectLeadersRequest
from kio.schema.elect_leaders.v2.response import ElectLeadersResponse, PartitionResult, ReplicaElectionResult
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32

from controller_core.admin.refusals import ItemRefused
from controller_core.controller.loop.slices import slice_up
from controller_core.controller.machines import partition_machine
from controller_core.controller.machines.partition_machine import Election
from controller_core.controller.operations import elections
from controller_core.controller.serving.served_api import Answer, ServedApi, Waiting
from controller_core.controller.term.term import Term
from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import EndsOfLogs
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.messages import NO_THROTTLE

ELECTIONS: Final = {0: Election.PREFERRED, 1: Election.UNCLEAN}

_NOT_ELECTED: Final = {
    Election.PREFERRED: ErrorCode.preferred_leader_not_available,
    Election.UNCLEAN: ErrorCode.eligible_leaders_not_available,
}


async def on_elect_leaders(term: Term, request: ElectLeadersRequest) -> Answer:
    """Hold the elections. If no partitions are named, consider all, and answer only for those that needed an election.

    The answer to an unclean election waits if brokers are first asked for the longest log.
    """
    election = ELECTIONS.get(request.election_type)
    if election is None:
        return refusal(request, ErrorCode.invalid_request)
    asked = (
        None
        if request.topic_partitions is None
        else {one: None async for one in slice_up(_list_named_partitions(request))}
    )
    judged = await _judge(term, asked, election)
    if election is Election.UNCLEAN and (waiting := _recovery(term, request, asked, judged)) is not None:
        return waiting
    return await _hold(term, asked, election, judged)


def _recovery(
    term: Term, request: ElectLeadersRequest, asked: Collection[TopicPartition] | None, judged: "_Judged"
) -> Waiting | None:
    """Begin an unclean election that first asks brokers for their log ends. Return None if there is nobody to ask."""
    response: ElectLeadersResponse | None = None

    async def hold(ends: EndsOfLogs) -> None:
        nonlocal response
        response = await _hold(term, asked, Election.UNCLEAN, await _judge(term, asked, Election.UNCLEAN), ends)

    if not elections.begin_unclean_recovery(term, judged.wanted, hold):
        return None
    return Waiting(
        timeout_ms=max(request.timeout / timedelta(milliseconds=1), 2 * term.settings.unclean_recovery_timeout_ms),
        outcome=lambda _: response,
        overdue=lambda _: refusal(request, ErrorCode.request_timed_out),
    )


async def _hold(
    term: Term,
    asked: Collection[TopicPartition] | None,
    election: Election,
    judged: "_Judged",
    log_ends: EndsOfLogs = MappingProxyType({}),
) -> ElectLeadersResponse:
    """Hold the elections. `asked` is None for all partitions."""
    refused, wanted = judged
    partitions = asked if asked is not None else [*refused, *wanted]
    not_elected = await partition_machine.bring_online(term, wanted, election, log_ends)
    results = refused | {
        partition: ItemRefused(_NOT_ELECTED[election], failure.reason) for partition, failure in not_elected.items()
    }
    if asked is None:
        partitions = [
            partition
            for partition in partitions
            if partition not in results or results[partition].error_code is not ErrorCode.election_not_needed
        ]
    by_topic: defaultdict[TopicName, list[PartitionResult]] = defaultdict(list)
    async for partition in slice_up(partitions):
        by_topic[partition.topic].append(_result(partition, results.get(partition)))
    return _response(ErrorCode.none, by_topic)


class _Judged(NamedTuple):
    """The partitions without an election, with the reasons, and the others."""

    refused: dict[TopicPartition, ItemRefused]
    wanted: list[TopicPartition]


async def _judge(term: Term, asked: Collection[TopicPartition] | None, election: Election) -> _Judged:
    refused: dict[TopicPartition, ItemRefused] = {}
    wanted: list[TopicPartition] = []
    async for partition in slice_up(asked if asked is not None else _list_known_partitions(term)):
        why = _why_not(term, partition, election)
        if why is not None:
            refused[partition] = why
        else:
            wanted.append(partition)
    return _Judged(refused, wanted)


def refusal(request: ElectLeadersRequest, error_code: ErrorCode) -> ElectLeadersResponse:
    """Return the answer that refuses every partition of the request."""
    refused = ItemRefused(error_code)
    by_topic: defaultdict[TopicName, list[PartitionResult]] = defaultdict(list)
    for partition in dict.fromkeys(_list_named_partitions(request)):
        by_topic[partition.topic].append(_result(partition, refused))
    return _response(error_code, by_topic)


def _list_named_partitions(request: ElectLeadersRequest) -> Iterator[TopicPartition]:
    for topic in request.topic_partitions or ():
        for partition in topic.partitions:
            yield TopicPartition(TopicName(topic.topic), PartitionId(partition))


def _list_known_partitions(term: Term) -> list[TopicPartition]:
    """Return all partitions that brokers know. They do not know those that never had a leader or are being deleted."""
    return [partition for partition in term.state.states if partition.topic not in term.state.deletions]


def _why_not(term: Term, partition: TopicPartition, election: Election) -> ItemRefused | None:
    if not term.state.has(partition):
        return ItemRefused(ErrorCode.unknown_topic_or_partition, "The partition does not exist.")
    if partition.topic in term.state.deletions:
        return ItemRefused(ErrorCode.invalid_topic_exception, "The topic is being deleted")
    state = term.state.states.get(partition)
    if election is Election.UNCLEAN:
        is_right = term.state.is_leader_live(partition)
    else:
        is_right = state is not None and state.leader_and_isr.leader == term.state.assignment(partition).preferred
    message = "Leader election not needed for topic partition."
    return ItemRefused(ErrorCode.election_not_needed, message) if is_right else None


def _result(partition: TopicPartition, refused: ItemRefused | None) -> PartitionResult:
    return PartitionResult(
        partition_id=i32(partition.partition),
        error_code=refused.error_code if refused else ErrorCode.none,
        error_message=refused.message if refused else None,
    )


def _response(error_code: ErrorCode, by_topic: Mapping[TopicName, list[PartitionResult]]) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        throttle_time=NO_THROTTLE,
        error_code=error_code,
        replica_election_results=tuple(
            ReplicaElectionResult(topic=WireTopicName(topic), partition_result=tuple(partitions))
            for topic, partitions in by_topic.items()
        ),
    )


API: Final = ServedApi(versions=Versions(ElectLeadersRequest, oldest=0), answer=on_elect_leaders, refuse=refusal)

"""AlterPartitionReassignments: begin, replace or cancel reassignments of partitions (KIP-455).

The answer reports that a reassignment has begun, not that it is complete: it takes as long as copying its data. A
target here replaces that of `/admin/reassign_partitions` for the same partition.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kio.schema.alter_partition_reassignments.v0.request import AlterPartitionReassignmentsRequest
from kio.schema.alter_partition_reassignments.v0.response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32

from controller_core.controller.loop.slices import slice_up
from controller_core.controller.operations import topics
from controller_core.controller.reassigning import completion, reassignment
from controller_core.controller.reassigning.requested import explain_message_loss, find_not_live, is_done
from controller_core.controller.reassigning.room import find_targets_without_room
from controller_core.controller.serving.served_api import ServedApi
from controller_core.controller.term.term import Term
from controller_core.controller.znodes.reassignment_znode import supplant_requests
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.wording import explain_controller_as_replica
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.messages import NO_THROTTLE

Target = tuple[BrokerId, ...] | None
"""The target replicas (RAR). None cancels the running reassignment."""
Refusal = tuple[ErrorCode, str]

BEGUN: Final = (ErrorCode.none, None)
NOTHING_RUNS: Final = (ErrorCode.no_reassignment_in_progress, "No partition reassignment is in progress.")
NO_PARTITION: Final = (ErrorCode.unknown_topic_or_partition, "The partition does not exist.")
NOT_WRITTEN: Final = (
    ErrorCode.invalid_replica_assignment,
    "Refused, because the znode of its topic cannot be written. See the controller's log for the reason.",
)


async def on_alter_reassignments(
    term: Term, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Begin all reassignments that are possible. Like in Kafka, the last of several entries for one partition
    counts."""
    asked = {partition: target async for partition, target in slice_up(_parse_request(request))}
    await _learn_of_new(term, asked)
    # A reassignment in its last steps has reached its target, so it ends before another one begins.
    await completion.finish_early(term, {partition: target or () for partition, target in asked.items()})
    refused: dict[TopicPartition, Refusal] = {}
    accepted: dict[TopicPartition, tuple[BrokerId, ...]] = {}
    async for partition, wanted in slice_up(asked.items()):
        target = _origin(term, partition) if wanted is None else wanted
        if target is None:
            refused[partition] = NOTHING_RUNS
        elif why_not := _why_not(term, partition, target):
            refused[partition] = why_not
        else:
            accepted[partition] = target
    changed = {partition: target for partition, target in accepted.items() if not _is_so(term, partition, target)}
    refused |= {
        partition: (ErrorCode.invalid_replica_assignment, f"Refused, because {reason}.")
        for partition, reason in (await find_targets_without_room(term, changed)).items()
    }
    await supplant_requests(term, accepted.keys() - refused.keys())
    beginning = {partition: target for partition, target in changed.items() if partition not in refused}
    begun = await reassignment.begin(term, beginning)
    refused |= {p: NOT_WRITTEN if term.state.has(p) else NO_PARTITION for p in beginning.keys() - begun}
    by_topic: defaultdict[TopicName, list[ReassignablePartitionResponse]] = defaultdict(list)
    async for partition in slice_up(asked):
        by_topic[partition.topic].append(_result(partition, *refused.get(partition, BEGUN)))
    return _response(by_topic)


def refusal(request: AlterPartitionReassignmentsRequest, error_code: ErrorCode) -> AlterPartitionReassignmentsResponse:
    """Return the answer that refuses the request. NOT_CONTROLLER appears only at the top; other errors at each
    partition too."""
    refused = () if error_code is ErrorCode.not_controller else request.topics
    responses = tuple(
        ReassignableTopicResponse(
            name=topic.name,
            partitions=tuple(
                ReassignablePartitionResponse(
                    partition_index=entry.partition_index, error_code=error_code, error_message=None
                )
                for entry in topic.partitions
            ),
        )
        for topic in refused
    )
    return AlterPartitionReassignmentsResponse(
        throttle_time=NO_THROTTLE, error_code=error_code, error_message=None, responses=responses
    )


def _parse_request(request: AlterPartitionReassignmentsRequest) -> Iterator[tuple[TopicPartition, Target]]:
    for topic in request.topics:
        for entry in topic.partitions:
            partition = TopicPartition(TopicName(topic.name), PartitionId(entry.partition_index))
            yield partition, None if entry.replicas is None else tuple(map(BrokerId, entry.replicas))


async def _learn_of_new(term: Term, asked: Iterable[TopicPartition]) -> None:
    """Read new topics and partitions from ZooKeeper, because their notification may not have arrived yet."""
    unknown = {partition.topic async for partition in slice_up(asked) if not term.state.has(partition)}
    if not unknown <= term.state.topics.keys():
        await topics.on_topics_changed(term)
    if grown := unknown & term.state.topics.keys():
        await topics.on_topics_modified(term, grown)


def _origin(term: Term, partition: TopicPartition) -> tuple[BrokerId, ...] | None:
    """Return the original replicas of a running reassignment, or None if none is running.

    A deletion ends the topic's reassignments, but the assignment still shows them. Cancelling one must be refused like
    starting one, as in Kafka, so the replicas are returned as well.
    """
    run = term.state.reassignments.get(partition)
    if run is not None:
        return run.full.origin
    if partition.topic in term.state.deletions and term.state.has(partition):
        assignment = term.state.assignment(partition)
        return assignment.origin if assignment.is_being_reassigned else None
    return None


def _why_not(term: Term, partition: TopicPartition, target: tuple[BrokerId, ...]) -> Refusal | None:
    """Return the reason to refuse a target: Kafka's checks in Kafka's order, then one against the loss of acknowledged
    messages."""
    if reason := _why_malformed(target):
        return ErrorCode.invalid_replica_assignment, reason
    missing = find_not_live(term, partition, target)
    if term.identity.id in missing:
        return ErrorCode.invalid_replica_assignment, explain_controller_as_replica(term.identity.id)
    if missing:
        return ErrorCode.invalid_replica_assignment, (
            f"Replica assignment has brokers that are not alive. Replica list: {missing}, "
            f"live broker list: {sorted(term.state.live)}"
        )
    if not term.state.has(partition) or partition.topic in term.state.deletions:
        return NO_PARTITION
    if reason := explain_message_loss(term, partition, target):
        return ErrorCode.invalid_replica_assignment, f"Refused, because {reason}."
    return None


def _why_malformed(target: tuple[BrokerId, ...]) -> str | None:
    if not target:
        return "Empty replica list specified in partition reassignment."
    if len(set(target)) != len(target):
        return f"Duplicate replica ids in partition reassignment replica list: {list(target)}"
    if min(target) < 0:
        return f"Invalid broker id in replica list: {list(target)}"
    return None


def _is_so(term: Term, partition: TopicPartition, target: tuple[BrokerId, ...]) -> bool:
    """Return True if the partition has the target replicas, or is already being reassigned to them."""
    run = term.state.reassignments.get(partition)
    return is_done(term, partition, target) or (run is not None and run.target == target)


def _result(partition: TopicPartition, error_code: ErrorCode, message: str | None) -> ReassignablePartitionResponse:
    return ReassignablePartitionResponse(
        partition_index=i32(partition.partition), error_code=error_code, error_message=message
    )


def _response(by_topic: Mapping[TopicName, list[ReassignablePartitionResponse]]) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        error_message=None,
        responses=tuple(
            ReassignableTopicResponse(name=WireTopicName(topic), partitions=tuple(partitions))
            for topic, partitions in by_topic.items()
        ),
    )


API: Final = ServedApi(
    versions=Versions(AlterPartitionReassignmentsRequest), answer=on_alter_reassignments, refuse=refusal
)

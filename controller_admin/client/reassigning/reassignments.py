"""Partitions that move between brokers: asked for, cancelled, listed, verified, as KIP-4 has it over KIP-455's requests.

Nothing is remembered here of what was asked for: how far a move is, is read from the cluster each time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from kio.schema.alter_partition_reassignments.v0 import AlterPartitionReassignmentsResponse
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0 import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsTopics
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32

from controller_admin.client.assignments import Replicas
from controller_admin.client.cluster import Call, Cluster
from controller_admin.client.errors import AdminError, PartlyRefused, Refused, require
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition, by_topic
from controller_core.wire.client.cluster_picture import read_picture
from controller_core.wire.client.partition_requests import reassignment_request, reassignment_results

_POLL_S: Final = 0.5
_FOREVER_MS: Final = 10 * 365 * 86_400_000
_NOT_YET_KNOWN: Final = (ErrorCode.unknown_topic_or_partition, ErrorCode.leader_not_available)


class Progress(IntEnum):
    """How far one partition is; the numbers are KIP-4's."""

    FAILED = -1
    """It neither moves to its target nor is there."""
    IN_PROGRESS = 0
    COMPLETED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Ongoing:
    """A partition that is being reassigned."""

    replicas: Replicas
    adding: Replicas
    removing: Replicas

    @property
    def target(self) -> Replicas:
        """What it will have in the end."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentResult:
    """How a move has ended, partition by partition."""

    partitions: Mapping[TopicPartition, Progress]

    @property
    def error(self) -> AdminError | None:
        """Why it did not come to its end; None where it did."""
        failed = [str(tp) for tp, progress in self.partitions.items() if progress is not Progress.COMPLETED]
        if not failed:
            return None
        return AdminError(
            f"{len(failed)} of {len(self.partitions)} partitions are not at their target, and do not move there: "
            f"{', '.join(failed[:5])}: somebody cancelled or changed the move, or their topic is gone"
        )


async def start(call: Call, targets: Mapping[TopicPartition, Replicas]) -> None:
    """Asks for moves. Raises `PartlyRefused` where some are refused; the others have begun."""
    refused = await request_moves(call, targets)
    if refused:
        begun = len(targets) - len(refused)
        others = f"{begun} of {len(targets)} partitions have begun to move" if begun else "nothing moves"
        raise PartlyRefused(tuple(refused.values()), others)


async def cancel(call: Call, partitions: Sequence[TopicPartition]) -> tuple[TopicPartition, ...]:
    """Has partitions go back to where they were; returns those that were moving. Raises `PartlyRefused`."""
    refused = await request_moves(call, dict.fromkeys(partitions))
    still = {tp: error for tp, error in refused.items() if error.code is not ErrorCode.no_reassignment_in_progress}
    cancelled = tuple(tp for tp in partitions if tp not in refused)
    if still:
        raise PartlyRefused(tuple(still.values()), f"{len(cancelled)} of {len(partitions)} are cancelled")
    return cancelled


async def request_moves(call: Call, targets: Mapping[TopicPartition, Replicas | None]) -> dict[TopicPartition, Refused]:
    """Asks for moves, or for their end where there is no target; returns what is refused, partition by partition."""
    request = reassignment_request(targets, call.for_server)
    response = await call.ask_controller(request, AlterPartitionReassignmentsResponse)
    require("the reassignment", response.error_code, response.error_message)
    return {
        tp: Refused(str(tp), each.error_code, each.error_message)
        for tp, each in reassignment_results(response).items()
        if each.error_code is not ErrorCode.none
    }


async def ongoing(call: Call, partitions: Sequence[TopicPartition] | None = None) -> dict[TopicPartition, Ongoing]:
    """What is being reassigned, of some partitions or of all."""
    topics = None
    if partitions is not None:
        topics = tuple(
            ListPartitionReassignmentsTopics(
                name=WireTopicName(topic), partition_indexes=tuple(i32(tp.partition) for tp in group)
            )
            for topic, group in by_topic(partitions)
        )
    request = ListPartitionReassignmentsRequest(timeout=call.for_server, topics=topics)
    response = await call.ask_controller(request, ListPartitionReassignmentsResponse, changes_nothing=True)
    require("the list of reassignments", response.error_code, response.error_message)
    return {
        TopicPartition(TopicName(topic.name), PartitionId(each.partition_index)): Ongoing(
            replicas=_ids(each.replicas), adding=_ids(each.adding_replicas), removing=_ids(each.removing_replicas)
        )
        for topic in response.topics
        for each in topic.partitions
    }


async def verify(call: Call, targets: Mapping[TopicPartition, Replicas]) -> dict[TopicPartition, Progress]:
    """How far each partition is. It is at its target where the brokers know it there and nothing of it moves any more."""
    moving = await ongoing(call, tuple(targets))
    present = await replicas_of(call, {tp.topic for tp in targets})
    return {tp: _progress(target, moving.get(tp), present.get(tp)) for tp, target in targets.items()}


async def wait_until_moved(
    cluster: Cluster, targets: Mapping[TopicPartition, Replicas], timeout_ms: int | None = None
) -> ReassignmentResult:
    """Waits until no partition is on its way any more; without a time as long as that takes, and the cluster answers.

    A broker may hear of a move's end a moment after the controller: what seems to have failed is looked at once more."""
    whole = cluster.call(timeout_ms or _FOREVER_MS)
    has_failed_before = False
    while True:
        found = await verify(cluster.call(min(whole.left_ms, cluster.default_timeout_ms)), targets)
        has_failed = Progress.FAILED in found.values()
        if Progress.IN_PROGRESS not in found.values() and (has_failed_before or not has_failed):
            return ReassignmentResult(partitions=found)
        has_failed_before = has_failed
        await whole.pause(_POLL_S)


async def replicas_of(call: Call, topics: set[TopicName]) -> dict[TopicPartition, Replicas]:
    """The replicas of the partitions of topics, as a broker tells them; nothing of topics that are not there."""
    metadata = await call.metadata(*sorted(topics))
    for topic in metadata.topics:
        if topic.error_code not in _NOT_YET_KNOWN:
            require(f"topic {topic.name}", topic.error_code, None)
    return {place.partition: place.replicas for place in read_picture(metadata).partitions}


def _progress(target: Replicas, moving: Ongoing | None, present: Replicas | None) -> Progress:
    if moving is not None:
        return Progress.IN_PROGRESS if moving.target == target else Progress.FAILED
    return Progress.COMPLETED if present == target else Progress.FAILED


def _ids(replicas: Sequence[int]) -> Replicas:
    return tuple(map(BrokerId, replicas))

"""Partition reassignments: starts, cancels, lists and verifies moves (KIP-4, with the requests of KIP-455).

Nothing is remembered of a request. Progress is read from the cluster each time."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from kio.schema.alter_partition_reassignments.v0 import AlterPartitionReassignmentsResponse
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0 import ListPartitionReassignmentsResponse
from kio.static.primitive import i32Timedelta

from controller_core.client.cluster import Call, Cluster
from controller_core.client.errors import AdminError, OutcomeUnknown, PartlyRefused, Refused, require
from controller_core.client.log_dirs.placing import Place
from controller_core.client.reassigning.assignments import Reassignment, Replicas
from controller_core.client.reassigning.directories import (
    ONLY_DIRECTORIES_MOVE,
    Follower,
    direct_replicas,
    find_placements,
    read_places,
    return_replicas,
)
from controller_core.client.results import Result, Results
from controller_core.client.snapshot import read_snapshot
from controller_core.client.transport.request_client import ControllerClient
from controller_core.model.ids import BrokerId, PartitionId, PartitionReplica, TopicName, TopicPartition
from controller_core.wire.requests.partitions import (
    DEFAULT_TIMEOUT,
    make_list_reassignments_request,
    make_reassignment_request,
)

_POLL_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 10.0
_PAUSE_OF_WAIT: Final = 0.05
_PAUSE_OF_LOOK: Final = 10
"""Pauses of a wait, as fractions of the duration of the wait so far and of the last poll."""
SETTLES_MS: Final = 2_000
"""Milliseconds that a broker may take to learn of the controller's changes."""
_FOREVER_MS: Final = 10 * 365 * 86_400_000
_NOT_YET_KNOWN: Final = (ErrorCode.unknown_topic_or_partition, ErrorCode.leader_not_available)


class Progress(IntEnum):
    """The progress of one partition, with the numbers of KIP-4."""

    FAILED = -1
    """The partition neither moves to its target nor is there."""
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
        """The replicas at the end of the move."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def origin(self) -> Replicas:
        """The replicas after a cancellation."""
        return tuple(broker for broker in self.replicas if broker not in self.adding)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentResult:
    """The result of a move, for each partition."""

    partitions: Mapping[TopicPartition, Progress]

    @property
    def error(self) -> AdminError | None:
        """The reason why the move has not reached its end; None if it has."""
        failed = [str(tp) for tp, progress in self.partitions.items() if progress is not Progress.COMPLETED]
        if not failed:
            return None
        return AdminError(
            f"{len(failed)} of {len(self.partitions)} partitions are not at their target, and do not move there: "
            f"{', '.join(failed[:5])}: somebody cancelled or changed the move, or deleted the topic"
        )


async def start(call: Call, plan: Reassignment) -> None:
    """Start moves, log directories first, so that new replicas are created in theirs. Raises `PartlyRefused` if some are
    refused; the others have begun."""
    await direct_replicas(call, plan.directories)
    if refused := await request_moves(call, plan.targets):
        begun, others = _describe_others(plan, refused.values())
        raise PartlyRefused(tuple(refused.values()), others, begun=begun)


def _describe_others(plan: Reassignment, refused: Collection[Refused | OutcomeUnknown]) -> tuple[int | None, str]:
    """Return the number of moves that have begun although others were refused, None if it is unknown, and a sentence."""
    if begun := len(plan.targets) - len(refused):
        return begun, f"{begun} of {len(plan.targets)} partitions have begun to move"
    if any(isinstance(each, OutcomeUnknown) for each in refused):
        return None, "partitions may have begun to move"
    return (None, ONLY_DIRECTORIES_MOVE) if plan.directories else (0, "nothing moves")


async def cancel(call: Call, plan: Reassignment) -> tuple[TopicPartition, ...]:
    """Move partitions back to their original replicas, and end copying to the plan's log directories. Return the
    partitions that were moving. Raises `AdminError` if something may still move."""
    partitions, trouble, returned = tuple(plan.targets), None, set[TopicPartition]()
    try:
        returned = await return_replicas(call, plan.directories)
    except AdminError as error:
        trouble = error
    refused = await request_moves(call, dict.fromkeys(partitions))
    still = {tp: error for tp, error in refused.items() if not _did_not_move(error)}
    cancelled = tuple(tp for tp in partitions if tp not in refused or (tp in returned and tp not in still))
    others = f"{len(cancelled)} of {len(partitions)} are cancelled"
    if still:
        raise PartlyRefused(tuple(still.values()), others)
    if trouble is not None:
        raise AdminError(f"{trouble}; {others}") from trouble
    return cancelled


async def request_moves(
    call: Call, targets: Mapping[TopicPartition, Replicas | None]
) -> dict[TopicPartition, Refused | OutcomeUnknown]:
    """Request moves, or their cancellation for None. Return the refusals by partition."""
    results = await alter_reassignments(call.target_controller(), targets, call.for_server)
    found = {tp: result.make_error(str(tp)) for tp, result in results.require("the reassignment").items()}
    return {tp: error for tp, error in found.items() if error is not None}


async def alter_reassignments(
    client: ControllerClient, targets: Mapping[TopicPartition, Replicas | None], timeout: i32Timedelta
) -> Results[TopicPartition]:
    """Request moves, or their cancellation for None. Return the result of each partition."""
    request = make_reassignment_request(targets, timeout)
    response = await client.ask(request, AlterPartitionReassignmentsResponse)
    return Results(
        overall=Result(code=response.error_code, message=response.error_message),
        by_item={
            TopicPartition(TopicName(topic.name), PartitionId(each.partition_index)): Result(
                code=each.error_code, message=each.error_message
            )
            for topic in response.responses
            for each in topic.partitions
        },
    )


async def list_ongoing(call: Call, partitions: Sequence[TopicPartition] | None = None) -> dict[TopicPartition, Ongoing]:
    """Return the reassignments of some partitions, or of all."""
    return await list_reassignments(call.target_controller(changes_nothing=True), partitions, call.for_server)


async def list_reassignments(
    client: ControllerClient,
    partitions: Sequence[TopicPartition] | None = None,
    timeout: i32Timedelta = DEFAULT_TIMEOUT,
) -> dict[TopicPartition, Ongoing]:
    """Return the reassignments of some partitions, or of all. Raises `Refused`."""
    request = make_list_reassignments_request(partitions, timeout)
    response = await client.ask(request, ListPartitionReassignmentsResponse)
    require("the list of reassignments", response.error_code, response.error_message)
    return {
        TopicPartition(TopicName(topic.name), PartitionId(each.partition_index)): Ongoing(
            replicas=_parse_ids(each.replicas),
            adding=_parse_ids(each.adding_replicas),
            removing=_parse_ids(each.removing_replicas),
        )
        for topic in response.topics
        for each in topic.partitions
    }


async def verify(call: Call, plan: Reassignment) -> dict[TopicPartition, Progress]:
    """Return the progress of each partition. A partition is COMPLETED if the brokers know it at its target, it does not
    move, and its replicas are in their log directories.

    The controller knows of the end of a move a moment before the brokers do. So a partition that neither moves nor is
    at its target counts as FAILED only after the brokers had time to learn of it."""
    targets = plan.targets
    found, unsure = await _read_progress(call, targets)
    settled_ms = min(SETTLES_MS, call.left_ms // 2)
    until_ms = call.left_ms - settled_ms
    while unsure and call.left_ms > until_ms:
        await call.pause()
        again, unsure = await _read_progress(call, {tp: targets[tp] for tp in unsure})
        found |= again
    return found | await _judge_directories(call, plan, found)


async def _judge_directories(
    call: Call, plan: Reassignment, found: Mapping[TopicPartition, Progress]
) -> dict[TopicPartition, Progress]:
    """Return the partitions whose replicas are not all in their log directories. A failed partition stays failed."""
    judged: dict[TopicPartition, Progress] = {}
    for (partition, _), placement in (await find_placements(call, plan.directories)).items():
        progress = judged.get(partition, found[partition])
        if placement.place is not Place.THERE and progress is not Progress.FAILED:
            is_left = placement.place is Place.ELSEWHERE and found[partition] is Progress.COMPLETED
            judged[partition] = Progress.FAILED if is_left else Progress.IN_PROGRESS
    return judged


async def _read_progress(
    call: Call, targets: Mapping[TopicPartition, Replicas]
) -> tuple[dict[TopicPartition, Progress], list[TopicPartition]]:
    """Return the apparent progress of each partition, and the partitions for which it is uncertain."""
    moving = await list_ongoing(call, tuple(targets))
    present = await read_replicas(call, {tp.topic for tp in targets})
    found = {tp: _judge_progress(target, moving.get(tp), present.get(tp)) for tp, target in targets.items()}
    return found, [tp for tp, progress in found.items() if progress is Progress.FAILED and tp not in moving]


async def move(cluster: Cluster, plan: Reassignment, timeout_ms: int | None = None) -> ReassignmentResult:
    """Start a move and wait for its end, both within the time."""
    whole = cluster.call(_FOREVER_MS if timeout_ms is None else timeout_ms)
    await start(cluster.call(min(whole.left_ms, cluster.default_timeout_ms)), plan)
    return await _wait(whole, plan)


async def wait_until_moved(cluster: Cluster, plan: Reassignment, timeout_ms: int | None = None) -> ReassignmentResult:
    """Wait until no partition moves. Without a time limit, wait as long as the cluster answers.

    Ask once more for replicas that are in other log directories than the plan's, because a broker that restarts forgets
    the directory of a replica that it has not created yet."""
    return await _wait(cluster.call(_FOREVER_MS if timeout_ms is None else timeout_ms), plan)


async def _wait(whole: Call, plan: Reassignment) -> ReassignmentResult:
    """Poll less often the longer the wait and the longer a poll takes, because a large plan is expensive to poll."""
    clock = asyncio.get_running_loop().time
    begun_s = clock()
    follower = Follower(plan.directories)
    while True:
        looked_s = clock()
        part = whole.cluster.call(min(whole.left_ms, whole.cluster.default_timeout_ms))
        found, _ = await _read_progress(part, plan.targets)
        is_followed = await follower.look(part)
        if is_followed and Progress.IN_PROGRESS not in found.values():
            found = await verify(part, plan)
            if Progress.IN_PROGRESS not in found.values():
                return ReassignmentResult(partitions=found)
        now_s = clock()
        by_time_s = min(_LONGEST_PAUSE_S, (now_s - begun_s) * _PAUSE_OF_WAIT)
        await whole.pause(max(_POLL_S, by_time_s, (now_s - looked_s) * _PAUSE_OF_LOOK))


async def read_replicas(call: Call, topics: set[TopicName]) -> dict[TopicPartition, Replicas]:
    """Return the replicas of the topics' partitions as a broker reports them, without topics that do not exist."""
    metadata = await call.metadata(*sorted(topics))
    for topic in metadata.topics:
        if topic.error_code not in _NOT_YET_KNOWN:
            require(f"topic {topic.name}", topic.error_code, None)
    return {place.partition: place.replicas for place in read_snapshot(metadata).list_partitions()}


async def read_origins(call: Call, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Replicas]:
    """Return the present replicas of partitions, or if they move, the replicas before the move. Brokers also list the
    new replicas of a moving partition, so those are left out."""
    wanted = tuple(partitions)
    moving = await list_ongoing(call, wanted)
    present = await read_replicas(call, {tp.topic for tp in wanted})
    return {tp: moving[tp].origin if tp in moving else present[tp] for tp in wanted if tp in present}


async def read_present(call: Call, plan: Reassignment) -> Reassignment:
    """Return the plan that reverts a plan: the origins, and for partitions with log directories also the present ones.
    The directories of brokers that do not answer are left to their choice."""
    origins = await read_origins(call, plan.targets)
    directed = {replica.topic_partition for replica in plan.directories} & origins.keys()
    asked: dict[BrokerId, list[TopicPartition]] = {}
    for tp in directed:
        for broker in origins[tp]:
            asked.setdefault(broker, []).append(tp)
    answers = (await read_places(call, asked)).answers if asked else {}
    directories = {
        PartitionReplica(tp, broker): directory
        for broker, answer in answers.items()
        for tp, directory in answer.directory_of.items()
    }
    return Reassignment(targets=origins, directories=directories)


def _did_not_move(error: Refused | OutcomeUnknown) -> bool:
    return isinstance(error, Refused) and error.code is ErrorCode.no_reassignment_in_progress


def _judge_progress(target: Replicas, moving: Ongoing | None, present: Replicas | None) -> Progress:
    if moving is not None:
        return Progress.IN_PROGRESS if moving.target == target else Progress.FAILED
    return Progress.COMPLETED if present == target else Progress.FAILED


def _parse_ids(replicas: Sequence[int]) -> Replicas:
    return tuple(map(BrokerId, replicas))

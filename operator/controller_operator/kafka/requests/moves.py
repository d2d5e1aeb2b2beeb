"""How a plan begins moves: the cluster's controller is asked, as Kafka's own tools do, and judges each partition by itself.

AlterPartitionReassignments (KIP-455) has no limit of one request at a time, as its znode has, and says of each partition
whether it begins. To ask for the same target again changes nothing at any controller, so what came of a request whose
answer was lost is read from the cluster, and what has not begun is asked for again.

Where no server speaks what the operator does, there is only the znode (`actions`). Who asks cannot tell: the reply is the
same.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum
from itertools import islice
from typing import Final

import structlog
from kio.schema.alter_partition_reassignments.v0 import AlterPartitionReassignmentsResponse
from kio.schema.errors import ErrorCode
from kio.static.primitive import i32Timedelta

from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.wire.client.partition_requests import reassignment_request, reassignment_results
from controller_core.wire.client.request_client import ControllerClient, RequestError
from controller_core.zk import paths
from controller_core.zk.session import ANY_VERSION, Check, ConnectionLost, TransactionFailed, ZkSession
from controller_operator.kafka.actions import Outcome, SubmitReassignment, execute
from controller_operator.kafka.requests.rights import ALTER_CLUSTER, in_words

MAX_ASKED: Final = 500
"""Partitions of one request. A controller writes to ZooKeeper for each of them before it answers: Kafka's takes some
14 ms for one, and its answer must come in the time that a request has."""
REQUEST_TIMEOUT: Final = i32Timedelta.parse(timedelta(seconds=15))
_PAUSE_S: Final = 2.0
"""A controller may hear of a topic or a broker a moment after us: what it refuses is asked for once more."""
_CORDONED: Final = "cordoned"
"""What Kafka says of brokers that get no replicas as long as all their log directories are (KIP-1066, said since 4.4): its
code is that of targets which never can be."""
_log = structlog.get_logger(__name__)

Targets = Mapping[TopicPartition, tuple[BrokerId, ...] | None]


class RefusalKind(Enum):
    """What follows for a partition."""

    UNKNOWN = "the controller knows no such partition"
    """It is not there yet, or any more; the cluster will show which."""
    IMPOSSIBLE = "it cannot have these replicas"
    """Asking again would not help."""
    NOT_NOW = "not now"
    """Whatever time may put right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a partition does not begin to move."""

    kind: RefusalKind
    said: str
    """The controller's own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveReply:
    """What came of a `SubmitReassignment`, partition by partition; of those in neither list nothing is known."""

    step: SubmitReassignment
    accepted: frozenset[TopicPartition] = frozenset()
    """They have begun to move, and what is read of the cluster from now on shows it."""
    refused: Mapping[TopicPartition, Refusal] = field(default_factory=dict)
    trouble: str | None = None
    """Why there is no answer for some; None where there is one for all."""


async def submit_by_znode(step: SubmitReassignment, session: ZkSession) -> MoveReply:
    """Asks by `/admin/reassign_partitions`, all or nothing. Raises as `execute`."""
    is_done = await execute(step, session) is Outcome.DONE
    return MoveReply(step=step, accepted=frozenset(step.partitions if is_done else ()))


async def submit_by_request(step: SubmitReassignment, client: ControllerClient, session: ZkSession) -> MoveReply:
    """Asks the controller, and returns what came of it. An error is trouble for the plan to report, and to try again after.

    `session`: by which the plans' views are read."""
    reply = await submit(step, client)
    if reply.accepted and not await _has_seen_all(session):
        return replace(reply, accepted=frozenset())  # asked for again, unless the cluster shows them
    return reply


async def submit(step: SubmitReassignment, client: ControllerClient) -> MoveReply:
    """The same where views need not be made to show it."""
    reply = await _ask(MoveReply(step=step), step.partitions, client)
    if reply.refused and reply.trouble is None:
        await asyncio.sleep(_PAUSE_S)
        again = {partition: step.partitions[partition] for partition in reply.refused}
        reply = await _ask(reply, again, client)
    return reply


def in_parts(partitions: Iterable[TopicPartition]) -> Iterator[tuple[TopicPartition, ...]]:
    """As many partitions as one request may be about, again and again."""
    left = iter(partitions)
    while part := tuple(islice(left, MAX_ASKED)):
        yield part


async def _ask(reply: MoveReply, targets: Targets, client: ControllerClient) -> MoveReply:
    """The reply with what is said of these partitions."""
    for part in in_parts(targets):
        try:
            request = reassignment_request({partition: targets[partition] for partition in part}, REQUEST_TIMEOUT)
            response = await client.ask(request, AlterPartitionReassignmentsResponse)
        except RequestError as error:
            _log.warning("controller not asked", error=f"{type(error).__name__}: {error}")
            return replace(reply, trouble=str(error))
        refused = _refusals(part, response)
        reply = replace(
            reply,
            accepted=reply.accepted | (set(part) - refused.keys()),
            refused={**{tp: why for tp, why in reply.refused.items() if tp not in part}, **refused},
        )
    return reply


def _refusals(
    asked: Iterable[TopicPartition], response: AlterPartitionReassignmentsResponse
) -> dict[TopicPartition, Refusal]:
    if response.error_code is not ErrorCode.none:
        return dict.fromkeys(asked, _refusal(response.error_code, response.error_message))
    results = reassignment_results(response)
    refused = {}
    for partition in asked:
        result = results.get(partition)
        if result is None:
            refused[partition] = Refusal(kind=RefusalKind.NOT_NOW, said="the controller did not answer for it")
        elif result.error_code is not ErrorCode.none:
            refused[partition] = _refusal(result.error_code, result.error_message)
    return refused


def _refusal(code: ErrorCode, message: str | None) -> Refusal:
    said = in_words(code, message, ALTER_CLUSTER)
    match code:
        case ErrorCode.invalid_replica_assignment if _CORDONED not in (message or ""):
            return Refusal(kind=RefusalKind.IMPOSSIBLE, said=said)
        case ErrorCode.unknown_topic_or_partition:
            return Refusal(kind=RefusalKind.UNKNOWN, said=said)
        case _:
            return Refusal(kind=RefusalKind.NOT_NOW, said=said)


async def _has_seen_all(session: ZkSession) -> bool:
    """Has the session see all that the controller wrote before it answered: its server of ZooKeeper may be behind.

    Any transaction does, also one that changes nothing: who answers it has all that was written before it."""
    try:
        await session.transact([Check(path=paths.TOPICS, version=ANY_VERSION)])
    except (TransactionFailed, ConnectionLost) as error:
        _log.warning("not known to be up to date with ZooKeeper", error=str(error))
        return False
    return True

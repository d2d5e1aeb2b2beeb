"""Requests that begin moves. The cluster's controller judges each partition separately.

AlterPartitionReassignments (KIP-455) allows concurrent requests, unlike its znode, and reports for each partition if
its move begins. Repeating the same target changes nothing at any controller. So after a lost answer the cluster shows
the result, and the request is repeated for partitions that have not begun.
If no server supports the request, only the znode remains (`actions`). The caller sees no difference: the reply is the
same.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum
from itertools import islice
from typing import Final

import structlog
from kio.schema.errors import ErrorCode
from kio.static.primitive import i32Timedelta

from controller_core.client.errors import AdminError
from controller_core.client.reassigning.reassignments import alter_reassignments
from controller_core.client.results import Result, Results
from controller_core.client.transport.request_client import ControllerClient
from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.zk import paths
from controller_core.zk.session import ANY_VERSION, Check, ConnectionLost, TransactionFailed, ZkSession
from controller_operator.kafka.actions import Outcome, SubmitReassignment, execute
from controller_operator.kafka.requests.rights import ALTER_CLUSTER, describe_error

MAX_ASKED: Final = 500
"""Partitions of one request. A controller writes to ZooKeeper for each of them before it answers. Kafka's takes some
14 ms for one, and its answer must come within the request timeout."""
REQUEST_TIMEOUT: Final = i32Timedelta.parse(timedelta(seconds=15))
_PAUSE_S: Final = 2.0
"""Pause before a refused request is repeated, because a controller may hear of a topic or a broker a moment later."""
_CORDONED: Final = "cordoned"
"""Kafka's word (since 4.4) for brokers without new replicas because all their log directories are cordoned (KIP-1066).
The error code alone is that of impossible targets."""
_log = structlog.get_logger(__name__)

Targets = Mapping[TopicPartition, tuple[BrokerId, ...] | None]


class RefusalKind(Enum):
    """The consequence of a refusal for a partition."""

    UNKNOWN = "the controller knows no such partition"
    """It does not exist yet, or no longer; the cluster will show it."""
    IMPOSSIBLE = "it cannot have these replicas"
    """Repeating the request would not help."""
    NOT_NOW = "not now"
    """Time may remove the cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The reason why a partition does not begin to move."""

    kind: RefusalKind
    said: str
    """The controller's own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveReply:
    """The result of a `SubmitReassignment` by partition. Nothing is known of partitions in neither list."""

    step: SubmitReassignment
    accepted: frozenset[TopicPartition] = frozenset()
    """Partitions that have begun to move. Views from now on show their moves."""
    refused: Mapping[TopicPartition, Refusal] = field(default_factory=dict)
    trouble: str | None = None
    """The reason why some have no answer; None if all have one."""


async def submit_by_znode(step: SubmitReassignment, session: ZkSession) -> MoveReply:
    """Request the moves by `/admin/reassign_partitions`, all or nothing. Raises like `execute`."""
    is_done = await execute(step, session) is Outcome.DONE
    return MoveReply(step=step, accepted=frozenset(step.partitions if is_done else ()))


async def submit_by_request(step: SubmitReassignment, client: ControllerClient, session: ZkSession) -> MoveReply:
    """Ask the controller and return its reply. An error is trouble for the plan to report and retry.

    `session`: the session that reads the plans' views."""
    reply = await submit(step, client)
    if reply.accepted and not await _has_seen_all(session):
        return replace(reply, accepted=frozenset())  # requested again, unless the cluster shows them
    return reply


async def submit(step: SubmitReassignment, client: ControllerClient) -> MoveReply:
    """Like `submit_by_request`, without a wait for the session that reads the views."""
    reply = await _ask(MoveReply(step=step), step.partitions, client)
    if reply.refused and reply.trouble is None:
        await asyncio.sleep(_PAUSE_S)
        again = {partition: step.partitions[partition] for partition in reply.refused}
        reply = await _ask(reply, again, client)
    return reply


def divide_partitions(partitions: Iterable[TopicPartition]) -> Iterator[tuple[TopicPartition, ...]]:
    """Yield the partitions in parts of the size of one request."""
    left = iter(partitions)
    while part := tuple(islice(left, MAX_ASKED)):
        yield part


async def _ask(reply: MoveReply, targets: Targets, client: ControllerClient) -> MoveReply:
    """Return the reply, extended by the answer for these partitions."""
    for part in divide_partitions(targets):
        try:
            targets_of_part = {partition: targets[partition] for partition in part}
            results = await alter_reassignments(client, targets_of_part, REQUEST_TIMEOUT)
        except AdminError as error:
            _log.warning("controller not asked", error=f"{type(error).__name__}: {error}")
            return replace(reply, trouble=str(error))
        refused = _find_refusals(part, results)
        reply = replace(
            reply,
            accepted=reply.accepted | (set(part) - refused.keys()),
            refused={**{tp: why for tp, why in reply.refused.items() if tp not in part}, **refused},
        )
    return reply


def _find_refusals(asked: Sequence[TopicPartition], results: Results[TopicPartition]) -> dict[TopicPartition, Refusal]:
    found = results.spread(asked)
    return {tp: _make_refusal(result) for tp in asked if (result := found.get(tp)) is None or not result.is_done}


def _make_refusal(result: Result | None) -> Refusal:
    if result is None:
        return Refusal(kind=RefusalKind.NOT_NOW, said="the controller did not answer for it")
    said = describe_error(result.code, result.message, ALTER_CLUSTER)
    match result.code:
        case ErrorCode.invalid_replica_assignment if _CORDONED not in (result.message or ""):
            return Refusal(kind=RefusalKind.IMPOSSIBLE, said=said)
        case ErrorCode.unknown_topic_or_partition:
            return Refusal(kind=RefusalKind.UNKNOWN, said=said)
        case _:
            return Refusal(kind=RefusalKind.NOT_NOW, said=said)


async def _has_seen_all(session: ZkSession) -> bool:
    """Wait until the session sees all that the controller wrote before its answer: its ZooKeeper server may be behind.

    Any transaction achieves that, even without a change: the server that answers it has all earlier writes."""
    try:
        await session.transact([Check(path=paths.TOPICS, version=ANY_VERSION)])
    except (TransactionFailed, ConnectionLost) as error:
        _log.warning("not known to be up to date with ZooKeeper", error=str(error))
        return False
    return True

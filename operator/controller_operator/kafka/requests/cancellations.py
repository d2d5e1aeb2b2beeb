"""Requests that cancel running moves.

AlterPartitionReassignments with no replicas for a partition cancels its move. The controller judges each partition
separately. A move that is over, or whose topic is gone, is no refusal: the cluster shows the partition's state.
"""

from dataclasses import dataclass, replace
from typing import Final

import structlog
from kio.schema.errors import ErrorCode

from controller_core.client.errors import AdminError
from controller_core.client.reassigning.reassignments import alter_reassignments
from controller_core.client.transport.request_client import ControllerClient
from controller_core.model.ids import TopicPartition
from controller_operator.kafka.requests.moves import REQUEST_TIMEOUT, divide_partitions
from controller_operator.kafka.requests.rights import ALTER_CLUSTER
from controller_operator.kafka.requests.verdicts import read_verdict

_NOTHING_TO_CANCEL: Final = (
    ErrorCode.none,
    ErrorCode.no_reassignment_in_progress,
    ErrorCode.unknown_topic_or_partition,
)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelReassignment:
    """Asks the controller to cancel the moves of these partitions."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelReply:
    """The result of a `CancelReassignment`."""

    step: CancelReassignment
    trouble: str | None = None
    """The reason why some have no answer; None if all have one. It is then unknown if the moves were cancelled."""
    refused: tuple[tuple[TopicPartition, str], ...] = ()
    """The partitions whose moves go on, and the controller's reasons."""


async def cancel_reassignment(step: CancelReassignment, client: ControllerClient) -> CancelReply:
    """Ask the controller and return its reply. An error is trouble for the plan to report and retry."""
    reply = CancelReply(step=step)
    for part in divide_partitions(step.partitions):
        try:
            results = await alter_reassignments(client, dict.fromkeys(part), REQUEST_TIMEOUT)
        except AdminError as error:
            _log.warning("controller not asked", error=f"{type(error).__name__}: {error}")
            return replace(reply, trouble=str(error))
        verdict = read_verdict(results.spread(part), ALTER_CLUSTER, _NOTHING_TO_CANCEL)
        reply = replace(reply, trouble=verdict.trouble or reply.trouble, refused=(*reply.refused, *verdict.refused))
    return reply

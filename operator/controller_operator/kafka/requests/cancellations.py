"""Requests that cancel running moves.

AlterPartitionReassignments with no replicas for a partition cancels its move. The controller judges each partition
separately. A move that is over, or whose topic is gone, is no refusal: the cluster shows the partition's state.
"""

from dataclasses import dataclass, replace
from typing import Final

import structlog
from kio.schema.alter_partition_reassignments.v0 import AlterPartitionReassignmentsResponse
from kio.schema.errors import ErrorCode

from controller_core.client.errors import AdminError
from controller_core.client.transport.request_client import ControllerClient
from controller_core.model.ids import TopicPartition
from controller_core.wire.requests.partitions import make_reassignment_request, read_reassignment_results
from controller_operator.kafka.requests.momentary import is_momentary
from controller_operator.kafka.requests.moves import REQUEST_TIMEOUT, divide_partitions
from controller_operator.kafka.requests.rights import ALTER_CLUSTER, describe_error

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
            request = make_reassignment_request(dict.fromkeys(part), REQUEST_TIMEOUT)
            response = await client.ask(request, AlterPartitionReassignmentsResponse)
        except AdminError as error:
            _log.warning("controller not asked", error=f"{type(error).__name__}: {error}")
            return replace(reply, trouble=str(error))
        errors = _errors(part, response)
        reply = replace(
            reply,
            trouble=next((said for _, code, said in errors if is_momentary(code)), reply.trouble),
            refused=(*reply.refused, *((tp, said) for tp, code, said in errors if not is_momentary(code))),
        )
    return reply


def _errors(
    asked: tuple[TopicPartition, ...], response: AlterPartitionReassignmentsResponse
) -> list[tuple[TopicPartition, ErrorCode, str]]:
    if response.error_code is not ErrorCode.none:
        said = describe_error(response.error_code, response.error_message, ALTER_CLUSTER)
        return [(partition, response.error_code, said) for partition in asked]
    return [
        (partition, each.error_code, each.error_message or each.error_code.name)
        for partition, each in read_reassignment_results(response).items()
        if each.error_code not in _NOTHING_TO_CANCEL
    ]

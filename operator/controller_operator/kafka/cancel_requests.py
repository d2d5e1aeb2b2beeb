"""How a plan cancels moves that run: the cluster's controller is asked, as Kafka's own tools do.

AlterPartitionReassignments with no replicas for a partition takes its move back. It judges each partition by itself; that
a move is over already, or its topic gone, is no refusal: what became of the partition shows in the cluster.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from operator import attrgetter
from typing import Final

import structlog
from kio.schema.alter_partition_reassignments.v0 import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from kio.schema.alter_partition_reassignments.v0.request import ReassignablePartition, ReassignableTopic
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32, i32Timedelta

from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from controller_core.wire.client.request_client import ControllerClient, RequestError

_TIMEOUT: Final = i32Timedelta.parse(timedelta(seconds=15))
_NOTHING_TO_CANCEL: Final = (
    ErrorCode.none,
    ErrorCode.no_reassignment_in_progress,
    ErrorCode.unknown_topic_or_partition,
)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelReassignment:
    """Asks the controller to take the moves of these partitions back."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelReply:
    """What came of a `CancelReassignment`."""

    step: CancelReassignment
    trouble: str | None = None
    """Why there is no answer; None where there is one. Whether the moves were cancelled is then unknown."""
    refused: tuple[tuple[TopicPartition, str], ...] = ()
    """The partitions whose moves go on, and the controller's reasons."""


async def cancel_reassignment(step: CancelReassignment, client: ControllerClient) -> CancelReply:
    """Asks, and returns what came of it. An error is trouble for the plan to report, and to try again after."""
    try:
        response = await client.ask(_request(step.partitions), AlterPartitionReassignmentsResponse)
    except RequestError as error:
        _log.warning("controller not asked", error=f"{type(error).__name__}: {error}")
        return CancelReply(step=step, trouble=str(error))
    if response.error_code is not ErrorCode.none:
        said = response.error_message or response.error_code.name
        return CancelReply(step=step, refused=tuple((partition, said) for partition in step.partitions))
    return CancelReply(
        step=step,
        refused=tuple(
            (
                TopicPartition(TopicName(str(topic.name)), PartitionId(int(each.partition_index))),
                each.error_message or each.error_code.name,
            )
            for topic in response.responses
            for each in topic.partitions
            if each.error_code not in _NOTHING_TO_CANCEL
        ),
    )


def _request(partitions: Sequence[TopicPartition]) -> AlterPartitionReassignmentsRequest:
    by_topic = groupby(sorted(partitions), key=attrgetter("topic"))
    return AlterPartitionReassignmentsRequest(
        timeout=_TIMEOUT,
        topics=tuple(
            ReassignableTopic(
                name=WireTopicName(topic),
                partitions=tuple(
                    ReassignablePartition(partition_index=i32(each.partition), replicas=None) for each in group
                ),
            )
            for topic, group in by_topic
        ),
    )

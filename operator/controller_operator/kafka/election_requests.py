"""How a plan has leaders elected from outside the ISR: there is no znode for that, so the cluster's controller is asked.

ElectLeaders (KIP-460) judges each partition by itself. That a partition has a live leader by now is no refusal: what became
of it shows in the cluster.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from operator import attrgetter
from typing import Final

import structlog
from kio.schema.elect_leaders.v2 import ElectLeadersRequest, ElectLeadersResponse
from kio.schema.elect_leaders.v2.request import TopicPartitions
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i8, i32, i32Timedelta

from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from controller_core.wire.client.request_client import ControllerClient, RequestError

MAX_ASKED: Final = 5_000
"""Partitions of one request: what a controller takes of it is bounded, and so is the time that it works on it."""
_UNCLEAN: Final = i8(1)
_TIMEOUT: Final = i32Timedelta.parse(timedelta(seconds=15))
_NO_REFUSAL: Final = (ErrorCode.none, ErrorCode.election_not_needed)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectUnclean:
    """Asks the controller for leaders of these partitions, out of the ISR where none of it is alive."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionReply:
    """What came of an `ElectUnclean`."""

    step: ElectUnclean
    trouble: str | None = None
    """Why there is no answer; None where there is one. Whether leaders were elected is then unknown."""
    refused: tuple[tuple[TopicPartition, str], ...] = ()
    """The partitions that got no leader, and the controller's reasons."""


async def elect_unclean(step: ElectUnclean, client: ControllerClient) -> ElectionReply:
    """Asks, and returns what came of it. An error is trouble for the plan to report, and to try again after."""
    try:
        response = await client.ask(_request(step.partitions), ElectLeadersResponse)
    except RequestError as error:
        _log.warning("controller not asked", error=f"{type(error).__name__}: {error}")
        return ElectionReply(step=step, trouble=str(error))
    if response.error_code is not ErrorCode.none:
        said = response.error_code.name
        return ElectionReply(step=step, refused=tuple((partition, said) for partition in step.partitions))
    results = [
        (TopicPartition(TopicName(str(topic.topic)), PartitionId(int(each.partition_id))), each)
        for topic in response.replica_election_results
        for each in topic.partition_result
    ]
    if any(each.error_code is ErrorCode.request_timed_out for _, each in results):
        return ElectionReply(step=step, trouble="it did not end within the time of the request")
    return ElectionReply(
        step=step,
        refused=tuple(
            (partition, each.error_message or each.error_code.name)
            for partition, each in results
            if each.error_code not in _NO_REFUSAL
        ),
    )


def _request(partitions: Sequence[TopicPartition]) -> ElectLeadersRequest:
    by_topic = groupby(sorted(partitions), key=attrgetter("topic"))
    return ElectLeadersRequest(
        election_type=_UNCLEAN,
        timeout=_TIMEOUT,
        topic_partitions=tuple(
            TopicPartitions(topic=WireTopicName(topic), partitions=tuple(i32(each.partition) for each in group))
            for topic, group in by_topic
        ),
    )

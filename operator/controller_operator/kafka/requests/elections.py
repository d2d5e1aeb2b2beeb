"""How a plan has leaders elected from outside the ISR: there is no znode for that, so the cluster's controller is asked.

ElectLeaders (KIP-460) judges each partition by itself. That a partition has a live leader by now is no refusal: what became
of it shows in the cluster.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

import structlog
from kio.schema.elect_leaders.v2 import ElectLeadersResponse
from kio.schema.errors import ErrorCode
from kio.static.primitive import i8, i32Timedelta

from controller_core.model.ids import TopicPartition
from controller_core.wire.client.partition_requests import PREFERRED, UNCLEAN, election_request, election_results
from controller_core.wire.client.request_client import ControllerClient, RequestError
from controller_operator.kafka.actions import SubmitPreferredElection
from controller_operator.kafka.requests.momentary import is_momentary
from controller_operator.kafka.requests.rights import ALTER_CLUSTER, in_words

MAX_ASKED: Final = 5_000
"""Partitions of one request: what a controller takes of it is bounded, and so is the time that it works on it."""
_TIMEOUT: Final = i32Timedelta.parse(timedelta(seconds=15))
_NO_REFUSAL: Final = (ErrorCode.none, ErrorCode.election_not_needed)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectUnclean:
    """Asks the controller for leaders of these partitions, out of the ISR where none of it is alive."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionReply:
    """What came of a request for elections."""

    step: ElectUnclean | SubmitPreferredElection
    trouble: str | None = None
    """Why there is no answer; None where there is one. Whether leaders were elected is then unknown."""
    refused: tuple[tuple[TopicPartition, str], ...] = ()
    """The partitions that got no leader, and the controller's reasons."""


async def elect_unclean(step: ElectUnclean, client: ControllerClient) -> ElectionReply:
    """Asks, and returns what came of it. An error is trouble for the plan to report, and to try again after."""
    return await _elect(UNCLEAN, step, client)


async def elect_preferred(step: SubmitPreferredElection, client: ControllerClient) -> ElectionReply:
    """The same for preferred leaders, where there is no ZooKeeper to ask for them by."""
    reply = ElectionReply(step=step)
    for first in range(0, len(step.partitions), MAX_ASKED):
        part = SubmitPreferredElection(partitions=step.partitions[first : first + MAX_ASKED])
        found = await _elect(PREFERRED, part, client)
        reply = replace(reply, trouble=found.trouble, refused=(*reply.refused, *found.refused))
        if found.trouble is not None:
            break
    return reply


async def _elect(
    election_type: i8, step: ElectUnclean | SubmitPreferredElection, client: ControllerClient
) -> ElectionReply:
    try:
        response = await client.ask(election_request(election_type, step.partitions, _TIMEOUT), ElectLeadersResponse)
    except RequestError as error:
        _log.warning("controller not asked", error=f"{type(error).__name__}: {error}")
        return ElectionReply(step=step, trouble=str(error))
    if response.error_code is not ErrorCode.none:
        said = in_words(response.error_code, None, ALTER_CLUSTER)
        if is_momentary(response.error_code):
            return ElectionReply(step=step, trouble=said)
        return ElectionReply(step=step, refused=tuple((partition, said) for partition in step.partitions))
    results = election_results(response)
    unjudged = [each for each in results.values() if is_momentary(each.error_code)]
    if unjudged:
        return ElectionReply(step=step, trouble=unjudged[0].error_message or unjudged[0].error_code.name)
    return ElectionReply(
        step=step,
        refused=tuple(
            (partition, each.error_message or each.error_code.name)
            for partition, each in results.items()
            if each.error_code not in _NO_REFUSAL
        ),
    )

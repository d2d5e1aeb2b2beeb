"""Requests that elect leaders from outside the ISR. No znode exists for that, so the cluster's controller is asked.

ElectLeaders (KIP-460) judges each partition separately. A partition that has a live leader already is no refusal: the
cluster shows its state.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

import structlog
from kio.static.primitive import i8, i32Timedelta

from controller_core.client.elections import ELECTED, elect_leaders
from controller_core.client.errors import AdminError
from controller_core.client.transport.request_client import ControllerClient
from controller_core.model.ids import TopicPartition
from controller_core.wire.requests.partitions import PREFERRED, UNCLEAN
from controller_operator.kafka.actions import SubmitPreferredElection
from controller_operator.kafka.requests.rights import ALTER_CLUSTER
from controller_operator.kafka.requests.verdicts import read_verdict

MAX_ASKED: Final = 5_000
"""Partitions of one request. The controller's request size and working time are bounded."""
_TIMEOUT: Final = i32Timedelta.parse(timedelta(seconds=15))
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectUnclean:
    """Asks the controller for leaders of these partitions, from outside the ISR if no member of it is alive."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionReply:
    """The result of a request for elections."""

    step: ElectUnclean | SubmitPreferredElection
    trouble: str | None = None
    """The reason why there is no answer; None if there is one. It is then unknown if leaders were elected."""
    refused: tuple[tuple[TopicPartition, str], ...] = ()
    """The partitions that got no leader, and the controller's reasons."""


async def elect_unclean(step: ElectUnclean, client: ControllerClient) -> ElectionReply:
    """Ask the controller and return its reply. An error is trouble for the plan to report and retry."""
    return await _elect(UNCLEAN, step, client)


async def elect_preferred(step: SubmitPreferredElection, client: ControllerClient) -> ElectionReply:
    """Elect preferred leaders in a cluster without ZooKeeper."""
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
        results = await elect_leaders(client, election_type, step.partitions, _TIMEOUT)
    except AdminError as error:
        _log.warning("controller not asked", error=f"{type(error).__name__}: {error}")
        return ElectionReply(step=step, trouble=str(error))
    verdict = read_verdict(results.spread(step.partitions), ALTER_CLUSTER, ELECTED)
    if verdict.trouble is not None:
        return ElectionReply(step=step, trouble=verdict.trouble)
    return ElectionReply(step=step, refused=verdict.refused)

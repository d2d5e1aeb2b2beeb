"""Finds the leader of a quorum and its address: asks brokers with DescribeQuorum as of Kafka 3.9."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from kio.schema.describe_quorum.v2 import DescribeQuorumResponse
from kio.schema.errors import ErrorCode

from controller_core.client.errors import AdminError, NotAdmittedError, Refused, Unsupported
from controller_core.client.quorum import the_partition
from controller_core.client.transport.kept_client import KeptClient
from controller_core.client.transport.request_client import Address, RequestClient
from controller_core.model.ids import BrokerId
from controller_core.recorder.looker import OutOfSight
from controller_core.security.properties_file import InvalidProperties
from controller_core.wire.connections.security import SecuritySource
from controller_core.wire.requests.quorum import QUORUM_ADDRESSES

_TIMEOUT_MS: Final = 5_000

SourceOf: TypeAlias = Callable[[str], SecuritySource | None]
"""Returns the security settings of a listener by its name. Raises `InvalidProperties`."""


class LogRefused(Exception):
    """The metadata log cannot be followed: access is refused, or its place is not revealed. A person has to change
    something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumLeader:
    """The leader of a quorum, and a connection to it."""

    node_id: BrokerId
    epoch: int
    client: KeptClient


async def find_leader(brokers: RequestClient, source_of: SourceOf) -> QuorumLeader:
    """Find the leader. Raises `OutOfSight`, and `LogRefused`."""
    try:
        answer = await brokers.ask_any(QUORUM_ADDRESSES, DescribeQuorumResponse)
    except (Unsupported, NotAdmittedError) as error:
        raise LogRefused(f"brokers do not reveal the leader of the quorum: {error}") from error
    except AdminError as error:
        raise OutOfSight(f"no broker reports the leader of the quorum: {error}") from error
    try:
        found = the_partition(answer.error_code, (each for topic in answer.topics for each in topic.partitions))
    except Refused as error:
        if error.code in (ErrorCode.cluster_authorization_failed, ErrorCode.topic_authorization_failed):
            raise LogRefused(
                "brokers do not reveal the leader of the quorum: allow the user Describe on the cluster"
            ) from error
        raise OutOfSight(f"no broker reports the leader of the quorum: {error}") from error
    if found.leader_id < 0:
        raise OutOfSight("the quorum has no leader")
    address, listener = _find_address(answer, int(found.leader_id))
    try:
        security = source_of(listener)
    except InvalidProperties as error:
        raise LogRefused(f"the listener {listener} of the controllers: {error}") from error
    client = KeptClient((address,), security=security, timeout_ms=_TIMEOUT_MS)
    return QuorumLeader(node_id=BrokerId(int(found.leader_id)), epoch=int(found.leader_epoch), client=client)


def _find_address(answer: DescribeQuorumResponse, leader: int) -> tuple[Address, str]:
    """Return the address and listener of the leader.

    Brokers know the addresses of voters. A removed voter keeps leading until the others have committed its removal
    (KIP-853), so a leader that is not a voter is only temporary."""
    told = {int(node.node_id): node.listeners[0] for node in answer.nodes if node.listeners}
    if not told:
        raise LogRefused(f"brokers do not report the address of controller {leader}: they are older than Kafka 3.9")
    if leader not in told:
        raise OutOfSight(f"controller {leader} leads the quorum, but is not a voter: another leader is about to follow")
    return Address(told[leader].host, int(told[leader].port)), told[leader].name

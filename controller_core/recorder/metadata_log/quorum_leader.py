"""Who leads a quorum and where it listens: asked of brokers, who know it by DescribeQuorum as of Kafka 3.9."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from kio.schema.describe_quorum.v2 import DescribeQuorumRequest, DescribeQuorumResponse
from kio.schema.describe_quorum.v2.request import PartitionData, TopicData
from kio.schema.errors import ErrorCode
from kio.static.primitive import i32

from controller_core.model.ids import BrokerId
from controller_core.recorder.looker import OutOfSight
from controller_core.security.properties_file import InvalidProperties
from controller_core.wire.client.kept_client import KeptClient
from controller_core.wire.client.quorum import METADATA_TOPIC, QuorumRefused, the_partition
from controller_core.wire.client.request_client import (
    Address,
    AnswerUnreadable,
    NotAdmitted,
    RequestClient,
    RequestError,
    VersionUnsupported,
)
from controller_core.wire.connections.security import SecuritySource

_DESCRIBE: Final = DescribeQuorumRequest(
    topics=(TopicData(topic_name=METADATA_TOPIC, partitions=(PartitionData(partition_index=i32(0)),)),)
)
_TIMEOUT_MS: Final = 5_000

SourceOf: TypeAlias = Callable[[str], SecuritySource | None]
"""How a listener is spoken to, by its name. Raises `InvalidProperties`."""


class LogRefused(Exception):
    """The metadata log cannot be followed: nobody lets us, or says where it is. Somebody has to change something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumLeader:
    """Who leads the quorum, and a connection to it."""

    node_id: BrokerId
    epoch: int
    client: KeptClient


async def find_leader(brokers: RequestClient, source_of: SourceOf) -> QuorumLeader:
    """Raises `OutOfSight`, and `LogRefused`."""
    try:
        answer = await brokers.ask_any(_DESCRIBE, DescribeQuorumResponse)
    except (VersionUnsupported, AnswerUnreadable, NotAdmitted) as error:
        raise LogRefused(f"brokers do not say who leads the quorum: {error}") from error
    except RequestError as error:
        raise OutOfSight(f"no broker says who leads the quorum: {error}") from error
    try:
        found = the_partition(answer.error_code, (each for topic in answer.topics for each in topic.partitions))
    except QuorumRefused as error:
        if error.error_code in (ErrorCode.cluster_authorization_failed, ErrorCode.topic_authorization_failed):
            raise LogRefused(
                "brokers do not say who leads the quorum: give the user the right to describe the cluster"
            ) from error
        raise OutOfSight(f"no broker says who leads the quorum: {error}") from error
    if found.leader_id < 0:
        raise OutOfSight("nobody leads the quorum now")
    address, listener = _address_of(answer, int(found.leader_id))
    try:
        security = source_of(listener)
    except InvalidProperties as error:
        raise LogRefused(f"the listener {listener} of the controllers: {error}") from error
    client = KeptClient((address,), security=security, timeout_ms=_TIMEOUT_MS)
    return QuorumLeader(node_id=BrokerId(int(found.leader_id)), epoch=int(found.leader_epoch), client=client)


def _address_of(answer: DescribeQuorumResponse, leader: int) -> tuple[Address, str]:
    """Brokers say it of those that vote. Who is taken from them and leads goes on to lead until the others have decided it
    (KIP-853), so nothing is wrong then, and soon another one leads."""
    told = {int(node.node_id): node.listeners[0] for node in answer.nodes if node.listeners}
    if not told:
        raise LogRefused(f"brokers do not say where controller {leader} listens: they are older than Kafka 3.9")
    if leader not in told:
        raise OutOfSight(f"controller {leader} leads the quorum and votes no more: another one is about to lead")
    return Address(told[leader].host, int(told[leader].port)), told[leader].name

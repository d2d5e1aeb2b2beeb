"""Whether a cluster has its metadata from a quorum of controllers (KRaft), and who leads that.

Its brokers name any of them as the controller in Metadata, each time another one, and pass on what it is asked. Who really
is, they tell who asks for the quorum (KIP-836).
"""

from dataclasses import dataclass
from typing import Final

from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.describe_quorum.v0 import DescribeQuorumRequest, DescribeQuorumResponse
from kio.schema.describe_quorum.v0.request import PartitionData, TopicData
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i32

from controller_core.model.ids import BrokerId
from controller_core.wire.client.negotiation import ASK_FOR_RANGES
from controller_core.wire.client.request_client import ControllerClient

_METADATA: Final = TopicName("__cluster_metadata")
DESCRIBE_QUORUM: Final = DescribeQuorumRequest(
    topics=(TopicData(topic_name=_METADATA, partitions=(PartitionData(partition_index=i32(0)),)),)
)


class QuorumRefused(Exception):
    """The quorum is there, and does not say who leads it."""

    def __init__(self, error_code: ErrorCode) -> None:
        super().__init__(f"who leads the quorum is not told: {error_code.name}")
        self.error_code = error_code


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """As its leader says it."""

    leader: BrokerId | None
    """None in the midst of an election."""
    epoch: int
    committed: int
    """The offset of the metadata log up to which all is decided."""


async def has_quorum(client: ControllerClient) -> bool:
    """Whether there is no ZooKeeper: only then do brokers take questions about a quorum. Raises `RequestError`."""
    return knows_quorum(await client.ask(ASK_FOR_RANGES, ApiVersionsResponse))


def knows_quorum(answer: ApiVersionsResponse) -> bool:
    """Whether it is the answer of a broker without ZooKeeper."""
    return any(int(each.api_key) == int(DescribeQuorumRequest.__api_key__) for each in answer.api_keys)


async def ask_quorum(client: ControllerClient) -> Quorum | None:
    """None where there is none. Raises `RequestError` and `QuorumRefused`."""
    if not await has_quorum(client):
        return None
    return read_quorum(await client.ask(DESCRIBE_QUORUM, DescribeQuorumResponse))


def read_quorum(answer: DescribeQuorumResponse) -> Quorum:
    """Raises `QuorumRefused`."""
    found = next((partition for topic in answer.topics for partition in topic.partitions), None)
    if answer.error_code is not ErrorCode.none:
        raise QuorumRefused(answer.error_code)
    if found is None or found.error_code is not ErrorCode.none:
        raise QuorumRefused(ErrorCode.unknown_topic_or_partition if found is None else found.error_code)
    return Quorum(
        leader=BrokerId(found.leader_id) if found.leader_id >= 0 else None,
        epoch=int(found.leader_epoch),
        committed=int(found.high_watermark),
    )

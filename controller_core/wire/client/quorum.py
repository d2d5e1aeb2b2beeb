"""Whether a cluster has its metadata from a quorum of controllers (KRaft), and who leads that.

Its brokers name any of them as the controller in Metadata, each time another one, and pass on what it is asked. Who really
is, they tell who asks for the quorum (KIP-836).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.describe_quorum.v0 import DescribeQuorumRequest, DescribeQuorumResponse
from kio.schema.describe_quorum.v0.request import PartitionData, TopicData
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i32

from controller_core.model.ids import BrokerId
from controller_core.model.topics.topic_names import CLUSTER_METADATA_TOPIC
from controller_core.wire.client.negotiation import ASK_FOR_RANGES
from controller_core.wire.client.request_client import ControllerClient

METADATA_TOPIC: Final = TopicName(CLUSTER_METADATA_TOPIC)
DESCRIBE_QUORUM: Final = DescribeQuorumRequest(
    topics=(TopicData(topic_name=METADATA_TOPIC, partitions=(PartitionData(partition_index=i32(0)),)),)
)


class QuorumRefused(Exception):
    """The quorum is there, and does not say who leads it."""

    def __init__(self, error_code: ErrorCode) -> None:
        super().__init__(f"who leads the quorum is not told: {error_code.name}")
        self.error_code = error_code


class _Told(Protocol):
    """A partition in an answer to DescribeQuorum of any version."""

    @property
    def error_code(self) -> ErrorCode: ...


Told = TypeVar("Told", bound=_Told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """As its leader says it."""

    leader: BrokerId | None
    """None in the midst of an election."""
    epoch: int
    committed: int
    """The offset of the metadata log up to which all is decided; -1 where a new leader does not know it yet."""
    written: int
    """The offset up to which that leader has written."""
    voters: tuple[BrokerId, ...] = ()

    @property
    def is_led(self) -> bool:
        """Whether somebody leads who knows what is decided."""
        return self.leader is not None and self.committed >= 0


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
    found = the_partition(answer.error_code, (each for topic in answer.topics for each in topic.partitions))
    replicas = (*found.current_voters, *found.observers)  # who leads may vote no more
    own = (int(each.log_end_offset) for each in replicas if each.replica_id == found.leader_id)
    return Quorum(
        leader=BrokerId(found.leader_id) if found.leader_id >= 0 else None,
        epoch=int(found.leader_epoch),
        committed=int(found.high_watermark),
        written=max((int(found.high_watermark), *own)),
        voters=tuple(sorted(BrokerId(each.replica_id) for each in found.current_voters)),
    )


def the_partition(error_code: ErrorCode, partitions: Iterable[Told]) -> Told:
    """The only partition of an answer to DescribeQuorum, whose error code this is. Raises `QuorumRefused`."""
    found = next(iter(partitions), None)
    code = error_code if error_code is not ErrorCode.none or found is None else found.error_code
    if found is None or code is not ErrorCode.none:
        raise QuorumRefused(ErrorCode.unknown_topic_or_partition if code is ErrorCode.none else code)
    return found

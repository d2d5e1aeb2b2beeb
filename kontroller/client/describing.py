"""A cluster as it is: its nodes, and how many of its partitions ail."""

from collections import Counter
from dataclasses import dataclass

from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.describe_quorum.v0 import DescribeQuorumResponse

from controller_core.model.ids import NO_LEADER, BrokerId
from controller_core.wire.client.negotiation import ASK_FOR_RANGES
from controller_core.wire.client.quorum import DESCRIBE_QUORUM, QuorumRefused, knows_quorum, read_quorum
from controller_core.wire.client.request_client import Address
from kontroller.client.cluster import Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A broker, or a controller that is none and is listed among them."""

    id: BrokerId
    address: Address
    rack: str | None
    replicas: int
    """How many it has. A controller that is no broker has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    """What one server says of the cluster."""

    cluster_id: str | None
    controller: BrokerId | None
    """None where there is none, or a quorum does not tell who leads it."""
    nodes: tuple[Node, ...]
    topics: int
    partitions: int
    offline: int
    """Without a leader."""
    under_replicated: int
    """With replicas that are not in sync."""


async def describe(call: Call) -> ClusterDescription:
    """As the first server says it that answers."""
    metadata = await call.metadata(of_all=True)
    partitions = [each for topic in metadata.topics for each in topic.partitions]
    replicas = Counter(broker for each in partitions for broker in each.replica_nodes)
    return ClusterDescription(
        cluster_id=metadata.cluster_id,
        controller=await _controller(call),
        nodes=tuple(
            Node(
                id=BrokerId(each.node_id),
                address=Address(each.host, int(each.port)),
                rack=each.rack,
                replicas=replicas[each.node_id],
            )
            for each in sorted(metadata.brokers, key=lambda broker: broker.node_id)
        ),
        topics=len(metadata.topics),
        partitions=len(partitions),
        offline=sum(BrokerId(each.leader_id) == NO_LEADER for each in partitions),
        under_replicated=sum(len(each.isr_nodes) < len(each.replica_nodes) for each in partitions),
    )


async def _controller(call: Call) -> BrokerId | None:
    """What brokers without ZooKeeper name as the controller is just one of them: there the quorum is asked who leads it."""
    if not knows_quorum(await call.ask_any(ASK_FOR_RANGES, ApiVersionsResponse)):
        return call.cluster.controller
    try:
        return read_quorum(await call.ask_any(DESCRIBE_QUORUM, DescribeQuorumResponse)).leader
    except QuorumRefused:
        return None

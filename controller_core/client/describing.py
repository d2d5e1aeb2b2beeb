"""Describes a cluster: its nodes, and how many of its partitions are unhealthy."""

from collections import Counter
from dataclasses import dataclass

from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.describe_quorum.v0 import DescribeQuorumResponse

from controller_core.client.cluster import Call
from controller_core.client.errors import Refused
from controller_core.client.quorum import knows_quorum, read_quorum
from controller_core.client.transport.request_client import Address
from controller_core.model.ids import NO_LEADER, BrokerId
from controller_core.wire.requests.api_versions import SERVER_VERSIONS
from controller_core.wire.requests.quorum import QUORUM_LEADER


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A broker, or a pure controller that is listed among the brokers."""

    id: BrokerId
    address: Address
    rack: str | None
    replicas: int
    """The number of replicas. A pure controller has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    """A cluster as one server describes it."""

    cluster_id: str | None
    controller: BrokerId | None
    """None if there is none, or if the quorum does not reveal its leader."""
    nodes: tuple[Node, ...]
    topics: int
    partitions: int
    offline: int
    """Partitions without a leader."""
    under_replicated: int
    """Partitions with replicas that are not in sync."""


async def describe(call: Call) -> ClusterDescription:
    """Describe the cluster as the first server that answers sees it."""
    metadata = await call.metadata(of_all=True)
    partitions = [each for topic in metadata.topics for each in topic.partitions]
    replicas = Counter(broker for each in partitions for broker in each.replica_nodes)
    return ClusterDescription(
        cluster_id=metadata.cluster_id,
        controller=await _find_controller(call),
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


async def _find_controller(call: Call) -> BrokerId | None:
    """Return the controller. Brokers without ZooKeeper name any broker as the controller, so the quorum is asked for
    its leader."""
    if not knows_quorum(await call.ask_any(SERVER_VERSIONS, ApiVersionsResponse)):
        return call.cluster.controller
    try:
        return read_quorum(await call.ask_any(QUORUM_LEADER, DescribeQuorumResponse)).leader
    except Refused:
        return None

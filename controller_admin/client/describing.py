"""A cluster as it is: its nodes, and how many of its partitions ail."""

from collections import Counter
from dataclasses import dataclass

from controller_admin.client.cluster import Call
from controller_core.model.ids import NO_LEADER, BrokerId
from controller_core.wire.client.request_client import Address


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
        controller=call.cluster.controller,
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

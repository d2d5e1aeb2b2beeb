"""The known state of the cluster for answers to clients, like a broker's metadata cache.

Answers are made between two steps of the event that is being handled, not after it. A long event, such as the failure
of a broker with many partitions, must not delay clients that look for a topic. So answers are eventually consistent,
like those of a broker.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from controller_core.admin.rights import EVERYTHING, Rights
from controller_core.controller.sending.broker_requests import ControllerIdentity
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.model.ids import BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A broker or the controller, with its address on one listener."""

    id: BrokerId
    host: str
    port: int
    rack: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """The cluster as the controller knows it now."""

    state: ClusterState
    controller: ControllerIdentity
    listener: str
    """The listener of the caller. Addresses of other listeners may be unreachable for it."""
    cluster_id: str | None
    """None before the first start of a broker, because brokers create the cluster id."""
    rights: Rights = EVERYTHING
    """The rights of the caller."""

    def nodes(self) -> Iterator[Node]:
        """Yield the live brokers that have the listener, and the controller, which looks like a broker."""
        for broker in self.state.brokers.values():
            endpoint = broker.find_endpoint(self.listener)
            if endpoint is not None:
                yield Node(id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
        own = self.controller.listeners.find_endpoint(self.listener)
        if own is not None:
            yield Node(id=self.controller.id, host=own.host, port=own.port, rack=self.state.find_rack_of_controller())

"""What is known of the cluster when a question about it is answered, as a broker answers from its metadata cache.

The answers are made between two steps of whatever event is being handled, not in their turn after it: a long event, such
as the loss of a broker with many partitions, must not hold up every client that wants to know where a topic is. So they
are eventually consistent, as those of a broker are.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from controller_core.admin.rights import EVERYTHING, Rights
from controller_core.controller.sending.broker_requests import ControllerIdentity
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.model.ids import BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A broker, or the controller, where clients of one listener find it."""

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
    """The one that whoever asks came by: the addresses of the others may be out of their reach."""
    cluster_id: str | None
    """None where no broker has ever started: they give the cluster its id."""
    rights: Rights = EVERYTHING
    """Those of whoever asks."""

    def nodes(self) -> Iterator[Node]:
        """The live brokers that have the listener, and the controller itself, which looks like one."""
        for broker in self.state.brokers.values():
            endpoint = broker.find_endpoint(self.listener)
            if endpoint is not None:
                yield Node(id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
        own = self.controller.listeners.find_endpoint(self.listener)
        if own is not None:
            yield Node(id=self.controller.id, host=own.host, port=own.port, rack=self.state.find_rack_of_controller())

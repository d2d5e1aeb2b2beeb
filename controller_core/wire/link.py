"""The Kafka seam towards one broker: see that it can be reached; send a control request, get its response or a failure.

Two implementations stand behind it: `controller_core.wire.tcp_link.TcpBrokerLink` for a real broker, and
`simulation.brokers.SimulatedBrokerLink` for tests; one contract suite (`tests/contract`) holds both to this.

A link carries one request at a time, in the order of the calls. It does not retry: what to send again, and
until when, is decided by the stream that owns the link (`controller_core.controller.sending.channels`), because only the
controller knows whether the broker is still the one that the request was meant for.
"""

from collections.abc import Collection, Mapping
from typing import Protocol

from controller_core.model.ids import BrokerId, LeaderEpoch, TopicPartition
from controller_core.model.metadata import Broker, LogEnd
from controller_core.wire.messages import ControlRequest, ControlResponse


class LinkError(Exception):
    """A request was not answered. Subclasses say whether sending it again can help."""


class BrokerUnreachable(LinkError):
    """No connection, a connection that closed, or no answer in time. Retriable: whether it acted is unknown.

    All control requests are idempotent on the broker by their epochs, so sending again is always safe."""


class NotConnected(BrokerUnreachable):
    """There was no connection: nothing of the request was sent."""


class NotSpoken(NotConnected):
    """The broker does not know what a controller asks in any version that we write: it is of another release of Kafka, or
    has no ZooKeeper. It learns nothing until it is started as another one."""


class UnreadableAnswer(LinkError):
    """The answer is not what the protocol allows. The connection is closed; retriable on a new one."""


class BrokerLink(Protocol):
    """One broker's end of the controller's stream of control requests."""

    async def send(self, request: ControlRequest) -> ControlResponse:
        """Sends a request and waits for its response; connects first where there is no connection.

        Raises `BrokerUnreachable` or `UnreadableAnswer`. A broker's error codes are in the response.
        """
        ...

    async def reach(self) -> None:
        """Connects where there is no connection, and returns when the broker has answered that it knows what a controller
        asks.

        Raises `NotSpoken` where it does not, `BrokerUnreachable` or `UnreadableAnswer`. Nothing on the broker changes.
        """
        ...

    async def static_config(self, broker: BrokerId, names: Collection[str]) -> Mapping[str, str]:
        """What the broker of this id says of these configurations without what ZooKeeper has: its own file's values, else
        Kafka's defaults. Connects first where there is no connection.

        Raises `BrokerUnreachable`, or `UnreadableAnswer` also where the broker refuses to tell. Nothing on it changes.
        """
        ...

    async def log_ends(self, epochs: Mapping[TopicPartition, LeaderEpoch]) -> Mapping[TopicPartition, LogEnd | None]:
        """Where the records of an epoch end in the broker's logs, whether it leads or follows: of the latest epoch up to
        the asked one, and None where the log has nothing of the asked epoch or a later one. Of a partition of which the
        broker does not say it there is no entry. Connects first where there is no connection.

        Raises `BrokerUnreachable`, or `UnreadableAnswer`. Nothing on the broker changes.
        """
        ...

    async def close(self) -> None:
        """Closes the connection; a request in flight fails with `BrokerUnreachable`. Idempotent."""
        ...


class BrokerLinkFactory(Protocol):
    """Makes the link to a broker, on the listener that the controller uses. Does not connect yet."""

    def __call__(self, broker: Broker) -> BrokerLink: ...

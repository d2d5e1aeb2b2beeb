"""The interface to one broker: check that it can be reached, send a control request, and return its response.

`controller_core.wire.tcp_link.TcpBrokerLink` implements it for a real broker, and
`simulation.brokers.SimulatedBrokerLink` for tests. A shared contract suite (`tests/contract`) tests both. A link
carries one request at a time, in the order of the calls. It does not retry: the stream that owns the link decides about
that (`controller_core.controller.sending.channels`), because only the controller knows whether the broker is still the
one that the request was meant for.
"""

from collections.abc import Collection, Mapping
from typing import Protocol

from controller_core.model.ids import BrokerId, LeaderEpoch, TopicPartition
from controller_core.model.metadata import Broker, LogEnd
from controller_core.wire.messages import ControlRequest, ControlResponse


class LinkError(Exception):
    """A request was not answered. The subclass tells whether sending it again can help."""


class BrokerUnreachable(LinkError):
    """No connection, a closed connection, or no answer in time. Retriable; it is unknown whether the broker acted.

    All control requests are idempotent on the broker by their epochs, so sending again is always safe.
    """


class NotConnected(BrokerUnreachable):
    """There was no connection: no part of the request was sent."""


class NotSpoken(NotConnected):
    """The broker supports no version of the controller's requests that Kontroller can write: it has another Kafka
    release, or no ZooKeeper. It can receive nothing until it is restarted with another one."""


class UnreadableAnswer(LinkError):
    """The answer violates the protocol. The connection is closed. Retriable on a new one."""


class BrokerLink(Protocol):
    """One broker's end of the controller's stream of control requests."""

    async def send(self, request: ControlRequest) -> ControlResponse:
        """Send a request and return its response. Connect first if there is no connection.

        Raises `BrokerUnreachable` or `UnreadableAnswer`. A broker's error codes are in the response.
        """
        ...

    async def reach(self) -> None:
        """Connect if there is no connection, and return when the broker has confirmed that it supports control
        requests.

        Raises `NotSpoken` if it does not, `BrokerUnreachable` or `UnreadableAnswer`. Changes nothing on the broker.
        """
        ...

    async def static_config(self, broker: BrokerId, names: Collection[str]) -> Mapping[str, str]:
        """Return the broker's static values of these configurations: those of its file, or Kafka's defaults. Connect if
        needed.

        Raises `BrokerUnreachable` or `UnreadableAnswer`, the latter also if the broker refuses. Changes nothing on the
        broker.
        """
        ...

    async def log_ends(self, epochs: Mapping[TopicPartition, LeaderEpoch]) -> Mapping[TopicPartition, LogEnd | None]:
        """Return where the records of an epoch end in the broker's logs, whether it leads or follows. Connect if
        needed.

        The end is that of the latest epoch up to the given one, or None if the log has only older records. Partitions
        without an answer are absent. Raises `BrokerUnreachable` or `UnreadableAnswer`. Changes nothing on the broker.
        """
        ...

    async def close(self) -> None:
        """Close the connection. A request in flight fails with `BrokerUnreachable`. Idempotent."""
        ...


class BrokerLinkFactory(Protocol):
    """Makes a link to a broker, on the listener that the controller uses. Does not connect yet."""

    def __call__(self, broker: Broker) -> BrokerLink: ...

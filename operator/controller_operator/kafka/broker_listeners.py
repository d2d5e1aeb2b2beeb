"""The brokers' listeners that the operator uses, and their security."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from controller_core.client.transport.request_client import CLIENT_ID, Address, ControllerClient
from controller_core.model.metadata import Broker
from controller_core.wire.connections.broker_properties import PLAINTEXT
from controller_core.wire.connections.security import SecuritySource
from controller_operator.resources.cluster_address import ClusterAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerListener:
    """The brokers' inter-broker listener if a file describes it; otherwise any plaintext listener."""

    name: str | None = None
    """Name of the listener; None: any with the protocol."""
    protocol: str = PLAINTEXT
    security: SecuritySource | None = None

    @property
    def is_secured(self) -> bool:
        """True if requests contain secrets that strangers must not see."""
        return self.security is not None

    def addresses(self, broker: Broker) -> tuple[Address, ...]:
        """Return the registered addresses of a broker's listener; empty if it has no such listener."""
        return tuple(
            Address(each.host, each.port)
            for each in broker.endpoints
            if each.security_protocol == self.protocol and self.name in (None, each.listener)
        )

    def __str__(self) -> str:
        return f"of protocol {self.protocol}" if self.name is None else f"{self.name} of protocol {self.protocol}"


ANY_PLAINTEXT: Final = BrokerListener()
ListenerOf: TypeAlias = Callable[[ClusterAddress], BrokerListener]
"""Returns the listener of a cluster's brokers."""


def any_plaintext(_address: ClusterAddress) -> BrokerListener:
    """Return the listener for clusters that no file describes."""
    return ANY_PLAINTEXT


class OpenClient(Protocol):
    """Makes a client of the cluster with these bootstrap servers."""

    def __call__(
        self, bootstrap: Sequence[Address], *, security: SecuritySource | None = None, client_id: str = CLIENT_ID
    ) -> ControllerClient: ...

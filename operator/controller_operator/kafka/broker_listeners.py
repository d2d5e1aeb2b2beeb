"""At which of their listeners brokers are asked, and how these are spoken to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from controller_core.model.metadata import Broker
from controller_core.wire.client.request_client import Address, ControllerClient
from controller_core.wire.connections.broker_properties import PLAINTEXT
from controller_core.wire.connections.security import SecuritySource
from controller_operator.resources.cluster_address import ClusterAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerListener:
    """The one by which brokers reach each other, where a file says how; else any that everybody may come to."""

    name: str | None = None
    """None: any that speaks the protocol."""
    protocol: str = PLAINTEXT
    security: SecuritySource | None = None

    @property
    def is_secured(self) -> bool:
        """Whether who is asked is shown what strangers must not see."""
        return self.security is not None

    def addresses(self, broker: Broker) -> tuple[Address, ...]:
        """Where a broker has registered that it listens; empty where it has no such listener."""
        return tuple(
            Address(each.host, each.port)
            for each in broker.endpoints
            if each.security_protocol == self.protocol and self.name in (None, each.listener)
        )

    def __str__(self) -> str:
        return f"of protocol {self.protocol}" if self.name is None else f"{self.name} of protocol {self.protocol}"


ANY_PLAINTEXT: Final = BrokerListener()
ListenerOf: TypeAlias = Callable[[ClusterAddress], BrokerListener]
"""Where the brokers of a cluster are asked. Raises `InvalidProperties` for one without ZooKeeper with a bad file."""


def any_plaintext(_address: ClusterAddress) -> BrokerListener:
    """For clusters that nobody has said anything of."""
    return ANY_PLAINTEXT


class OpenClient(Protocol):
    """Makes a client of the cluster with these bootstrap servers."""

    def __call__(self, bootstrap: Sequence[Address], *, security: SecuritySource | None = None) -> ControllerClient: ...

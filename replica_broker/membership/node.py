"""The state of this broker and of the cluster, as this broker reports it."""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.model.metadata import Endpoint, FeatureRange
from replica_broker.replicas.metadata_cache import MetadataCache

UNREGISTERED: Final = BrokerEpoch(-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A broker, or the controller, with its address on one listener."""

    id: BrokerId
    host: str
    port: int
    rack: str | None


@dataclass(slots=True, kw_only=True)
class Node:
    """The identity of this broker and its current view of the cluster, which the membership tasks update."""

    id: BrokerId
    cluster_id: str
    rack: str | None = None
    inter_broker_listener: str = "PLAINTEXT"
    """The listener for traffic between brokers and from the controller."""
    supported_features: Mapping[str, FeatureRange] = field(default_factory=dict)
    finalized_features: FinalizedFeatures | None = None
    """None if the cluster has none, or if they are unreadable."""
    epoch: BrokerEpoch = UNREGISTERED
    """The czxid of the current or last registration; -1 before the first."""
    metadata: MetadataCache = field(default_factory=MetadataCache)
    _registered: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        if self.epoch != UNREGISTERED:
            self._registered.set()

    def has_registered(self, epoch: BrokerEpoch) -> None:
        """Set the broker epoch after a registration."""
        self.epoch = epoch
        self._registered.set()

    async def wait_until_registered(self) -> None:
        """Wait for the first registration.

        Until then, commands for an earlier life of this broker cannot be recognized.
        """
        await self._registered.wait()

    def neighbours(self, listener: str) -> Iterator[Neighbour]:
        """Yield the live brokers that have the listener, with their addresses on it. Includes this broker."""
        for broker in self.metadata.brokers.values():
            endpoint = broker.endpoints.get(listener)
            if endpoint is not None:
                yield Neighbour(id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack)

    def list_hosts(self) -> Collection[str]:
        """Return the hosts of the live brokers and the controller on all listeners."""
        return {endpoint.host for broker in self.metadata.brokers.values() for endpoint in broker.endpoints.values()}

    def controller(self) -> Endpoint | None:
        """Return the address of the controller, or None if it is unknown."""
        return self.metadata.controller_endpoint(self.inter_broker_listener)

"""What this broker knows of itself and of the cluster when it is asked."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.model.metadata import Endpoint, FeatureRange
from replica_broker.replicas.metadata_cache import MetadataCache

UNREGISTERED: Final = BrokerEpoch(-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A broker, or the controller, where clients of one listener find it."""

    id: BrokerId
    host: str
    port: int
    rack: str | None


@dataclass(slots=True, kw_only=True)
class Node:
    """This broker: who it is, and what was told to it and read by it until now. Membership keeps it true."""

    id: BrokerId
    cluster_id: str
    rack: str | None = None
    inter_broker_listener: str = "PLAINTEXT"
    """The one by which brokers and the controller reach each other."""
    supported_features: Mapping[str, FeatureRange] = field(default_factory=dict)
    finalized_features: FinalizedFeatures | None = None
    """None: the cluster has none, or they cannot be read."""
    epoch: BrokerEpoch = UNREGISTERED
    """The czxid of its registration, or of the last one; -1 before the first."""
    metadata: MetadataCache = field(default_factory=MetadataCache)
    _registered: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        if self.epoch != UNREGISTERED:
            self._registered.set()

    def has_registered(self, epoch: BrokerEpoch) -> None:
        """It is a member of the cluster, under that epoch."""
        self.epoch = epoch
        self._registered.set()

    async def until_registered(self) -> None:
        """Waits for the first registration: until then nobody can tell what was meant for an earlier life."""
        await self._registered.wait()

    def neighbours(self, listener: str) -> Iterator[Neighbour]:
        """The live brokers that have the listener, this one among them, as the controller says: where clients that came
        by it find them."""
        for broker in self.metadata.brokers.values():
            endpoint = broker.endpoints.get(listener)
            if endpoint is not None:
                yield Neighbour(id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack)

    def controller(self) -> Endpoint | None:
        """Where the controller is reached; None while none is known."""
        return self.metadata.controller_endpoint(self.inter_broker_listener)

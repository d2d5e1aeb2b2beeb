"""Where a Kafka cluster is found: at its ZooKeeper, or, where it has none, at its brokers."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class AtZooKeeper:
    """A cluster whose metadata is in ZooKeeper."""

    connect: str
    """As `zookeeper.connect` of its brokers."""

    def __str__(self) -> str:
        return self.connect


@dataclass(frozen=True, slots=True)
class AtBrokers:
    """A cluster whose metadata is with its own quorum of controllers (KRaft)."""

    bootstrap_servers: str
    """As `bootstrap.servers` of its clients."""

    def __str__(self) -> str:
        return self.bootstrap_servers


ClusterAddress: TypeAlias = AtZooKeeper | AtBrokers

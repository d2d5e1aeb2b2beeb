"""The address of a Kafka cluster: its ZooKeeper, or its brokers if it has no ZooKeeper."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class AtZooKeeper:
    """A cluster whose metadata is in ZooKeeper."""

    connect: str
    """Same format as `zookeeper.connect` of the brokers."""

    @property
    def chroot(self) -> str:
        """The chroot without outer or double slashes; empty if there is none."""
        return "/".join(filter(None, self.connect.split("/")[1:]))

    def __str__(self) -> str:
        return self.connect


@dataclass(frozen=True, slots=True)
class AtBrokers:
    """A cluster whose metadata is with its own quorum of controllers (KRaft)."""

    bootstrap_servers: str
    """Same format as `bootstrap.servers` of the clients."""

    @property
    def chroot(self) -> str:
        """Empty: there is no ZooKeeper."""
        return ""

    def __str__(self) -> str:
        return self.bootstrap_servers


ClusterAddress: TypeAlias = AtZooKeeper | AtBrokers

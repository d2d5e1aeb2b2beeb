"""A broker and a simulated ZooKeeper with all that a broker relies on, for tests of membership."""

from dataclasses import dataclass

import pytest

from controller_core.model.ids import BrokerId
from controller_core.model.metadata import Broker, Endpoint, FeatureRange
from controller_core.zk.session import ZkNode
from replica_broker.membership.node import UNREGISTERED, Node
from replica_broker.membership.startup import ensure_parents
from simulation.zookeeper import SimulatedZooKeeper
from simulation.zookeeper_session import SimulatedSession

OWN = BrokerId(3)


def endpoint(listener: str, port: int) -> Endpoint:
    return Endpoint(listener=listener, security_protocol="PLAINTEXT", host="here", port=port)


def broker(
    *, port: int = 9003, further: tuple[Endpoint, ...] = (), features: dict[str, tuple[int, int]] | None = None
) -> Broker:
    return Broker(
        id=OWN,
        epoch=UNREGISTERED,
        endpoints=(endpoint("PLAINTEXT", port), *further),
        features={name: FeatureRange(min_version=a, max_version=b) for name, (a, b) in (features or {}).items()},
    )


@dataclass(slots=True, kw_only=True)
class Joining:
    """A broker that is about to join."""

    zookeeper: SimulatedZooKeeper
    zk: SimulatedSession
    node: Node

    async def read(self, path: str) -> ZkNode | None:
        return (await self.zk.read_many([path]))[0]


@pytest.fixture
async def joining() -> Joining:
    zookeeper = SimulatedZooKeeper()
    zk = zookeeper.session()
    await ensure_parents(zk)
    return Joining(zookeeper=zookeeper, zk=zk, node=Node(id=OWN, cluster_id="the-cluster"))

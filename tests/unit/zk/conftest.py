"""A simulated ZooKeeper in which a controller was elected, and the session of that controller."""

from typing import Final

import pytest

from controller_core.zk import paths
from controller_core.zk.session import Create, SetData, ZkVersion
from simulation.zookeeper import SimulatedZooKeeper
from simulation.zookeeper_session import SimulatedSession

EPOCH_VERSION: Final = ZkVersion(1)
"""The version of `/controller_epoch` in the session's term."""


@pytest.fixture
def zookeeper() -> SimulatedZooKeeper:
    return SimulatedZooKeeper()


@pytest.fixture
async def session(zookeeper: SimulatedZooKeeper) -> SimulatedSession:
    session = zookeeper.session()
    await session.transact([Create(path=paths.CONTROLLER_EPOCH, data=b"0")])
    await session.transact([SetData(path=paths.CONTROLLER_EPOCH, data=b"1", version=ZkVersion(0))])
    return session

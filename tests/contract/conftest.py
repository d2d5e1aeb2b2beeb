"""Both implementations of `ZkSession` behind one fixture.

What the tests of this folder say holds for a real ZooKeeper and for the simulated one; whoever changes the simulation
so that it flatters the controller finds out here.
"""

import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest

from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from tests.contract.ensembles import Ensemble, RealEnsemble, SimulatedEnsemble

_KINDS = ["simulated", pytest.param("real", marks=pytest.mark.real)]

_chroots = itertools.count(1)


@pytest.fixture(params=_KINDS)
async def ensemble(request: pytest.FixtureRequest) -> AsyncIterator[Ensemble]:
    """Either kind; a real one is shared with other tests, and has a tree of this test's own."""
    if request.param == "simulated":
        yield SimulatedEnsemble()
        return
    server: ZooKeeper = request.getfixturevalue("zookeeper")
    async with AsyncExitStack() as cleanup:
        yield RealEnsemble(server, request.getfixturevalue("zookeeper_chroot"), cleanup)


@pytest.fixture(scope="package")
def own_zookeeper(servers_folder: RunFolder) -> Iterator[ZooKeeper]:
    """A server that the tests of this folder may stop."""
    with ZooKeeper(servers_folder, name="zookeeper-contract") as server:
        yield server


@pytest.fixture(params=_KINDS)
async def stoppable(request: pytest.FixtureRequest) -> AsyncIterator[Ensemble]:
    """As `ensemble`, but nobody else uses the server: it may be taken away."""
    if request.param == "simulated":
        yield SimulatedEnsemble()
        return
    server: ZooKeeper = request.getfixturevalue("own_zookeeper")
    async with AsyncExitStack() as cleanup:
        ensemble = RealEnsemble(server, f"/test-{next(_chroots)}", cleanup)
        cleanup.push_async_callback(ensemble.give_back)
        yield ensemble

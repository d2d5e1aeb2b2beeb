"""Both implementations of `ZkSession` behind one fixture, the real one also over a secured connection.

The tests of this folder hold for a real ZooKeeper and for the simulated one. A change of the simulation that flatters
the controller fails here.
"""

import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest

from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_zookeeper import SecuredZooKeeper
from devcluster.clusters.zookeeper import ZooKeeper
from tests.contract.ensembles import Ensemble, RealEnsemble, SimulatedEnsemble

_KINDS = ["simulated", *(pytest.param(kind, marks=pytest.mark.real) for kind in ("real", "secured"))]

_chroots = itertools.count(1)


@pytest.fixture(params=_KINDS)
async def ensemble(request: pytest.FixtureRequest) -> AsyncIterator[Ensemble]:
    """An ensemble of either kind; a real one is shared with other tests, and this test has its own tree."""
    if request.param == "simulated":
        yield SimulatedEnsemble()
        return
    of_kind = {"real": "zookeeper", "secured": "secured_zookeeper"}
    server: ZooKeeper = request.getfixturevalue(of_kind[request.param])
    async with AsyncExitStack() as cleanup:
        yield RealEnsemble(server, request.getfixturevalue("zookeeper_chroot"), cleanup)


@pytest.fixture(scope="package")
def own_zookeeper(servers_folder: RunFolder) -> Iterator[ZooKeeper]:
    """A server that the tests of this folder may stop."""
    with ZooKeeper(servers_folder, name="zookeeper-contract") as server:
        yield server


@pytest.fixture(scope="package")
def secured_zookeeper(servers_folder: RunFolder) -> Iterator[SecuredZooKeeper]:
    """A server that needs certificates and logins, for the tests of this folder; they may stop it."""
    with SecuredZooKeeper(servers_folder, name="zookeeper-secured-contract") as server:
        yield server


@pytest.fixture(params=_KINDS)
async def stoppable(request: pytest.FixtureRequest) -> AsyncIterator[Ensemble]:
    """Like `ensemble`, but nobody else uses the server, so a test may take it away."""
    if request.param == "simulated":
        yield SimulatedEnsemble()
        return
    of_kind = {"real": "own_zookeeper", "secured": "secured_zookeeper"}
    server: ZooKeeper = request.getfixturevalue(of_kind[request.param])
    async with AsyncExitStack() as cleanup:
        ensemble = RealEnsemble(server, f"/stopped-{next(_chroots)}", cleanup)
        cleanup.push_async_callback(ensemble.give_back)
        yield ensemble

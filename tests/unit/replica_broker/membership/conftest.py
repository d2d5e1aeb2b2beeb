"""Every test of membership has a ZooKeeper of its own."""

from collections.abc import AsyncIterator

import pytest

from simulation.checks import simulate_cluster
from simulation.cluster import Cluster
from tests.unit.replica_broker.membership.clusters import joining

__all__ = ["cluster", "joining"]


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """A cluster with an empty ZooKeeper but for Kafka's parents."""
    async with simulate_cluster() as cluster:
        yield cluster

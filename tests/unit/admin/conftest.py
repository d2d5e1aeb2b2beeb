"""The simulated cluster of a test."""

from collections.abc import AsyncIterator

import pytest

from simulation.checks import simulate_cluster
from simulation.cluster import Cluster


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """A cluster with an empty ZooKeeper but for Kafka's parents."""
    async with simulate_cluster() as cluster:
        yield cluster

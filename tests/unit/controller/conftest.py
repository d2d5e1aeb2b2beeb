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


@pytest.fixture
async def served(cluster: Cluster) -> Cluster:
    """Three brokers; `orders` on all of them."""
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2, 3])
    await cluster.settle()
    return cluster

"""The simulated cluster of a test."""

from collections.abc import AsyncIterator

import pytest

from tests.unit.controller.checks import simulated_cluster
from tests.unit.controller.harness import Cluster


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """A cluster with an empty ZooKeeper but for Kafka's parents."""
    async with simulated_cluster() as cluster:
        yield cluster

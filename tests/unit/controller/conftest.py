"""The simulated cluster of a test, and what no test of the controller may leave behind."""

from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from tests.unit.controller.harness import Cluster


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """A cluster with an empty ZooKeeper but for Kafka's parents; the controller must never be surprised by itself."""
    with capture_logs() as captured:
        cluster = Cluster()
        cluster.logs = captured
        yield cluster
        await cluster.close()
    assert_no_surprises(cluster)


def assert_no_surprises(cluster: Cluster) -> None:
    surprises = (
        "unexpected error, resigning",
        "illegal transition refused",
        "control request dropped, it cannot be sent",
    )
    assert [entry for entry in cluster.logs if entry["event"] in surprises] == []
    assert sum(process.unexpected_errors for process in cluster.processes) == 0

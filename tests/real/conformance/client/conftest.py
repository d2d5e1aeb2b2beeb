"""The admin client on the conforming clusters: through the controller, or through another broker."""

from itertools import count

import pytest

from controller_core.client.admin_client import AdminClient
from tests.real.conformance.clusters import ConformanceCluster

_numbers = count(1)


@pytest.fixture(params=["by the controller", "by another broker"])
def bootstrap(cluster: ConformanceCluster, request: pytest.FixtureRequest) -> str:
    """The server at which clients bootstrap."""
    if request.param == "by the controller":
        return cluster.bootstrap
    return cluster.kafka.broker(cluster.order[2]).address


@pytest.fixture
def name() -> str:
    """The name of a topic that no other test has, even if this one is repeated."""
    return f"administered-{next(_numbers)}"


@pytest.fixture
def admin(bootstrap: str, cluster: ConformanceCluster) -> AdminClient:
    properties = {**cluster.properties(bootstrap), "zookeeper.connect": cluster.kafka.zookeeper_connect}
    return AdminClient({**properties, "default.api.timeout.ms": 30_000})

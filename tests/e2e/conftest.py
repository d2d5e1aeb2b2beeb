"""A cluster that runs pods, with the chart and all its options, as in examples/helm/values.yaml."""

from collections.abc import Iterator

import pytest

from devcluster.clusters.run_folder import RunFolder
from devcluster.node.pods import NoCluster, PodCluster, cluster_with_pods
from tests.e2e.release import Release
from tests.e2e.toolbox import Toolbox


@pytest.fixture(scope="session")
def pods(servers_folder: RunFolder) -> Iterator[PodCluster]:
    """The cluster; if there is none, the tests are skipped with the reason."""
    try:
        with cluster_with_pods(servers_folder) as cluster:
            yield cluster
    except NoCluster as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def release(pods: PodCluster) -> Iterator[Release]:
    """The installed chart; uninstalled at the end if no test has done so."""
    with Release(pods) as installed:
        yield installed


@pytest.fixture(scope="session")
def toolbox(release: Release, pods: PodCluster) -> Iterator[Toolbox]:
    """A pod beside the brokers with Kafka's own tools."""
    with Toolbox(pods, release) as box:
        yield box

"""An API server of the chart's own tests, because a chart installs objects that a cluster has only once."""

from collections.abc import Iterator

import pytest

from devcluster.clusters.kubernetes import KubernetesApi
from devcluster.clusters.run_folder import RunFolder
from tests.real.chart.charts import install_chart
from tests.unit.chart.rendering import RELEASE_NAMESPACE, SELF_CONTAINED


@pytest.fixture(scope="package")
def api(servers_folder: RunFolder) -> Iterator[KubernetesApi]:
    """An API server with the namespaces of the release and of two teams."""
    with KubernetesApi(servers_folder, name="kubernetes-chart") as cluster:
        for namespace in (RELEASE_NAMESPACE, "payments", "audit"):
            cluster.kubectl("create", "namespace", namespace)
        yield cluster


@pytest.fixture(scope="module")
def release(api: KubernetesApi) -> Iterator[str]:
    """The chart with all components; yields the notes."""
    with install_chart(api, *SELF_CONTAINED) as notes:
        yield notes

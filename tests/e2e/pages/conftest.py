"""A reader of the pages, at a cluster on which nothing is installed before and after a file of tests."""

from collections.abc import Iterator

import pytest

from devcluster.node.pods import PodCluster
from tests.e2e.pages.walks import Reader
from tests.e2e.release import NAMESPACE, PROJECT, Release


@pytest.fixture(scope="module")
def reader(pods: PodCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    if pods.images:
        pytest.skip("the pages name images without a registry, and the cluster of KUBECONFIG pulls them from one")
    yield Reader(tmp_path_factory.mktemp("checkout"), pods.kubernetes.write_clients())
    kubectl = pods.kubernetes.kubectl
    if f"namespace/{NAMESPACE}" in kubectl("get", "namespaces", "--output", "name").split():
        Release(pods).uninstall()
        kubectl("delete", "--filename", str(PROJECT / "crds"), "--ignore-not-found", "--timeout=5m")
        kubectl("delete", "namespace", NAMESPACE, "--timeout=5m")


def find_installed(pods: PodCluster) -> list[str]:
    """Return what is left of an installation."""
    found = pods.kubernetes.kubectl("get", "crds,namespaces,clusterroles", "--output", "name").split()
    return [each for each in found if "kontroller" in each or each == f"namespace/{NAMESPACE}"]

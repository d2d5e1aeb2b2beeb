"""Install, upgrade, uninstall."""

import json
from collections.abc import Iterator

import pytest

from devcluster.kubernetes import KubernetesApi
from devcluster.run_folder import RunFolder
from tests.real.chart.charts import CHART, CONTROLLER_ON, CRDS, NO_JOBS, RELEASE_NAMESPACE


@pytest.fixture
def fresh_api(servers_folder: RunFolder) -> Iterator[KubernetesApi]:
    """An API server with nothing on it, for what installs and uninstalls by itself."""
    with KubernetesApi(servers_folder, name="kubernetes-chart-life") as cluster:
        yield cluster


def test_an_upgrade_changes_what_runs_and_an_uninstall_leaves_the_resources(fresh_api: KubernetesApi) -> None:
    api = fresh_api
    where = ("--namespace", RELEASE_NAMESPACE)
    api.helm("install", "kontroller", CHART, *where, *NO_JOBS, "--create-namespace")
    api.kubectl("wait", "--for=condition=Established", "crd", *CRDS)
    assert workloads(api) == {"kontroller-operator"}
    api.kubectl("apply", "-f", "-", *where, stdin=TOPIC)

    api.helm("upgrade", "kontroller", CHART, *where, *NO_JOBS, *CONTROLLER_ON)
    assert workloads(api) == {"kontroller-operator", "kontroller-controller"}

    api.helm("uninstall", "kontroller", *where)
    assert workloads(api) == set()
    assert api.get("kafkatopic", "orders", *where)["spec"]["partitions"] == 1
    left = [role["metadata"]["name"] for role in api.get("clusterroles")["items"] if "kontroller" in str(role)]
    assert left == []


def test_an_uninstall_takes_the_definitions_along_when_they_are_not_to_be_kept(fresh_api: KubernetesApi) -> None:
    where = ("--namespace", RELEASE_NAMESPACE)
    fresh_api.helm("install", "kontroller", CHART, *where, *NO_JOBS, "--create-namespace", "--set", "crds.keep=false")
    names = {each["metadata"]["name"] for each in fresh_api.get("crds")["items"]}
    assert names == CRDS
    fresh_api.helm("uninstall", "kontroller", *where, "--wait")
    assert fresh_api.get("crds")["items"] == []


def workloads(api: KubernetesApi) -> set[str]:
    return {each["metadata"]["name"] for each in api.get("deployments,statefulsets", "--all-namespaces")["items"]}


TOPIC = json.dumps(
    {
        "apiVersion": "kontroller.dev/v1alpha1",
        "kind": "KafkaTopic",
        "metadata": {"name": "orders"},
        "spec": {"clusterRef": {"name": "demo"}, "partitions": 1, "replicationFactor": 1},
    }
)

"""Install, upgrade, uninstall."""

import base64
import json

import pytest

from devcluster.clusters.kubernetes import CommandError, KubernetesApi
from devcluster.running.processes import wait_until
from tests.real.chart.charts import CRDS, NO_JOBS, install_chart, remove_definitions, wait_until_no_definitions
from tests.unit.chart.rendering import CHART, CONTROLLER_ON, RELEASE_NAMESPACE


def test_an_upgrade_changes_what_runs_and_an_uninstall_leaves_the_resources(api: KubernetesApi) -> None:
    where = ("--namespace", RELEASE_NAMESPACE)
    api.helm("install", "kontroller", CHART, *where, *NO_JOBS)
    api.wait_until_established(*CRDS)
    assert workloads(api) == {"kontroller-operator"}
    wait_until(lambda: is_taken(api, *where), "the topic is taken")

    api.helm("upgrade", "kontroller", CHART, *where, *NO_JOBS, *CONTROLLER_ON)
    assert workloads(api) == {"kontroller-operator", "kontroller-controller"}

    api.helm("uninstall", "kontroller", *where)
    assert workloads(api) == set()
    assert api.get("kafkatopic", "orders", *where)["spec"]["partitions"] == 1
    left = [role["metadata"]["name"] for role in api.get("clusterroles")["items"] if "kontroller" in str(role)]
    assert left == []
    remove_definitions(api)


def test_a_single_zookeeper_server_is_not_outvoted_by_empty_ones(api: KubernetesApi) -> None:
    with install_chart(api, "--set", "zookeeper.enabled=true,zookeeper.replicas=1"):
        upgrade = ("upgrade", "kontroller", CHART, "--namespace", RELEASE_NAMESPACE, *NO_JOBS)
        with pytest.raises(CommandError, match=r"zookeeper.replicas cannot go from 1 to 3"):
            api.helm(*upgrade, "--set", "zookeeper.enabled=true,zookeeper.replicas=3")
        api.helm(*upgrade, "--set", "zookeeper.enabled=true,zookeeper.replicas=1,zookeeper.heapOpts=-Xmx300m")


def test_a_journal_s_token_that_the_chart_made_stays_over_upgrades_and_goes_with_the_release(
    api: KubernetesApi,
) -> None:
    made = (*CONTROLLER_ON, "--set", "controller.journal.token.create=true")
    secret = ("secret", "kontroller-controller-journal-token", "--namespace", RELEASE_NAMESPACE)
    with install_chart(api, *made):
        token = base64.b64decode(api.get(*secret)["data"]["token"])
        assert len(set(token)) > 10
        api.helm("upgrade", "kontroller", CHART, "--namespace", RELEASE_NAMESPACE, *NO_JOBS, *made)
        assert base64.b64decode(api.get(*secret)["data"]["token"]) == token
    assert api.kubectl("get", *secret, "--ignore-not-found") == ""


def test_an_uninstall_takes_the_definitions_along_when_they_are_not_to_be_kept(api: KubernetesApi) -> None:
    where = ("--namespace", RELEASE_NAMESPACE)
    api.helm("install", "kontroller", CHART, *where, *NO_JOBS, "--set", "crds.keep=false")
    names = {each["metadata"]["name"] for each in api.get("crds")["items"]}
    assert names == CRDS
    api.helm("uninstall", "kontroller", *where)
    wait_until_no_definitions(api)


def is_taken(api: KubernetesApi, *where: str) -> bool:
    """Return True once the topic is accepted: a definition is established a moment before its objects are served."""
    try:
        api.kubectl("apply", "-f", "-", *where, stdin=TOPIC)
    except CommandError:
        return False
    return True


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

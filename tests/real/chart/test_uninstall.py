"""After an uninstall nothing is left that cannot be deleted, and nothing is deleted without a request."""

import json
from collections.abc import Iterator

import pytest
from kubernetes.aio.client.configuration import Configuration

from controller_operator.kubernetes.api_server import load_configuration
from controller_operator.kubernetes.kubernetes_objects import KubernetesObjects
from controller_operator.kubernetes.object_api import Listing
from controller_operator.kubernetes.object_store import Raw
from controller_operator.kubernetes.release import release_all
from controller_operator.resources.common import FINALIZER
from devcluster.clusters.kubernetes import CommandError, KubernetesApi
from tests.real.chart.charts import CRDS, NO_JOBS, remove_definitions, wait_until_no_definitions
from tests.real.chart.jobs import run_jobs
from tests.unit.chart.rendering import CHART, PROJECT, RELEASE_NAMESPACE

WHERE = ("--namespace", RELEASE_NAMESPACE)
SOON = ("--timeout", "90s")
NO_CHECK = ("--set", "apiCheck.enabled=false")
OTHER_FINALIZER = "example.com/mine"


@pytest.fixture(autouse=True)
def nothing_stays(api: KubernetesApi) -> Iterator[None]:
    """Remove everything that a test leaves."""
    yield
    api.helm("uninstall", "kontroller", *WHERE, "--no-hooks", "--ignore-not-found")
    for key in [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in topics(api)]:
        clear_finalizers(api, *key)
    remove_definitions(api)


def install(api: KubernetesApi, *values: str) -> None:
    api.helm("install", "kontroller", CHART, *WHERE, *NO_CHECK, *values)
    api.wait_until_established(*CRDS)


def create_topic(api: KubernetesApi, namespace: str, name: str, *finalizers: str) -> None:
    topic = {
        "apiVersion": "kontroller.dev/v1alpha1",
        "kind": "KafkaTopic",
        "metadata": {"name": name, "namespace": namespace, "finalizers": list(finalizers)},
        "spec": {"clusterRef": {"name": "demo"}, "partitions": 1, "replicationFactor": 1, "deletionPolicy": "Delete"},
    }
    api.kubectl("create", "-f", "-", stdin=json.dumps(topic))


def clear_finalizers(api: KubernetesApi, namespace: str, name: str) -> None:
    patch = '{"metadata":{"finalizers":[]}}'
    api.kubectl("patch", "kafkatopic", name, "--namespace", namespace, "--type=merge", "--patch", patch)


def topics(api: KubernetesApi) -> list[Raw]:
    if "kafkatopics.kontroller.dev" not in {each["metadata"]["name"] for each in api.get("crds")["items"]}:
        return []
    found: list[Raw] = api.get("kafkatopics", "--all-namespaces")["items"]
    return found


def finalizers(api: KubernetesApi, namespace: str) -> dict[str, list[str]]:
    """Return the finalizers of each topic in a namespace."""
    every = [each["metadata"] for each in topics(api)]
    return {each["name"]: each.get("finalizers", []) for each in every if each["namespace"] == namespace}


def test_resources_stay_and_can_be_deleted_after_an_uninstall(api: KubernetesApi) -> None:
    install(api)
    create_topic(api, "payments", "orders", FINALIZER)
    create_topic(api, "payments", "shared", FINALIZER, OTHER_FINALIZER)
    create_topic(api, "audit", "on-its-way", FINALIZER)
    api.kubectl("delete", "kafkatopic", "on-its-way", "--namespace", "audit", "--wait=false")
    with run_jobs(api) as jobs:
        api.helm("uninstall", "kontroller", *WHERE, *SOON)
    said = jobs.printed["kontroller-release-finalizers"].splitlines()
    assert said == [
        "released KafkaTopic audit/on-its-way",
        "released KafkaTopic payments/orders",
        "released KafkaTopic payments/shared",
        "3 resources released",
    ]
    assert finalizers(api, "payments") == {"orders": [], "shared": [OTHER_FINALIZER]}
    assert finalizers(api, "audit") == {}
    api.kubectl("delete", "kafkatopic", "orders", "--namespace", "payments", "--timeout=30s")
    left = api.get("jobs,serviceaccounts,clusterroles,clusterrolebindings", "--all-namespaces")["items"]
    assert [each["metadata"]["name"] for each in left if "kontroller" in each["metadata"]["name"]] == []


def test_a_release_of_another_name_says_how_it_gets_the_definitions_that_were_kept(api: KubernetesApi) -> None:
    install(api)
    create_topic(api, "payments", "orders")
    api.helm("uninstall", "kontroller", *WHERE, "--no-hooks")
    with pytest.raises(CommandError) as refused:
        api.helm("install", "another", CHART, *WHERE, *NO_JOBS)
    said = str(refused.value)
    assert f"belong to release kontroller of namespace {RELEASE_NAMESPACE}" in said
    assert "also --set operator.enabled=false, or give both releases different watchNamespaces" in said
    commands = [line.strip().split() for line in said.splitlines() if line.startswith("  kubectl ")]
    assert [command[1] for command in commands] == ["label", "annotate"]
    for command in commands:
        api.kubectl(*command[1:])
    api.helm("install", "another", CHART, *WHERE, *NO_JOBS)
    assert [each["metadata"]["name"] for each in topics(api)] == ["orders"]
    api.helm("upgrade", "another", CHART, *WHERE, *NO_JOBS)
    api.helm("uninstall", "another", *WHERE, "--no-hooks")


def test_definitions_that_no_release_has_are_left_to_others_or_taken(api: KubernetesApi) -> None:
    api.kubectl("apply", "--server-side", "-f", str(PROJECT / "crds"))
    with pytest.raises(CommandError, match="belong to no release"):
        api.helm("install", "kontroller", CHART, *WHERE, *NO_JOBS)
    api.helm("install", "kontroller", CHART, *WHERE, *NO_JOBS, "--set", "crds.install=false")


def test_an_operator_of_some_namespaces_lets_go_of_theirs_alone(api: KubernetesApi) -> None:
    install(api, "--set", "watchNamespaces={payments}")
    create_topic(api, "payments", "orders", FINALIZER)
    create_topic(api, "audit", "of-another-operator", FINALIZER)
    with run_jobs(api) as jobs:
        api.helm("uninstall", "kontroller", *WHERE, *SOON)
    assert "1 resources released" in jobs.printed["kontroller-release-finalizers"]
    assert finalizers(api, "payments") == {"orders": []}
    assert finalizers(api, "audit") == {"of-another-operator": [FINALIZER]}


def test_definitions_that_are_not_kept_go_with_all_their_resources(api: KubernetesApi) -> None:
    install(api, "--set", "crds.keep=false")
    create_topic(api, "payments", "orders", FINALIZER)
    with run_jobs(api):
        api.helm("uninstall", "kontroller", *WHERE, *SOON)
    wait_until_no_definitions(api)


class StaleListing(KubernetesObjects):
    """Lists the objects of the first request again, although they may have changed."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(configuration)
        self._first: dict[str, Listing] = {}

    async def list_all(self, kind: str, namespace: str | None) -> Listing:
        if kind not in self._first:
            self._first[kind] = await super().list_all(kind, namespace)
        return self._first[kind]


async def test_objects_that_change_or_go_meanwhile_are_looked_at_again(api: KubernetesApi) -> None:
    install(api)
    for name in ("changed", "released", "gone"):
        create_topic(api, "payments", name, FINALIZER)
    objects = StaleListing(await load_configuration(kubeconfig=api.kubeconfig))
    try:
        await objects.list_all("KafkaTopic", None)
        api.kubectl("label", "kafkatopic", "changed", "a=b", "--namespace", "payments")
        for name in ("released", "gone"):
            clear_finalizers(api, "payments", name)
        api.kubectl("delete", "kafkatopic", "gone", "--namespace", "payments")
        assert [key.name async for key in release_all(objects, ())] == ["changed"]
    finally:
        await objects.close()
    assert finalizers(api, "payments") == {"changed": [], "released": []}

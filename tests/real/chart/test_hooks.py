"""What Helm runs itself: a check after an install, the checks of `helm test`, and what each of them may do."""

import json

import pytest

from devcluster.clusters.kubernetes import CommandError, KubernetesApi
from tests.real.chart.charts import (
    CHART,
    RELEASE_NAMESPACE,
    SELF_CONTAINED,
    Object,
    dry_run,
    may,
    named,
    options_of,
    remove_definitions,
    rendered,
)
from tests.real.chart.jobs import running_jobs

WHERE = ("--namespace", RELEASE_NAMESPACE)
SOON = ("--timeout", "90s")


def hooks(api: KubernetesApi, *values: str) -> list[Object]:
    return [each for each in rendered(api, *values) if "helm.sh/hook" in each["metadata"].get("annotations", {})]


def test_an_install_waits_until_the_api_server_knows_the_resources(api: KubernetesApi) -> None:
    try:
        with running_jobs(api) as jobs:
            api.helm("install", "kontroller", CHART, *WHERE, *SOON)
        assert "KafkaTopic" in jobs.printed["kontroller-api-check"]
        left = {each["metadata"]["name"] for each in api.get("jobs,roles,rolebindings", *WHERE)["items"]}
        assert left == {"kontroller-operator-lease"}, "nothing of the check is left"
    finally:
        api.helm("uninstall", "kontroller", *WHERE, "--no-hooks", "--ignore-not-found")
        remove_definitions(api)


def test_an_install_without_the_definitions_says_so(api: KubernetesApi) -> None:
    try:
        with running_jobs(api) as jobs, pytest.raises(CommandError, match="kontroller-api-check"):
            api.helm(
                "install", "kontroller", CHART, *WHERE, *SOON, "--set", "crds.install=false,apiCheck.deadlineSeconds=1"
            )
        assert "install the chart's CRDs" in jobs.printed["kontroller-api-check"]
    finally:
        api.helm("uninstall", "kontroller", *WHERE, "--no-hooks", "--ignore-not-found")
        api.kubectl("delete", "all,roles,rolebindings,serviceaccounts", "--all", *WHERE)


def test_every_command_of_a_hook_is_there_with_its_options(api: KubernetesApi) -> None:
    pods = [each for each in hooks(api, *SELF_CONTAINED) if each["kind"] in ("Job", "Pod")]
    commands = {}
    for each in pods:
        spec = each["spec"] if each["kind"] == "Pod" else each["spec"]["template"]["spec"]
        arguments = spec["containers"][0]["args"]
        options = [argument.split("=")[0] for argument in arguments[2:]]
        commands[each["metadata"]["name"]] = arguments[:2]
        assert set(options) <= options_of(*arguments[:2])
    assert commands == {
        "kontroller-api-check": ["check", "api"],
        "kontroller-release-finalizers": ["operator", "release"],
        "kontroller-test-api": ["check", "api"],
        "kontroller-test-cluster": ["check", "cluster"],
    }


def test_the_cluster_is_asked_through_what_the_release_has(api: KubernetesApi) -> None:
    def asked(*values: str) -> str:
        pod = named(rendered(api, *values), "Pod", "kontroller-test-cluster")
        assert pod["spec"]["automountServiceAccountToken"] is False
        bootstrap: str = pod["spec"]["containers"][0]["args"][2]
        return bootstrap

    assert asked(*SELF_CONTAINED) == f"--bootstrap=kontroller-kafka.{RELEASE_NAMESPACE}.svc:9092"
    controller = ("--set", "controller.enabled=true,controller.zookeeper=zk:2181")
    assert asked(*controller) == f"--bootstrap=kontroller-controller.{RELEASE_NAMESPACE}.svc:9093"
    assert not [each for each in rendered(api) if each["metadata"]["name"] == "kontroller-test-cluster"]


def test_rights_come_before_what_needs_them_and_nothing_stays_behind(api: KubernetesApi) -> None:
    for each in hooks(api, *SELF_CONTAINED):
        annotations = each["metadata"]["annotations"]
        assert annotations["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"
        assert annotations["helm.sh/hook-weight"] == ("1" if each["kind"] in ("Job", "Pod") else "0")


def test_hooks_may_do_nothing_but_their_work(api: KubernetesApi) -> None:
    api.helm("install", "kontroller", CHART, *WHERE, "--no-hooks")
    of_hooks = [each for each in hooks(api) if each["kind"] not in ("Job", "Pod")]
    stdin = "\n---\n".join(map(json.dumps, of_hooks))
    api.kubectl("apply", "-f", "-", stdin=stdin)
    try:
        check = f"system:serviceaccount:{RELEASE_NAMESPACE}:kontroller-api-check"
        release = f"system:serviceaccount:{RELEASE_NAMESPACE}:kontroller-release-finalizers"
        topics = "kafkatopics.kontroller.dev"
        assert may(api, check, "create", topics, RELEASE_NAMESPACE)
        assert not may(api, check, "create", topics, "payments")
        assert not may(api, check, "delete", topics, RELEASE_NAMESPACE)
        assert may(api, release, "patch", topics, "payments")
        for verb, resource in (
            ("delete", topics),
            ("create", topics),
            ("patch", f"{topics}/status"),
            ("get", "secrets"),
        ):
            assert not may(api, release, verb, resource, "payments")
    finally:
        api.kubectl("delete", "-f", "-", stdin=stdin)
        api.helm("uninstall", "kontroller", *WHERE, "--no-hooks")
        remove_definitions(api)


@pytest.mark.parametrize("values", ["rbac.create=false", "apiCheck.enabled=false,releaseFinalizers.enabled=false"])
def test_jobs_can_be_left_out(api: KubernetesApi, values: str) -> None:
    assert not [each for each in rendered(api, "--set", values) if each["kind"] == "Job"]


def test_the_pods_of_hooks_meet_the_restricted_standard(api: KubernetesApi) -> None:
    api.kubectl("label", "namespace", "audit", "--overwrite", "pod-security.kubernetes.io/enforce=restricted")
    pods = [each for each in hooks(api, *SELF_CONTAINED) if each["kind"] == "Pod"]
    for job in (each for each in hooks(api) if each["kind"] == "Job"):
        pods.append({"apiVersion": "v1", "kind": "Pod", "spec": job["spec"]["template"]["spec"]})
        pods[-1]["metadata"] = {"name": job["metadata"]["name"]}
    for pod in pods:
        pod["metadata"]["namespace"] = "audit"
    assert len(dry_run(api, pods)) == 4

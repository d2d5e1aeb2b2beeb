"""The chart's hooks: a check after an install, the checks of `helm test`, and the rights of each."""

import json

import pytest

from devcluster.clusters.kubernetes import CommandError, KubernetesApi
from tests.real.chart.charts import may, remove_definitions, wait_until_may
from tests.real.chart.jobs import run_jobs
from tests.unit.chart.rendering import CHART, RELEASE_NAMESPACE, Object, render

WHERE = ("--namespace", RELEASE_NAMESPACE)
SOON = ("--timeout", "90s")


def hooks(*values: str) -> list[Object]:
    return [each for each in render(*values) if "helm.sh/hook" in each["metadata"].get("annotations", {})]


def test_an_install_waits_until_the_api_server_knows_the_resources(api: KubernetesApi) -> None:
    try:
        with run_jobs(api) as jobs:
            api.helm("install", "kontroller", CHART, *WHERE, *SOON)
        assert "KafkaTopic" in jobs.printed["kontroller-api-check"]
        left = {each["metadata"]["name"] for each in api.get("jobs,roles,rolebindings", *WHERE)["items"]}
        assert left == {"kontroller-operator-lease"}, "nothing of the check is left"
    finally:
        api.helm("uninstall", "kontroller", *WHERE, "--no-hooks", "--ignore-not-found")
        remove_definitions(api)


def test_an_install_without_the_definitions_says_so(api: KubernetesApi) -> None:
    try:
        with run_jobs(api) as jobs, pytest.raises(CommandError, match="kontroller-api-check"):
            api.helm(
                "install", "kontroller", CHART, *WHERE, *SOON, "--set", "crds.install=false,apiCheck.deadlineSeconds=1"
            )
        assert "install the chart's CRDs" in jobs.printed["kontroller-api-check"]
    finally:
        api.helm("uninstall", "kontroller", *WHERE, "--no-hooks", "--ignore-not-found")
        api.kubectl("delete", "all,roles,rolebindings,serviceaccounts", "--all", *WHERE)


def test_hooks_may_do_nothing_but_their_work(api: KubernetesApi) -> None:
    api.helm("install", "kontroller", CHART, *WHERE, "--no-hooks")
    of_hooks = [each for each in hooks() if each["kind"] not in ("Job", "Pod")]
    stdin = "\n---\n".join(map(json.dumps, of_hooks))
    api.kubectl("apply", "-f", "-", stdin=stdin)
    try:
        check = f"system:serviceaccount:{RELEASE_NAMESPACE}:kontroller-api-check"
        release = f"system:serviceaccount:{RELEASE_NAMESPACE}:kontroller-release-finalizers"
        topics = "kafkatopics.kontroller.dev"
        wait_until_may(api, check, "create", topics, RELEASE_NAMESPACE)
        assert not may(api, check, "create", topics, "payments")
        assert not may(api, check, "delete", topics, RELEASE_NAMESPACE)
        wait_until_may(api, release, "patch", topics, "payments")
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

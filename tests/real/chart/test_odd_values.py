"""Values and names as in large clusters: long ones, similar ones, and empty ones."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from devcluster.clusters.kubernetes import CommandError, KubernetesApi
from tests.real.chart.charts import dry_run
from tests.unit.chart.rendering import CHART, EVERYTHING, MAY_BE_NOTHING, Object, default_values, render

PODS: Final = 12


def make_nothing(given: dict[str, Any]) -> dict[str, Any]:
    """Return nothing for each value that may be null, including those whose default is null."""
    nothing: dict[str, Any] = {}
    for name, value in given.items():
        if name in MAY_BE_NOTHING or value in ("", [], {}):
            nothing[name] = None
        elif isinstance(value, dict):
            nothing[name] = make_nothing(value)
    return nothing


def pods(objects: list[Object]) -> Iterator[Object]:
    """Yield the specs of all pods, including those of hooks and jobs."""
    for each in objects:
        spec = each.get("spec", {})
        if each["kind"] == "Pod":
            yield spec
        elif each["kind"] == "CronJob":
            yield spec["jobTemplate"]["spec"]["template"]["spec"]
        elif each["kind"] in ("Deployment", "StatefulSet", "Job"):
            yield spec["template"]["spec"]


def test_everything_that_may_be_nothing_can_be_nothing_at_once(api: KubernetesApi, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(make_nothing(default_values())))
    objects = render(*EVERYTHING, "--values", str(file))
    assert len(dry_run(api, objects)) == len(objects)
    assert "nil" not in str(objects)


def test_the_roles_of_another_release_of_this_name_are_left_to_it(api: KubernetesApi) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "kontroller-view", "annotations": {"meta.helm.sh/release-namespace": "payments"}},
    }
    api.kubectl("create", "-f", "-", stdin=json.dumps(role))
    install = ("install", "kontroller", CHART, "--namespace", "audit", "--dry-run=server")
    with pytest.raises(CommandError, match=r"release of this name in namespace payments .*\n.*rbac.userRoles=false"):
        api.helm(*install)
    assert "kontroller-operator" in api.helm(*install, "--set", "rbac.userRoles=false")
    api.kubectl("delete", "clusterrole", "kontroller-view")


def probes(*values: str) -> list[Object]:
    """Return pods in a namespace with the restricted standard, each like one of the chart's."""
    found = []
    for number, spec in enumerate(pods(render(*EVERYTHING, *values))):
        spec.pop("serviceAccountName", None)  # the namespace does not have it
        metadata = {"name": f"probe-{number}", "namespace": "audit"}
        kept = [each for each in spec["volumes"] if each["name"] != "data"]
        spec["volumes"] = [*kept, {"name": "data", "emptyDir": {}}]
        found.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    return found


def test_every_pod_meets_the_restricted_standard_those_of_hooks_too(api: KubernetesApi) -> None:
    api.kubectl("label", "namespace", "audit", "--overwrite", "pod-security.kubernetes.io/enforce=restricted")
    assert len(dry_run(api, probes())) == PODS
    with pytest.raises(CommandError) as refused:
        dry_run(api, probes("--set", "securityContext.allowPrivilegeEscalation=true"))
    assert str(refused.value).count("violates PodSecurity") == PODS

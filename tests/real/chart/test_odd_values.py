"""Values and names as they come in large clusters: long, several alike, nothing where something was."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from devcluster.clusters.kubernetes import CommandError, KubernetesApi
from tests.real.chart.charts import CHART, SELF_CONTAINED, Object, dry_run, named, rendered, run_as_pod

EVERYTHING: Final = (
    *SELF_CONTAINED,
    "--set",
    "history.enabled=true,alarms.enabled=true,networkPolicy.enabled=true,monitoring.dashboard.enabled=true,"
    "controller.journal.token.create=true,kafka.scramUsers.secretName=users",
)
MAY_BE_NOTHING: Final = {"resources", "podSecurityContext", "securityContext", "labels"}
"""What has a default and is of use without it: limits of nobody's, contexts that OpenShift fills in."""


def values() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((Path(CHART) / "values.yaml").read_text())
    return found


def without(given: dict[str, Any]) -> dict[str, Any]:
    """Nothing for each value that may be nothing: those whose default is nothing, too."""
    nothing: dict[str, Any] = {}
    for name, value in given.items():
        if name in MAY_BE_NOTHING or value in ("", [], {}):
            nothing[name] = None
        elif isinstance(value, dict):
            nothing[name] = without(value)
    return nothing


def unneeded(known: dict[str, Any], given: dict[str, Any], path: str) -> Iterator[str]:
    """Values that have a default and that the schema would let go."""
    for name, value in given.items():
        if name in MAY_BE_NOTHING or (value in ("", [], {}) and not isinstance(value, bool)):
            continue
        if name not in known.get("required", []):
            yield f"{path}.{name}"
        if isinstance(value, dict):
            yield from unneeded(known["properties"][name], value, f"{path}.{name}")


def names(objects: list[Object]) -> set[tuple[str, str]]:
    """What would be the same object in one namespace."""
    return {(each["kind"], each["metadata"]["name"]) for each in objects if each["kind"] != "CustomResourceDefinition"}


def pods(objects: list[Object]) -> Iterator[Object]:
    """The specs of all pods, those of hooks and jobs among them."""
    for each in objects:
        spec = each.get("spec", {})
        if each["kind"] == "Pod":
            yield spec
        elif each["kind"] == "CronJob":
            yield spec["jobTemplate"]["spec"]["template"]["spec"]
        elif each["kind"] in ("Deployment", "StatefulSet", "Job"):
            yield spec["template"]["spec"]


def test_a_value_that_is_nothing_is_asked_for_by_name() -> None:
    schema = json.loads((Path(CHART) / "values.schema.json").read_text())
    assert list(unneeded(schema, values(), "")) == []


@pytest.mark.parametrize(("gone", "said"), [("kafka.drain", "'drain'"), ("image.pullPolicy", "'pullPolicy'")])
def test_what_the_chart_cannot_do_without_is_named_by_helm(api: KubernetesApi, gone: str, said: str) -> None:
    with pytest.raises(CommandError, match=rf"missing property {said}"):
        rendered(api, *SELF_CONTAINED, "--set", f"{gone}=null")


def test_everything_that_may_be_nothing_can_be_nothing_at_once(api: KubernetesApi, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(without(values())))
    objects = rendered(api, *EVERYTHING, "--values", str(file))
    assert len(dry_run(api, objects)) == len(objects)
    assert "nil" not in str(objects)


def test_a_release_may_have_any_name_that_helm_takes(api: KubernetesApi) -> None:
    dotted = rendered(api, *EVERYTHING, release="team.payments.kafka")
    assert len(dry_run(api, dotted)) == len(dotted)
    with pytest.raises(CommandError, match="begin with 1st-kontroller: set fullnameOverride"):
        rendered(api, *EVERYTHING, release="1st")
    saved = rendered(api, *EVERYTHING, "--set", "fullnameOverride=first", release="1st")
    assert len(dry_run(api, saved)) == len(saved)


def test_releases_whose_long_names_begin_alike_share_a_namespace(api: KubernetesApi) -> None:
    alike = [f"payments-production-europe-west-kafka-{each}" for each in ("blue", "green")]
    blue, green = (rendered(api, *EVERYTHING, release=each) for each in alike)
    assert names(blue) & names(green) == set()
    assert len(dry_run(api, blue)) == len(blue)
    selectors = [each["spec"]["selector"] for each in blue if each["kind"] == "Service"]
    assert {each["app.kubernetes.io/instance"] for each in selectors} == {alike[0]}


def test_releases_of_one_name_are_in_two_namespaces(api: KubernetesApi) -> None:
    webhook = "webhook.enabled=true,webhook.certificate.secretName=a,webhook.certificate.caBundle=YQ=="
    further = "crds.install=false,rbac.userRoles=false,watchNamespaces={audit}"
    first = rendered(api, *EVERYTHING, "--set", webhook)
    second = rendered(api, *EVERYTHING, "--set", f"{webhook},{further}", namespace="audit")
    of_all = [each for each in second if "namespace" not in each["metadata"]]
    assert [each["kind"] for each in of_all] == ["ValidatingWebhookConfiguration"]
    assert names(of_all) & names(first) == set()


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


def test_every_pod_meets_the_restricted_standard_those_of_hooks_too(api: KubernetesApi) -> None:
    api.kubectl("label", "namespace", "audit", "--overwrite", "pod-security.kubernetes.io/enforce=restricted")
    probes = []
    for number, spec in enumerate(pods(rendered(api, *EVERYTHING))):
        spec.pop("serviceAccountName", None)  # which this namespace does not have
        metadata = {"name": f"probe-{number}", "namespace": "audit"}
        kept = [each for each in spec["volumes"] if each["name"] != "data"]
        spec["volumes"] = [*kept, {"name": "data", "emptyDir": {}}]
        probes.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    assert len(probes) == 11
    assert len(dry_run(api, probes)) == len(probes)


@pytest.mark.parametrize("component", ["kafka", "zookeeper"])
def test_options_of_java_are_beside_those_of_the_chart(api: KubernetesApi, component: str, tmp_path: Path) -> None:
    own = f"{component}.extraEnv[0].name=KAFKA_OPTS,{component}.extraEnv[0].value=-Dof=ours"
    objects = rendered(api, *SELF_CONTAINED, "--set", f"zookeeper.juteMaxbufferBytes=4194304,{own}")
    (container,) = named(objects, "StatefulSet", f"kontroller-{component}")["spec"]["template"]["spec"]["containers"]
    assert [each["name"] for each in container["env"]].count("KAFKA_OPTS") == 1
    (tmp_path / "server.properties").write_text("")
    script = [
        part.replace("/etc/kafka/", f"{tmp_path}/")
        .replace("/tmp/server.properties", f"{tmp_path}/made.properties")
        .replace("/var/lib/zookeeper", str(tmp_path))
        for part in container["command"]
    ]
    run_as_pod(script, f"kontroller-{component}-0", tmp_path, {"KAFKA_OPTS": "-Dof=ours"})
    said = (tmp_path / "arguments.kafka-opts").read_text().split()
    assert {"-Djute.maxbuffer=4194304", "-Dof=ours"} <= set(said)

"""Settings of each workload, and labels and annotations of all objects, arrive where they belong and nowhere else."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from devcluster.clusters.kubernetes import CommandError
from devcluster.filling.parts import Part
from tests.unit.chart.rendering import ALL_OF_IT, EVERYTHING, Object, pods, render

pytestmark = pytest.mark.needs(Part.HELM)

COMPONENTS: Final = ("operator", "controller", "zookeeper", "kafka", "history", "alarms")
COMPONENT: Final = "app.kubernetes.io/component"
HOOKS: Final = {"api-check", "release-finalizers", "test-api", "test-cluster"}
"""The hooks, whose pods run with the operator's settings of pods."""

OF_PODS: Final[dict[str, tuple[str, Any]]] = {
    "nodeSelector": ("nodeSelector", {"disk": "ssd"}),
    "tolerations": ("tolerations", [{"key": "kafka", "operator": "Exists"}]),
    "affinity": ("affinity", {"nodeAffinity": {}}),
    "priorityClassName": ("priorityClassName", "system-cluster-critical"),
    "dnsPolicy": ("dnsPolicy", "None"),
    "dnsConfig": ("dnsConfig", {"nameservers": ["10.0.0.10"], "options": [{"name": "ndots", "value": "2"}]}),
    "terminationGracePeriodSeconds": ("terminationGracePeriodSeconds", 240),
}
"""Values, with the field of the pod that has them."""
OF_CONTAINERS: Final[dict[str, tuple[str, Any]]] = {
    "extraEnv": ("env", [{"name": "MORE", "value": "1"}]),
    "extraEnvFrom": ("envFrom", [{"secretRef": {"name": "more"}}]),
    "extraVolumeMounts": ("volumeMounts", [{"name": "more", "mountPath": "/more"}]),
    "resources": ("resources", {"requests": {"cpu": "7"}}),
}
INIT: Final = {"name": "first", "image": "busybox", "command": ["true"]}
VOLUME: Final = {"name": "more", "configMap": {"name": "more"}}
REPLACED: Final = {"type": "OnDelete"}


def make_options(component: str, values: dict[str, Any]) -> list[str]:
    """Return options that set values of a component."""
    return [
        word for name, value in values.items() for word in ("--set-json", f"{component}.{name}={json.dumps(value)}")
    ]


def everything_of(component: str) -> list[str]:
    """Return options that set all settings of a component's pods."""
    values = {name: value for name, (_, value) in (OF_PODS | OF_CONTAINERS).items()}
    labels = {"podLabels": {"team": "a"}, "podAnnotations": {"mesh": "off"}}
    return make_options(component, values | labels | {"extraInitContainers": [INIT], "extraVolumes": [VOLUME]})


def select_pods(component: str, objects: list[Object]) -> list[Object]:
    """Return the pods of a component."""
    return [each for each in pods(objects) if each["metadata"]["labels"][COMPONENT] == component]


def own_containers(pod: Object) -> Iterator[Object]:
    """Yield the containers that do a component's work, which the one that makes SCRAM users does not."""
    spec = pod["spec"]
    yield from spec["containers"]
    yield from (each for each in spec.get("initContainers", ()) if each["name"] == "ingest")


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_setting_arrives_at_the_pods_of_its_workload(component: str) -> None:
    found = select_pods(component, render(*EVERYTHING, *everything_of(component)))
    assert found
    for pod in found:
        assert pod["metadata"]["labels"]["team"] == "a"
        assert pod["metadata"]["annotations"]["mesh"] == "off"
        spec = pod["spec"]
        assert {field: spec[field] for field, _ in OF_PODS.values()} == dict(OF_PODS.values())
        assert spec["initContainers"][0] == INIT
        assert VOLUME in spec["volumes"]
        for container in own_containers(pod):
            assert container["envFrom"] == OF_CONTAINERS["extraEnvFrom"][1]
            assert container["resources"]["requests"]["cpu"] == "7"
            for name in ("extraEnv", "extraVolumeMounts"):
                field, more = OF_CONTAINERS[name]
                assert more[0] in container[field]


def test_the_server_of_reports_has_the_settings_of_the_history_but_for_its_resources() -> None:
    (pod,) = select_pods("reports", render(*EVERYTHING, *everything_of("history")))
    (container,) = pod["spec"]["containers"]
    assert pod["spec"]["initContainers"] == [INIT]
    assert VOLUME in pod["spec"]["volumes"]
    assert container["envFrom"] == OF_CONTAINERS["extraEnvFrom"][1]
    assert container["resources"]["requests"]["cpu"] != "7"
    for name in ("extraEnv", "extraVolumeMounts"):
        field, more = OF_CONTAINERS[name]
        assert more[0] in container[field]


@pytest.mark.parametrize("component", COMPONENTS)
def test_no_setting_arrives_at_the_pods_of_another_workload(component: str) -> None:
    changed, usual = render(*EVERYTHING, *everything_of(component)), render(*EVERYTHING)
    for other in {*COMPONENTS, *HOOKS} - {component} - (HOOKS if component == "operator" else set()):
        assert select_pods(other, changed) == select_pods(other, usual)


@pytest.mark.parametrize("component", ["operator", "controller", "zookeeper", "kafka"])
def test_how_pods_are_replaced_can_be_set(component: str) -> None:
    kind, field = ("Deployment", "strategy") if component == "operator" else ("StatefulSet", "updateStrategy")
    objects = render(*EVERYTHING, *make_options(component, {"updateStrategy": REPLACED}))
    found = {
        each["metadata"]["name"]: each["spec"][field]
        for each in objects
        if each["kind"] in ("Deployment", "StatefulSet") and each["spec"].get(field) == REPLACED
    }
    assert found == {f"kontroller-{component}": REPLACED}
    assert kind in {each["kind"] for each in objects if each["metadata"]["name"] in found}


@pytest.mark.parametrize("component", ["history", "alarms"])
def test_what_would_work_twice_has_no_strategy(component: str) -> None:
    with pytest.raises(CommandError, match="updateStrategy"):
        render(*EVERYTHING, *make_options(component, {"updateStrategy": REPLACED}))


def test_a_broker_s_time_to_end_still_holds_its_drain() -> None:
    with pytest.raises(CommandError, match="set it to 180 or more"):
        render(*EVERYTHING, "--set", "kafka.terminationGracePeriodSeconds=30")


def test_common_labels_and_annotations_are_on_every_object() -> None:
    objects = render(*ALL_OF_IT, "--set", "commonLabels.cost-center=42a,commonAnnotations.owner=kafka-team")
    assert {each["kind"] for each in objects} >= {"CustomResourceDefinition", "ClusterRole", "PrometheusRule", "Job"}
    for each in objects:
        assert each["metadata"]["labels"]["cost-center"] == "42a"
        assert each["metadata"]["annotations"]["owner"] == "kafka-team"
    for pod in pods(objects):
        assert pod["metadata"]["labels"]["cost-center"] == "42a"


def test_common_labels_are_in_nothing_that_cannot_change() -> None:
    for each in render(*ALL_OF_IT, "--set", "commonLabels.cost-center=42a,commonAnnotations.owner=kafka-team"):
        spec = each.get("spec", {})
        assert "cost-center" not in str(spec.get("selector", "")), each["metadata"]["name"]
        assert "cost-center" not in str(spec.get("volumeClaimTemplates", ""))
        assert "owner" not in str(spec.get("volumeClaimTemplates", ""))


@pytest.mark.parametrize("where", ["commonLabels", "operator.podLabels", "history.podLabels"])
def test_labels_by_which_pods_are_found_cannot_be_changed(where: str) -> None:
    with pytest.raises(CommandError, match=r"app\.kubernetes\.io/instance"):
        render("--set", rf"{where}.app\.kubernetes\.io/instance=other")

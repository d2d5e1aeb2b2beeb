"""The pods that Helm runs: a check after an install, the checks of `helm test`, and the rights of each."""

import pytest

from devcluster.filling.parts import Part
from tests.unit.chart.rendering import (
    CONTROLLER_FOR_SOME,
    RELEASE_NAMESPACE,
    SELF_CONTAINED,
    Object,
    find_object,
    options_of,
    render,
)

pytestmark = pytest.mark.needs(Part.HELM)


def hooks(*values: str) -> list[Object]:
    return [each for each in render(*values) if "helm.sh/hook" in each["metadata"].get("annotations", {})]


def test_every_command_of_a_hook_is_there_with_its_options() -> None:
    pods = [each for each in hooks(*SELF_CONTAINED) if each["kind"] in ("Job", "Pod")]
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


def test_the_cluster_is_asked_through_what_the_release_has() -> None:
    def find_bootstrap(*values: str) -> str:
        pod = find_object(render(*values), "Pod", "kontroller-test-cluster")
        assert pod["spec"]["automountServiceAccountToken"] is False
        bootstrap: str = pod["spec"]["containers"][0]["args"][2]
        return bootstrap

    assert find_bootstrap(*SELF_CONTAINED) == f"--bootstrap-server=kontroller-kafka.{RELEASE_NAMESPACE}.svc:9092"
    controller = ("--set", f"{CONTROLLER_FOR_SOME},controller.zookeeper=zk:2181")
    assert find_bootstrap(*controller) == f"--bootstrap-server=kontroller-controller.{RELEASE_NAMESPACE}.svc:9093"
    assert not [each for each in render() if each["metadata"]["name"] == "kontroller-test-cluster"]


def test_rights_come_before_what_needs_them_and_nothing_stays_behind() -> None:
    for each in hooks(*SELF_CONTAINED):
        annotations = each["metadata"]["annotations"]
        assert annotations["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"
        assert annotations["helm.sh/hook-weight"] == ("1" if each["kind"] in ("Job", "Pod") else "0")


@pytest.mark.parametrize("values", ["rbac.create=false", "apiCheck.enabled=false,releaseFinalizers.enabled=false"])
def test_jobs_can_be_left_out(values: str) -> None:
    assert not [each for each in render("--set", values) if each["kind"] == "Job"]

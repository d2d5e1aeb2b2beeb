"""The notes after an install: the commands are those that a person needs next."""

import shutil
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster.filling.parts import Part
from tests.unit.chart.rendering import CHART, CONTROLLER_ON, KUBERNETES, SELF_CONTAINED, helm

pytestmark = pytest.mark.needs(Part.HELM)

AS_AN_OBJECT = '{{- define "notes" -}}\n%s{{- end }}\nnotes: {{ include "notes" . | toJson }}\n'


def notes(folder: Path, *values: str) -> str:
    """Return the notes. `helm install` needs a cluster for them, so a copy of the chart renders them as a manifest."""
    copy = shutil.copytree(CHART, folder / "chart")
    text = (copy / "templates" / "NOTES.txt").read_text()
    (copy / "templates" / "notes.yaml").write_text(AS_AN_OBJECT % text)
    shown = helm("template", "kontroller", str(copy), *KUBERNETES, "--show-only", "templates/notes.yaml", *values)
    said: str = yaml.safe_load(shown)["notes"]
    return said


def test_missing_definitions_are_applied_and_the_operator_is_not_restarted(tmp_path: Path) -> None:
    said = notes(tmp_path, "--set", "crds.install=false")
    assert "kubectl apply --server-side --filename crds/" in said
    assert "restart" not in said


def test_with_its_definitions_the_release_asks_for_none(tmp_path: Path) -> None:
    said = notes(tmp_path, *SELF_CONTAINED)
    assert "crds/" not in said
    for name in ("statefulset/kontroller-kafka", "statefulset/kontroller-controller", "deployment/kontroller-operator"):
        assert f"rollout status {name}" in said


def find_cluster(said: str) -> Any:
    """Return the spec of the KafkaCluster that the notes apply."""
    _, _, manifest = textwrap.dedent(said[said.index("    kubectl apply --namespace") :]).partition("<<END\n")
    return yaml.safe_load(manifest.partition("END\n")[0])["spec"]


def test_the_cluster_to_apply_is_the_one_of_the_controllers(tmp_path: Path) -> None:
    said = notes(tmp_path, *CONTROLLER_ON)
    assert find_cluster(said) == {"zookeeper": {"connect": "zk-0:2181,zk-1:2181/kafka"}}


@pytest.mark.parametrize(
    ("values", "spec"),
    [
        ("clusterCheck.bootstrapServers=[fd00::1]:9092", {"bootstrapServers": "[fd00::1]:9092"}),
        ("kafka.zookeeper=[fd00::1]:2181/kafka", {"zookeeper": {"connect": "[fd00::1]:2181/kafka"}}),
    ],
)
def test_an_address_of_ipv6_is_a_text_for_the_cluster_to_apply(tmp_path: Path, values: str, spec: object) -> None:
    more = () if "clusterCheck" in values else ("--set", "kafka.enabled=true")
    assert find_cluster(notes(tmp_path, "--set", values, *more)) == spec


def test_the_ids_of_the_controllers_are_those_of_their_pods(tmp_path: Path) -> None:
    said = notes(tmp_path / "two", *CONTROLLER_ON, "--set", "controller.replicas=2")
    assert "Those of this release have the ids 999 to 1000." in said
    said = notes(tmp_path / "one", *CONTROLLER_ON, "--set", "controller.replicas=1")
    assert "That of this release has the id 1000." in said


def test_the_wait_is_for_the_cluster_that_the_notes_create(tmp_path: Path) -> None:
    said = notes(tmp_path, *CONTROLLER_ON, "--set", "watchNamespaces={shop,bank}")
    assert "kubectl apply --namespace shop -f - <<END" in said
    assert "kubectl wait --namespace shop --for=condition=Ready kcl/demo" in said

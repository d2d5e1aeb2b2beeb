"""The GitOps examples: complete, in step with each other, and without anything that would run again and again."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from controller_operator.resources import KINDS, PartitionReassignment, PreferredElection
from controller_operator.resources.common import API_VERSION, GROUP

EXAMPLES = Path(__file__).parents[3] / "examples" / "gitops"
MODELS = {kind.definition.kind: kind for kind in KINDS}
PARTS = ("state", "operations")


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def manifests(part: str) -> list[dict[str, Any]]:
    listed = documents(EXAMPLES / part / "kustomization.yaml")[0]["resources"]
    return [each for name in listed for each in documents(EXAMPLES / part / name)]


def script(kind: str) -> str:
    return (EXAMPLES / "argocd" / "health" / kind / "health.lua").read_text()


@pytest.mark.parametrize("part", PARTS)
def test_every_manifest_is_listed(part: str) -> None:
    listed = documents(EXAMPLES / part / "kustomization.yaml")[0]["resources"]
    assert {*listed, "kustomization.yaml"} == {path.name for path in (EXAMPLES / part).iterdir()}


def test_the_manifests_are_of_our_kinds_and_of_one_cluster() -> None:
    read = [MODELS[each["kind"]].model_validate(_set_namespace(each)) for part in PARTS for each in manifests(part)]
    assert {type(each).__name__ for each in read} >= {"KafkaCluster", "KafkaTopic", "FeatureSet", "PreferredElection"}
    clusters = {each.metadata.name for each in read if each.kind == "KafkaCluster"}
    assert {each.spec.cluster_ref.name for each in read if each.kind != "KafkaCluster"} == clusters


def test_what_runs_once_is_apart_from_what_stays_and_never_deletes_itself() -> None:
    once = {PartitionReassignment.definition.kind, PreferredElection.definition.kind}
    assert {each["kind"] for each in manifests("operations")} <= once
    assert not {each["kind"] for each in manifests("state")} & once
    assert not [each for each in manifests("operations") if "ttlSecondsAfterFinished" in each["spec"]]


def test_operations_are_in_a_later_wave_than_the_topics_that_they_are_for() -> None:
    def waves(part: str) -> dict[str, int]:
        wave = "argocd.argoproj.io/sync-wave"
        return {each["kind"]: int(each["metadata"]["annotations"][wave]) for each in manifests(part)}

    state, operations = waves("state"), waves("operations")
    assert state["KafkaCluster"] < state["KafkaTopic"] < min(operations.values())
    # A dry run is Suspended, which holds up every later wave.
    assert state["FeatureSet"] == max({**state, **operations}.values())


@pytest.mark.parametrize("kind", MODELS)
def test_argo_cds_settings_have_the_same_check_as_the_folders(kind: str) -> None:
    settings = documents(EXAMPLES / "argocd" / "argocd-cm.yaml")[0]["data"]
    assert settings[f"resource.customizations.health.{GROUP}_{kind}"] == script(kind)
    assert len(settings) == len(MODELS)


def test_all_kinds_have_the_same_check() -> None:
    assert len({script(kind) for kind in MODELS}) == 1


@pytest.mark.parametrize("kind", MODELS)
def test_the_test_data_has_nothing_that_tells_runs_apart(kind: str) -> None:
    files = list((EXAMPLES / "argocd" / "health" / kind / "testdata").glob("*.yaml"))
    assert files
    for path in files:
        exported = documents(path)[0]
        assert (exported["apiVersion"], exported["kind"]) == (API_VERSION, kind)
        assert not exported["metadata"].keys() & {"uid", "resourceVersion", "creationTimestamp", "managedFields"}


def test_flux_has_expressions_for_every_kind_where_it_waits_for_it() -> None:
    waiting = [each["spec"] for each in documents(EXAMPLES / "flux" / "kafka.yaml") if each["kind"] == "Kustomization"]
    assert [each["path"] for each in waiting] == [f"./examples/gitops/{part}" for part in PARTS]
    for each, part in zip(waiting, PARTS, strict=True):
        assert each["wait"] is True
        assert {manifest["kind"] for manifest in manifests(part)} <= {one["kind"] for one in each["healthCheckExprs"]}
    entries = [entry for each in waiting for entry in each["healthCheckExprs"]]
    assert sorted(entry["kind"] for entry in entries) == sorted(MODELS)
    assert {entry["apiVersion"] for entry in entries} == {API_VERSION}


def _set_namespace(manifest: dict[str, Any]) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": "kafka"}}

"""The health of real objects in Argo CD and Flux; Git and the operator never overwrite each other.

The operator makes the objects on a real API server with real brokers, and the tools' own engines judge them. With
KONTROLLER_EXPORT_STATUSES set, the objects become Argo CD's test data in examples/gitops.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller_operator.resources.common import GROUP
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.filling.parts import Part
from devcluster.health import Health, judge
from devcluster.running.processes import wait_until
from tests.real.operator.gitops import CHECKS, EXAMPLES, MANAGER, apply, differences, find_stable_parts, health_of
from tests.real.operator.health_states import STATES, Stage, State
from tests.real.operator.operated import NAMESPACE, operate_namespace, run_operator
from tests.real.operator.test_operator_features import Features

pytestmark = [pytest.mark.real(Part.HEALTH), pytest.mark.timeout(300)]

IS_EXPORT = "KONTROLLER_EXPORT_STATUSES" in os.environ
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@pytest.fixture(scope="module")
def kafka(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[KafkaCluster]:
    """Three brokers under our controller."""
    cluster = KafkaCluster(servers_folder, zookeeper, brokers=3, chroot="/gitops")
    with ExitStack() as stack:
        with zookeeper.client() as client:
            client.ensure_path("/gitops")
        stack.enter_context(ControllerProcess(servers_folder, cluster.zookeeper_connect, name="gitops-controller"))
        yield stack.enter_context(cluster)


@pytest.fixture(scope="module")
def other_cluster(zookeeper: ZooKeeper) -> Iterator[str]:
    """Another cluster, which exists only in ZooKeeper."""
    connect = f"{zookeeper.connect}/gitops-other"
    with zookeeper.client() as client:
        client.ensure_path("/gitops-other")
    with open_client(connect) as client:
        client.create("/cluster/id", b'{"version":"1","id":"another-cluster"}', makepath=True)
        client.ensure_path("/feature")
        features = Features(client, port=1)
        features.register(1, f=(1, 5))
        features.finalize(f=3)
        yield connect


@pytest.fixture(scope="module")
def stage(
    servers_folder: RunFolder, kubernetes_api: KubernetesCluster, kafka: KafkaCluster, other_cluster: str
) -> Iterator[Stage]:
    with (
        operate_namespace(kubernetes_api, kafka.zookeeper_connect) as objects,
        open_client(kafka.zookeeper_connect) as client,
        run_operator(servers_folder, kubernetes_api) as operator,
    ):
        znodes = ClusterZnodes(client)
        yield Stage(objects=objects, operator=operator, kafka=kafka, znodes=znodes, other_cluster=other_cluster)


@pytest.mark.parametrize("state", STATES, ids=lambda state: f"{state.kind}-{state.name}")
def test_both_tools_judge_what_was_really_seen(stage: Stage, state: State) -> None:
    seen = state.reach(stage, f"{state.kind.lower()}-{state.name}")
    health = health_of(seen)
    assert (health.argo, health.kstatus, health.flux) == (state.argo, state.kstatus, state.flux), json.dumps(
        seen["status"], indent=1
    )
    if IS_EXPORT:
        export(state, seen, health)
    committed = yaml.safe_load((CHECKS / state.kind / state.export).read_text())
    assert facts(committed) == facts(seen), "the test data is stale: export it again"


@pytest.mark.parametrize("kind", sorted({state.kind for state in STATES}))
def test_the_committed_test_data_is_judged_as_its_list_says(kind: str) -> None:
    tests = yaml.safe_load((CHECKS / kind / "health_test.yaml").read_text())["tests"]
    paths = sorted(test["inputPath"] for test in tests)
    assert paths == sorted(state.export for state in STATES if state.kind == kind)
    assert paths == sorted(f"testdata/{path.name}" for path in (CHECKS / kind / "testdata").iterdir())
    for test in tests:
        health = health_of(yaml.safe_load((CHECKS / kind / test["inputPath"]).read_text()))
        assert {"status": health.argo, "message": health.argo_message} == test["healthStatus"]


def test_why_a_status_has_a_generation_before_anybody_has_written_it() -> None:
    """kstatus would take it for done; Argo CD's check knows better."""
    bare = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "KafkaTopic", "metadata": {"name": "bare", "generation": 1}}
    lua = (CHECKS / "KafkaTopic" / "health.lua").read_text()
    never = dict.fromkeys(("current", "inProgress", "failed"), "false")
    health = judge(bare, lua=lua, expressions=never)
    assert (health.kstatus, health.argo) == ("Current", "Progressing")
    health = judge({**bare, "status": {"observedGeneration": -1}}, lua=lua, expressions=never)
    assert (health.kstatus, health.argo) == ("InProgress", "Progressing")


def test_argo_cds_settings_take_the_checks_as_a_patch(kubernetes_api: KubernetesCluster) -> None:
    target = ("configmap", "argocd-cm", "--namespace", "default")
    kubernetes_api.kubectl("create", *target, "--from-literal=url=https://argocd.example.com")
    kubernetes_api.kubectl("patch", *target, "--patch-file", str(CHECKS.parent / "argocd-cm.yaml"))
    settings = kubernetes_api.get(*target)["data"]
    kubernetes_api.kubectl("delete", *target)
    assert settings.pop("url") == "https://argocd.example.com"
    scripts = {path.name: (path / "health.lua").read_text() for path in CHECKS.iterdir()}
    assert settings == {f"resource.customizations.health.{GROUP}_{kind}": lua for kind, lua in scripts.items()}


def test_what_is_applied_again_changes_nothing(stage: Stage, kubernetes_api: KubernetesCluster, tmp_path: Path) -> None:
    folders = [overlay(tmp_path, part, stage.kafka.zookeeper_connect) for part in ("state", "operations")]
    applied: list[dict[str, Any]] = []
    for folder in folders:
        applied += apply(kubernetes_api, folder)
        for each in applied:
            is_dry = each["kind"] == "FeatureSet"
            stage.objects.wait_ready(each["kind"], each["metadata"]["name"], "False" if is_dry else "True")
    before = [find_stable_parts(kubernetes_api, each) for each in applied]
    for each, kept in zip(applied, before, strict=True):
        # kubectl applied the cluster before; the operator owns nothing of any spec
        earlier = {"kubectl"} if each["kind"] == "KafkaCluster" else set()
        assert set(kept["owners of the spec"]) == {MANAGER} | earlier, each["kind"]
    for folder in folders:
        assert differences(kubernetes_api, folder) == ""
        apply(kubernetes_api, folder)
    assert [find_stable_parts(kubernetes_api, each) for each in applied] == before

    pruned = [each for each in applied if each["kind"] != "KafkaCluster"]  # objects of other tests refer to that
    for each in reversed(pruned):
        stage.objects.delete(each["kind"], each["metadata"]["name"])
    for each in pruned:
        kind, name = each["kind"], each["metadata"]["name"]
        wait_until(lambda kind=kind, name=name: stage.objects.get(kind, name) is None, f"{name} is pruned")  # type: ignore[misc]  # a lambda with defaults
    assert stage.znodes.is_served("orders", range(3)), "what Git does not name any more keeps its data"


def test_a_finished_object_that_deletes_itself_runs_again_when_git_is_applied_again(stage: Stage) -> None:
    stage.serve_topic("looping", 1, 2)
    uids = set()
    for _ in range(2):
        stage.objects.apply("PreferredElection", "looping", {"topics": ["looping"], "ttlSecondsAfterFinished": 2})
        uids.add(stage.objects.wait_ready("PreferredElection", "looping")["metadata"]["uid"])
        wait_until(lambda: stage.objects.get("PreferredElection", "looping") is None, "it has deleted itself")
    assert len(uids) == 2


def export(state: State, seen: dict[str, Any], health: Health) -> None:
    """Write an object into Argo CD's test data, without the parts that depend on the machine and the run."""
    folder = CHECKS / state.kind
    cleaned = deepcopy(seen)
    for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        cleaned["metadata"].pop(name, None)
    (folder / state.export).write_text(replace_times(yaml.safe_dump(cleaned, sort_keys=False, width=110)))
    path = folder / "health_test.yaml"
    known = yaml.safe_load(path.read_text())["tests"] if path.exists() else []
    tests = {test["inputPath"]: test for test in known}
    healthy = {"status": health.argo, "message": replace_times(health.argo_message)}
    tests[state.export] = {"healthStatus": healthy, "inputPath": state.export}
    ours = [tests[each.export] for each in STATES if each.kind == state.kind and each.export in tests]
    path.write_text(yaml.safe_dump({"tests": ours}, sort_keys=False, width=110))


def replace_times(text: str) -> str:
    return TIMESTAMP.sub("2026-01-15T12:00:00Z", text)


def facts(resource: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that determine health; test data whose fields differ from the operator's is stale.

    No tool judges by SettingsDiffer, which comes as soon as the brokers have told their settings."""
    status = resource.get("status", {})
    conditions = [each for each in status.get("conditions", ()) if each["type"] != "SettingsDiffer"]
    return {
        "is observed": status.get("observedGeneration") == resource["metadata"]["generation"],
        "phase": status.get("phase"),
        "conditions": sorted((each["type"], each["status"], each["reason"]) for each in conditions),
        "annotations": resource["metadata"].get("annotations"),
    }


def overlay(folder: Path, part: str, connect: str) -> Path:
    """Return the example for the namespace and the cluster of this test."""
    path = folder / part
    path.mkdir()
    patch = [{"op": "replace", "path": "/spec/zookeeper/connect", "value": connect}]
    content = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": NAMESPACE,
        "resources": [os.path.relpath(EXAMPLES / part, path.resolve())],
        "patches": [{"target": {"group": GROUP, "kind": "KafkaCluster"}, "patch": json.dumps(patch)}],
    }
    (path / "kustomization.yaml").write_text(yaml.safe_dump(content))
    return path

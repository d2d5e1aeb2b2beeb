"""`kubectl kontroller` with a real kubectl, a real API server, and statuses as an operator writes them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devcluster.clusters.kubernetes import CommandError, KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.programs import KUBECTL

pytestmark = pytest.mark.real

PROJECT = Path(__file__).parents[3]
NAMESPACE, OTHER, NOBODY = "plugged", "plugged-too", "nobody"

Plugin = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def api(kubernetes_api: KubernetesCluster) -> KubernetesCluster:
    """An API server with a cluster, a topic and a move in one namespace, and another topic in a second one."""
    kubernetes_api.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(PROJECT / "crds"))
    kubernetes_api.wait_until_established()
    for namespace in (NAMESPACE, OTHER):
        apply(kubernetes_api, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NOBODY, "namespace": namespace}}
        apply(kubernetes_api, account)
    reference = {"clusterRef": {"name": "demo"}}
    topic = {**reference, "partitions": 1, "replicationFactor": 1}
    moved = {**reference, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2]}]}
    make(kubernetes_api, NAMESPACE, "KafkaCluster", "demo", {"zookeeper": {"connect": "zk:2181/kafka"}})
    make(kubernetes_api, NAMESPACE, "KafkaTopic", "orders", topic)
    make(kubernetes_api, NAMESPACE, "PartitionReassignment", "drain", moved)
    make(kubernetes_api, OTHER, "KafkaTopic", "other", topic)
    return kubernetes_api


@pytest.fixture
def plugin(servers_folder: RunFolder, api: KubernetesCluster) -> Plugin:
    """A function that runs `kubectl kontroller` from the PATH, with a kubeconfig whose context has our namespace."""
    kubeconfig = servers_folder.data("plugin") / "kubeconfig.json"
    content = json.loads(api.kubectl("config", "view", "--raw", "-o", "json"))
    content["contexts"].append({**content["contexts"][0], "name": "elsewhere"})
    content["contexts"][-1]["context"] = {**content["contexts"][0]["context"], "namespace": OTHER}
    content["contexts"][0]["context"]["namespace"] = NAMESPACE
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_text(json.dumps(content))

    def run(*arguments: str, config: Path = kubeconfig) -> subprocess.CompletedProcess[str]:
        folders = (KUBECTL.path().parent, PROJECT / "charts/krew", Path(sys.executable).parent)
        environment = {
            **os.environ,
            "KUBECONFIG": str(config),
            "PATH": f"{':'.join(map(str, folders))}:{os.environ['PATH']}",
            "PYTHONPATH": f"{PROJECT}:{PROJECT / 'operator'}",
        }
        command = ["kubectl", "kontroller", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    return run


def apply(api: KubernetesCluster, body: dict[str, Any]) -> None:
    api.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(body))


def make(api: KubernetesCluster, namespace: str, kind: str, name: str, spec: dict[str, Any]) -> None:
    metadata = {"name": name, "namespace": namespace}
    apply(api, {"apiVersion": "kontroller.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})
    say(api, namespace, kind, name, "True", "Reconciled")


def say(api: KubernetesCluster, namespace: str, kind: str, name: str, ready: str, reason: str, **more: Any) -> None:
    """Write a status as the operator does."""
    about = {
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": reason,
        "message": "so it is",
    }
    conditions = [{"type": "Ready", "status": ready, **about}]
    if reason == "NotAdopted":
        conditions.append({"type": "Stalled", "status": "True", **about})
    patch = json.dumps({"status": {"observedGeneration": 1, "conditions": conditions, **more}})
    arguments = ("--namespace", namespace, "--subresource=status", "--type=merge", "-p", patch)
    api.kubectl("patch", kind.lower(), name, *arguments)


def test_the_namespace_is_that_of_the_context_unless_another_or_all_are_asked_for(plugin: Plugin) -> None:
    def count_objects(*arguments: str) -> tuple[int, int]:
        done = plugin("status", "-o", "json", *arguments)
        answer = json.loads(done.stdout)
        return len(answer["clusters"]), answer["objects"]

    assert count_objects() == (1, 3)
    assert count_objects("-n", OTHER) == (0, 1)
    assert count_objects("--context", "elsewhere") == (0, 1)
    assert count_objects("-A")[1] >= 4


def test_the_exit_code_says_whose_turn_it_is(plugin: Plugin, api: KubernetesCluster) -> None:
    say(api, NAMESPACE, "PartitionReassignment", "drain", "True", "Completed", phase="Completed")
    assert plugin("status", "--fail-on-changes").returncode == 0
    counts = {"total": 1, "moving": 1}
    say(api, NAMESPACE, "PartitionReassignment", "drain", "False", "Progressing", phase="Running", counts=counts)
    moving = plugin("status", "--fail-on-changes")
    assert (moving.returncode, "kpr/drain" in moving.stdout) == (2, True), moving
    assert plugin("status").returncode == 0
    say(api, NAMESPACE, "KafkaTopic", "orders", "False", "NotAdopted")
    assert plugin("status").returncode == 3
    assert plugin("plan", "kt/orders").returncode == 3
    say(api, NAMESPACE, "KafkaTopic", "orders", "True", "Reconciled")
    assert plugin("top").returncode == 0


def test_a_pause_is_in_the_object_and_gone_again(plugin: Plugin, api: KubernetesCluster) -> None:
    def annotations() -> dict[str, str]:
        found: dict[str, str] = api.get("kafkatopic", "orders", "-n", NAMESPACE)["metadata"].get("annotations", {})
        return found

    assert plugin("pause", "kt/orders").returncode == 0
    assert annotations() == {"kontroller.dev/pause": "true"}
    assert "Paused:" in plugin("status").stdout
    assert plugin("resume", "kt/orders").returncode == 0
    assert annotations() == {}


def test_a_cancelled_move_is_deleted(plugin: Plugin, api: KubernetesCluster) -> None:
    moved = {"clusterRef": {"name": "demo"}, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2]}]}
    make(api, NAMESPACE, "PartitionReassignment", "wrong", moved)
    say(api, NAMESPACE, "PartitionReassignment", "wrong", "False", "Progressing", phase="Running")
    done = plugin("cancel", "kpr/wrong")
    assert (done.returncode, "goes back" in done.stdout) == (0, True), done
    with pytest.raises(CommandError, match="NotFound"):
        api.get("kpr", "wrong", "-n", NAMESPACE)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("plan", "kt/none"), "there is no KafkaTopic plugged/none"),
        (("pause", "orders"), "KIND/NAME"),
        (("status", "--context", "none"), "KUBECONFIG"),
        (("status", "--surprise"), "No such option"),
    ],
)
def test_an_error_ends_with_1_and_one_reason(plugin: Plugin, arguments: tuple[str, ...], told: str) -> None:
    done = plugin(*arguments)
    assert (done.returncode, told in done.stderr, "Traceback" in done.stderr) == (1, True, False), done


def test_missing_rights_are_told(plugin: Plugin, api: KubernetesCluster) -> None:
    done = plugin("status", config=api.service_account_kubeconfig(NAMESPACE, NOBODY))
    assert (done.returncode, "forbidden" in done.stderr, "Traceback" in done.stderr) == (1, True, False), done

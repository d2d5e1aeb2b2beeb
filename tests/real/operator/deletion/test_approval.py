"""A topic with approval Required: a person approves its deletion, risky changes and moves with the kubectl plugin."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.parts import Part
from devcluster.running.processes import wait_until
from tests.real.operator.deletion.conftest import WITH_ZOOKEEPER, Clusters
from tests.real.operator.operated import NAMESPACE, Objects, operate_namespace, run_operator
from tests.real.operator.witnesses import witness_of

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(300)]

SPEC: dict[str, Any] = {"partitions": 1, "replicationFactor": 1, "deletionPolicy": "Delete", "approval": "Required"}


@pytest.fixture(scope="module")
def objects(servers_folder: RunFolder, kubernetes_api: KubernetesCluster, clusters: Clusters) -> Iterator[Objects]:
    kafka = clusters[WITH_ZOOKEEPER]
    assert isinstance(kafka, KafkaCluster)
    with (
        operate_namespace(kubernetes_api, kafka.zookeeper_connect) as found,
        run_operator(servers_folder, kubernetes_api),
    ):
        yield found


@pytest.fixture(scope="module")
def plugin(kubernetes_api: KubernetesCluster) -> Path:
    return kubernetes_api.write_clients() / "kubectl-kontroller"


def approve(plugin: Path, name: str, plan: str) -> str:
    """Approve a plan; return the answer of the command."""
    arguments = ["approve", name, "--plan", plan, "--namespace", NAMESPACE]
    done = subprocess.run([str(plugin), *arguments], capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


def test_the_topic_stays_until_its_deletion_is_approved(objects: Objects, clusters: Clusters, plugin: Path) -> None:
    objects.apply("KafkaTopic", "kept", SPEC)
    objects.wait_ready("kafkatopic", "kept")
    objects.delete("kafkatopic", "kept")
    objects.wait_ready("kafkatopic", "kept", "False", "AwaitingApproval")
    due = objects.status("kafkatopic", "kept")["planHash"]
    assert "read the plan again" in approve(plugin, "kt/kept", "0123456789abcdef")
    with witness_of(clusters[WITH_ZOOKEEPER]) as witness:
        assert witness.topic_id("kept")
        assert "is approved" in approve(plugin, "kt/kept", due)
        objects.wait_gone("kafkatopic", "kept")
        wait_until(lambda: not witness.topic_id("kept"), "the topic is deleted")


def test_unclean_elections_wait_for_approval_at_the_creation_and_later(
    objects: Objects, clusters: Clusters, plugin: Path
) -> None:
    unclean, clean = ({"unclean.leader.election.enable": value} for value in ("true", "false"))
    with witness_of(clusters[WITH_ZOOKEEPER]) as witness:
        objects.apply("KafkaTopic", "unclean", {**SPEC, "config": unclean})
        objects.wait_ready("kafkatopic", "unclean", "False", "AwaitingApproval")
        objects.wait_for_event("unclean", "AwaitingApproval")
        assert not witness.topic_id("unclean")
        assert "is approved" in approve(plugin, "kt/unclean", objects.status("kafkatopic", "unclean")["planHash"])
        objects.wait_ready("kafkatopic", "unclean")
        assert witness.topic_id("unclean")
    objects.apply("KafkaTopic", "unclean", {**SPEC, "config": clean})
    objects.wait_ready("kafkatopic", "unclean")
    objects.apply("KafkaTopic", "unclean", {**SPEC, "config": unclean})
    objects.wait_ready("kafkatopic", "unclean", "False", "AwaitingApproval")
    status = objects.status("kafkatopic", "unclean")
    assert status["planHash"] != status["usedPlan"]
    assert "is approved" in approve(plugin, "kt/unclean", status["planHash"])
    found = objects.wait_ready("kafkatopic", "unclean")
    assert (found["status"]["usedPlan"], found["status"].get("planHash")) == (status["planHash"], None)


def test_a_move_that_the_topic_causes_waits_for_approval(objects: Objects, plugin: Path) -> None:
    objects.apply("KafkaTopic", "moved", SPEC)
    objects.wait_ready("kafkatopic", "moved")
    objects.apply("KafkaTopic", "moved", {**SPEC, "replicationFactor": 2})
    wait_until(lambda: bool(find_moves(objects)), "the topic has a PartitionReassignment that waits")
    (move,) = find_moves(objects)
    assert objects.status("kafkatopic", "moved")["replicationFactor"] == 1
    assert "is approved" in approve(plugin, f"kpr/{move['metadata']['name']}", move["status"]["planHash"])
    wait_until(lambda: objects.status("kafkatopic", "moved")["replicationFactor"] == 2, "the replicas are added")


def find_moves(objects: Objects) -> list[dict[str, Any]]:
    """Return the moves that wait for approval."""
    found = objects.every("partitionreassignment")
    return [each for each in found if each.get("status", {}).get("phase") == "AwaitingApproval"]

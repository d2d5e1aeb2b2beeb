"""Without ZooKeeper: a limit whose object lost its finalizer is reported and removed, and no other one is."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.clusters.kontroller import run_command
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.parts import Part
from devcluster.running.processes import wait_until
from kontroller.client.admin_client import BlockingAdminClient
from tests.real.operator.operated import NAMESPACE, RECORD_BYTES, Objects, fill, operate_namespace, run_operator
from tests.real.operator.witnesses import limit_without_zookeeper, witness_of

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(300)]

KIND = "partitionreassignment"
RATE = RECORD_BYTES


@pytest.fixture(scope="module")
def kafka(servers_folder: RunFolder) -> Iterator[KRaftCluster]:
    """Three brokers, because the witness limits the third one."""
    with KRaftCluster(servers_folder, controllers=1, name="left-limits") as kraft:
        yield kraft


@pytest.fixture(scope="module")
def objects(kubernetes_api: KubernetesCluster, kafka: KRaftCluster) -> Iterator[Objects]:
    with operate_namespace(kubernetes_api, bootstrapServers=kafka.bootstrap_servers) as found:
        yield found


def leave_a_limit(kafka: KRaftCluster, objects: Objects, folder: RunFolder, api: KubernetesCluster, topic: str) -> str:
    """Start a slow move, kill the operator, delete the object by hand, and end the move; return the owner."""
    spec = {"partitions": [{"topic": topic, "partition": 0, "replicas": [2]}], "throttle": {"bytesPerSecond": RATE}}
    with run_operator(folder, api) as operator:
        objects.apply("KafkaTopic", "theirs", {"replicaAssignment": [[1, 3]]})
        objects.wait_ready("kafkatopic", "theirs")
        objects.apply("KafkaTopic", topic, {"replicaAssignment": [[1]], "driftPolicy": "Ignore"})
        objects.wait_ready("kafkatopic", topic)
        fill(kafka, topic)
        objects.apply("PartitionReassignment", topic, spec)
        wait_until(lambda: objects.status(KIND, topic).get("counts", {}).get("moving") == 1, "the move is under way")
        operator.process.kill()
    uid = (objects.get(KIND, topic) or {})["metadata"]["uid"]
    objects.patch(KIND, topic, {"metadata": {"finalizers": None}})
    objects.delete(KIND, topic)
    objects.wait_gone(KIND, topic)
    plan = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [2]}]}
    with BlockingAdminClient({"bootstrap.servers": kafka.bootstrap_servers}) as admin:
        assert admin.cancel_reassignment(json.dumps(plan))
    return f"{NAMESPACE}/{topic}/{uid}"


def limits(kafka: KRaftCluster) -> dict[str, int]:
    """Return the owners that `kontroller reassign limits` lists, with their rates."""
    done = run_command("reassign", "limits", "--bootstrap-server", kafka.bootstrap_servers, "--output", "json")
    assert done.returncode == 0, done.stderr
    return {each["owner"]: each["bytesPerSecond"] for each in json.loads(done.stdout)}


def ownerless(objects: Objects) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = objects.status("kafkacluster", "demo").get("ownerlessLimits", [])
    return found


def test_a_limit_without_its_object_is_warned_of_first_and_then_removed(
    kafka: KRaftCluster, objects: Objects, servers_folder: RunFolder, kubernetes_api: KubernetesCluster
) -> None:
    owner = leave_a_limit(kafka, objects, servers_folder, kubernetes_api, "robbed")
    limit_without_zookeeper(kafka, "theirs", RATE)
    with witness_of(kafka) as witness, run_operator(servers_folder, kubernetes_api):
        wait_until(lambda: bool(ownerless(objects)), "the KafkaCluster shows it")
        (row,) = ownerless(objects)
        assert (row["owner"], row["bytesPerSecond"], row["topics"]) == (owner, RATE, ["robbed"])
        assert row["message"].startswith("is removed after 20")
        objects.wait_for_event("demo", "LimitWithoutOwner")
        assert limits(kafka) == {owner: RATE}
        long_ago = [{**row, "since": "2026-01-01T00:00:00Z"}]
        patch = json.dumps({"status": {"ownerlessLimits": long_ago}})
        target = ("kafkacluster", "demo", "--namespace", NAMESPACE, "--subresource=status", "--type=merge")
        kubernetes_api.kubectl("patch", *target, "--patch", patch)
        objects.wait_for_event("demo", "LimitRemoved")
        wait_until(lambda: not ownerless(objects), "the KafkaCluster shows it no more")
        assert limits(kafka) == {}
        kept = {name: value for name, value in witness.config("theirs").items() if "throttled" in name}
        assert kept == {
            "leader.replication.throttled.replicas": "0:1",
            "follower.replication.throttled.replicas": "0:3",
        }
    limit_without_zookeeper(kafka, "theirs", None)


def test_a_command_removes_it_at_once(
    kafka: KRaftCluster, objects: Objects, servers_folder: RunFolder, kubernetes_api: KubernetesCluster
) -> None:
    owner = leave_a_limit(kafka, objects, servers_folder, kubernetes_api, "removed")
    assert limits(kafka) == {owner: RATE}
    servers = ("--bootstrap-server", kafka.bootstrap_servers)
    wrong = run_command("reassign", "limits", *servers, "--remove", f"{owner}x")
    assert wrong.returncode != 0
    assert "has no limit: `kontroller reassign limits` lists the owners" in wrong.stderr
    done = run_command("reassign", "limits", *servers, "--remove", owner)
    assert (done.returncode, done.stdout) == (0, f"the limit of {owner} is removed\n"), done.stderr
    assert limits(kafka) == {}
    with witness_of(kafka) as witness:
        assert not [name for name in witness.config("removed") if "throttled" in name]

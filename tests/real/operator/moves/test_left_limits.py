"""Without ZooKeeper: a limit whose object lost its finalizer is removed, and no other one is."""

import json
from collections.abc import Iterator

import pytest

from controller_core.client.admin_client import BlockingAdminClient
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.parts import Part
from devcluster.running.processes import wait_until
from tests.real.operator.operated import RECORD_BYTES, Objects, fill, operate_namespace, run_operator
from tests.real.operator.witnesses import limit_without_zookeeper, witness_of

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(300)]

KIND = "partitionreassignment"
RATE = RECORD_BYTES
RECORD = "kontroller-operator-throttles"


@pytest.fixture(scope="module")
def kafka(servers_folder: RunFolder) -> Iterator[KRaftCluster]:
    """Three brokers, because the witness limits the third one."""
    with KRaftCluster(servers_folder, controllers=1, name="left-limits") as kraft:
        yield kraft


@pytest.fixture(scope="module")
def objects(kubernetes_api: KubernetesCluster, kafka: KRaftCluster) -> Iterator[Objects]:
    with operate_namespace(kubernetes_api, bootstrapServers=kafka.bootstrap_servers) as found:
        yield found


def leave_a_limit(kafka: KRaftCluster, objects: Objects, folder: RunFolder, api: KubernetesCluster, topic: str) -> None:
    """Start a slow move, kill the operator, delete the object by hand, and end the move."""
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
    objects.patch(KIND, topic, {"metadata": {"finalizers": None}})
    objects.delete(KIND, topic)
    objects.wait_gone(KIND, topic)
    plan = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [2]}]}
    with BlockingAdminClient({"bootstrap.servers": kafka.bootstrap_servers}) as admin:
        assert admin.cancel_reassignment(json.dumps(plan))


def list_records(api: KubernetesCluster) -> list[str]:
    """Return the ConfigMaps of the operator that record a throttle."""
    maps = json.loads(api.kubectl("get", "configmaps", "--all-namespaces", "--output", "json"))["items"]
    return [each["metadata"]["name"] for each in maps if each["metadata"]["name"] == RECORD and each.get("data")]


def test_a_limit_whose_object_lost_its_finalizer_is_removed_and_no_other_one_is(
    kafka: KRaftCluster, objects: Objects, servers_folder: RunFolder, kubernetes_api: KubernetesCluster
) -> None:
    leave_a_limit(kafka, objects, servers_folder, kubernetes_api, "robbed")
    limit_without_zookeeper(kafka, "theirs", RATE)
    with witness_of(kafka) as witness:
        assert witness.throttles("robbed").lists == (["0:1"], ["0:2"])
        assert list_records(kubernetes_api) == [RECORD]
        with run_operator(servers_folder, kubernetes_api):
            objects.wait_for_event("demo", "LimitRemoved")
        assert list_records(kubernetes_api) == []
        assert not [name for name in witness.config("robbed") if "throttled" in name]
        kept = {name: value for name, value in witness.config("theirs").items() if "throttled" in name}
        assert kept == {
            "leader.replication.throttled.replicas": "0:1",
            "follower.replication.throttled.replicas": "0:3",
        }
    limit_without_zookeeper(kafka, "theirs", None)

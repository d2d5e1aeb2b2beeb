"""A move off a dead broker on real servers reports what it waits for, and continues when the broker is back."""

from collections.abc import Iterator
from contextlib import ExitStack
from shutil import disk_usage
from typing import Any

import pytest

from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.filling.parts import Part
from devcluster.running.processes import wait_until
from tests.real.operator.operated import Objects, operate_namespace, run_operator

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(300)]

KIND = "partitionreassignment"
WHY = "has no leader, so nothing can be copied: start broker 2, which was in sync last"


@pytest.fixture(scope="module", params=["Kontroller", "KRaft"])
def kafka(
    request: pytest.FixtureRequest, servers_folder: RunFolder, zookeeper: ZooKeeper
) -> Iterator[KafkaCluster | KRaftCluster]:
    """Two brokers, with ZooKeeper under our controller, or without ZooKeeper."""
    if request.param == "KRaft":
        with KRaftCluster(servers_folder, brokers=2, controllers=1, name="stuck-moves") as kraft:
            yield kraft
        return
    with ExitStack() as stack:
        cluster = KafkaCluster(servers_folder, zookeeper, brokers=2, chroot="/stuck-moves")
        with zookeeper.client() as client:
            client.ensure_path("/stuck-moves")
        stack.enter_context(ControllerProcess(servers_folder, cluster.zookeeper_connect, name="stuck-controller"))
        yield stack.enter_context(cluster)


@pytest.fixture(scope="module")
def objects(kubernetes_api: KubernetesCluster, kafka: KafkaCluster | KRaftCluster) -> Iterator[Objects]:
    if isinstance(kafka, KRaftCluster):
        with operate_namespace(kubernetes_api, bootstrapServers=kafka.bootstrap_servers) as found:
            yield found
        return
    with operate_namespace(kubernetes_api, kafka.zookeeper_connect) as found:
        yield found


@pytest.fixture(scope="module", autouse=True)
def _operator(servers_folder: RunFolder, kubernetes_api: KubernetesCluster, objects: Objects) -> Iterator[None]:
    with run_operator(servers_folder, kubernetes_api):
        yield


def test_a_kafka_cluster_shows_how_full_the_disk_of_each_broker_is(objects: Objects, servers_folder: RunFolder) -> None:
    def disks() -> list[dict[str, Any]]:
        return [each["disk"] for each in objects.status("kafkacluster", "demo").get("brokers", []) if "disk" in each]

    wait_until(lambda: len(disks()) == 2, "both brokers say how full their disks are")
    total = disk_usage(servers_folder.path).total
    assert [each["totalBytes"] for each in disks()] == [total, total]
    assert all(0 < each["usedPercent"] <= 100 for each in disks())
    assert len({each["directory"] for each in disks()}) == 2


def test_a_move_off_a_dead_broker_names_it_and_ends_when_it_is_back(
    kafka: KafkaCluster | KRaftCluster, objects: Objects
) -> None:
    def leader() -> int:
        return int(objects.status("kafkatopic", "single")["partitions"][0]["leader"])

    objects.apply("KafkaTopic", "single", {"replicaAssignment": [[2]], "driftPolicy": "Ignore"})
    objects.wait_ready("kafkatopic", "single")
    kafka.broker(2).kill()
    wait_until(lambda: leader() == -1, "nobody leads it")
    spec = {"partitions": [{"topic": "single", "partition": 0, "replicas": [1]}]}
    objects.apply("PartitionReassignment", "off-a-dead-broker", spec)
    status = objects.wait_ready(KIND, "off-a-dead-broker", "False", "PartitionsOffline")["status"]
    assert [row["message"] for row in status["partitions"]] == [WHY]
    assert objects.condition(KIND, "off-a-dead-broker", "Reconciling")["message"] == (
        f"1 of 1 partitions are on their way; single-0 {WHY}"
    )
    objects.wait_for_event("off-a-dead-broker", "PartitionsOffline")
    kafka.broker(2).start()
    objects.wait_for(KIND, "off-a-dead-broker", "Complete")
    (row,) = objects.status(KIND, "off-a-dead-broker")["partitions"]
    assert "message" not in row
    objects.wait_for_event("off-a-dead-broker", "ReassignmentCompleted")
    assert dict(objects.count_events("off-a-dead-broker")) == {"PartitionsOffline": 1, "ReassignmentCompleted": 1}

"""A broker is removed from real clusters: marked, drained, and stopped, and no object moves anything back to it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.running.processes import wait_until
from tests.real.operator.operated import NAMESPACE, PROJECT, Objects, operate_namespace, run_operator

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]

PINNED = {"replicaAssignment": [[4, 1], [1, 2]]}


class Served(NamedTuple):
    """A cluster of four brokers, and its address in a KafkaCluster."""

    kafka: KafkaCluster | KRaftCluster
    address: dict[str, Any]


@pytest.fixture(params=["ZooKeeper", "quorum"])
def served(request: pytest.FixtureRequest, servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[Served]:
    """Four brokers, under our controller or under Kafka's quorum."""
    with ExitStack() as stack:
        if request.param == "quorum":
            quorum = stack.enter_context(KRaftCluster(servers_folder, name="removed", brokers=4, controllers=1))
            yield Served(quorum, {"bootstrapServers": quorum.bootstrap_servers})
            return
        cluster = KafkaCluster(servers_folder, zookeeper, brokers=4, chroot="/removed")
        with zookeeper.client() as client:
            client.ensure_path("/removed")
        stack.enter_context(ControllerProcess(servers_folder, cluster.zookeeper_connect, name="removed-controller"))
        stack.enter_context(cluster)
        yield Served(cluster, {"zookeeper": {"connect": cluster.zookeeper_connect}})


def plugin(api: KubernetesCluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `kubectl kontroller`."""
    environment = {**os.environ, "KUBECONFIG": str(api.kubeconfig), "PYTHONPATH": f"{PROJECT}:{PROJECT / 'operator'}"}
    command = [sys.executable, "-m", "kontroller.plugin.command_line", *arguments, "-n", NAMESPACE]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def holders(objects: Objects, topic: str) -> set[int]:
    """Return the brokers with replicas of a topic, according to its KafkaTopic."""
    return {broker for row in objects.status("kafkatopic", topic)["partitions"] for broker in row["replicas"]}


def leaders(objects: Objects, topic: str) -> list[int]:
    rows = sorted(objects.status("kafkatopic", topic)["partitions"], key=lambda row: row["partition"])
    return [row["leader"] for row in rows]


def removal(objects: Objects) -> dict[int, str | None]:
    return {row["id"]: row.get("removal") for row in objects.status("kafkacluster", "demo")["brokers"]}


def test_a_broker_is_marked_drained_and_stopped_and_nothing_comes_back_to_it(
    served: Served, servers_folder: RunFolder, kubernetes_api: KubernetesCluster
) -> None:
    with operate_namespace(kubernetes_api, **served.address) as objects, run_operator(
        servers_folder, kubernetes_api
    ):  # fmt: skip
        objects.apply("KafkaTopic", "pinned", PINNED)
        objects.apply("KafkaTopic", "free", {"partitions": 8, "replicationFactor": 2})
        for topic in ("pinned", "free"):
            objects.wait_ready("kafkatopic", topic)
        refused = plugin(kubernetes_api, "drain", "4", "--yes")
        assert refused.returncode != 0
        assert "KafkaTopic operated/pinned would move replicas back to broker 4" in refused.stderr
        assert objects.get("partitionreassignment", "drain-4") is None
        assert 4 in holders(objects, "free")

        objects.patch("kafkacluster", "demo", {"spec": {"brokersToRemove": [4]}})
        told = objects.wait_ready("kafkatopic", "pinned", "False", "BrokerToBeRemoved")
        assert "Stalled" in {each["type"] for each in told["status"]["conditions"]}
        assert plugin(kubernetes_api, "drain", "4", "--yes").returncode == 0
        objects.wait_ready("partitionreassignment", "drain-4", "True", "Completed")
        objects.wait_for_event("drain-4", "AssignmentOverruled")
        wait_until(lambda: removal(objects)[4] == "Empty", "the KafkaCluster says that the broker is empty")
        objects.wait_ready("kafkatopic", "pinned", "False", "BrokerToBeRemoved")
        assert "DriftCorrected" not in objects.events("pinned")
        assert "it has no replicas and gets none: safe to stop for good" in plugin(kubernetes_api, "status").stdout

        objects.apply("KafkaTopic", "more", {"partitions": 8, "replicationFactor": 3})
        objects.wait_ready("kafkatopic", "more")
        assert holders(objects, "more") == {1, 2, 3}
        served.kafka.broker(4).stop()
        wait_until(lambda: 4 not in removal(objects), "the broker has left the list")
        assert objects.condition("kafkacluster", "demo", "Degraded")["status"] == "False"
        objects.apply("KafkaTopic", "pinned", {"replicaAssignment": [[3, 1], [1, 2]]})
        objects.wait_ready("kafkatopic", "pinned", "True", "Reconciled")
        assert holders(objects, "pinned") == {1, 2, 3}
        objects.apply("KafkaTopic", "pinned", {"replicaAssignment": [[1, 3], [2, 1]]})
        wait_until(lambda: leaders(objects, "pinned") == [1, 2], "the first replicas of the new order lead")
        objects.apply("KafkaTopic", "pinned", {"replicaAssignment": [[3, 1], [1, 2]]})
        wait_until(lambda: leaders(objects, "pinned") == [3, 1], "and again those of the next one")

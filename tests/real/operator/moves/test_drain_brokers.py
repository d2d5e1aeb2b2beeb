"""A broker is drained on real servers, by the plan that was shown before."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess, run_command
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import serve_topic
from tests.real.operator.operated import NAMESPACE, PROJECT, operate_namespace, run_operator

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@pytest.fixture
def kafka(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[KafkaCluster]:
    """Four brokers under our controller."""
    with ExitStack() as stack:
        cluster = KafkaCluster(servers_folder, zookeeper, brokers=4, chroot="/emptied")
        with zookeeper.client() as client:
            client.ensure_path("/emptied")
        stack.enter_context(ControllerProcess(servers_folder, cluster.zookeeper_connect, name="emptied-controller"))
        yield stack.enter_context(cluster)


def drain(api: KubernetesCluster, *arguments: str) -> str:
    """Return the output of `kubectl kontroller drain`."""
    environment = {**os.environ, "KUBECONFIG": str(api.kubeconfig), "PYTHONPATH": f"{PROJECT}:{PROJECT / 'operator'}"}
    command = [sys.executable, "-m", "kontroller.plugin.command_line", "drain", "-n", NAMESPACE, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done
    return done.stdout


def check_empty(kafka: KafkaCluster, broker: int) -> subprocess.CompletedProcess[str]:
    """Run `kontroller check empty-brokers`."""
    return run_command("check", "empty-brokers", "--bootstrap-server", kafka.bootstrap_servers, "--broker", str(broker))


def test_a_broker_is_emptied_by_the_plan_that_was_shown_while_it_was_suspended(
    kafka: KafkaCluster, servers_folder: RunFolder, kubernetes_api: KubernetesCluster
) -> None:
    with open_client(kafka.zookeeper_connect) as client, operate_namespace(
        kubernetes_api, kafka.zookeeper_connect
    ) as objects, run_operator(servers_folder, kubernetes_api):  # fmt: skip
        znodes = ClusterZnodes(client)
        serve_topic(znodes, "emptied", [[1, 2], [2, 3], [3, 1], [4, 1]])
        still = check_empty(kafka, 1)
        assert still.returncode == 1
        assert "broker 1 still has replicas of 3 partitions" in still.stderr
        assert "create a PartitionReassignment with drainBrokers: [1]" in still.stderr
        spec = {"drainBrokers": [1], "maxConcurrentPartitions": 2, "suspend": True}
        objects.apply("PartitionReassignment", "empty-1", spec)
        objects.wait_ready("partitionreassignment", "empty-1", "False", "Suspended")
        plan = objects.status("partitionreassignment", "empty-1")["plan"]
        assert [each["partition"] for each in plan] == [0, 2, 3]
        assert znodes.read_assignment("emptied", 0) == [1, 2]
        objects.apply("PartitionReassignment", "empty-1", {**spec, "suspend": False})
        status = objects.wait_ready("partitionreassignment", "empty-1", "True", "Completed")["status"]
        assert status["plan"] == plan
        assert {each["partition"]: each["replicas"] for each in plan} == {
            number: znodes.read_assignment("emptied", number) for number in (0, 2, 3)
        }
        assert znodes.read_assignment("emptied", 1) == [2, 3]
        wait_until(lambda: check_empty(kafka, 1).returncode == 0, "brokers say that broker 1 holds no replicas")
        shown = drain(kubernetes_api, "2", "--dry-run")
        wait_until(lambda: objects.get("partitionreassignment", "drain-2") is None, "nothing of it is left")
        assert "is deleted" in shown
        assert "emptied-1   2,3" in shown
        assert znodes.read_assignment("emptied", 1) == [2, 3]
        begun = drain(kubernetes_api, "2", "--yes", "--at-a-time", "1", "--throttle", "5000000")
        assert "emptied-1   2,3" in begun
        objects.wait_ready("partitionreassignment", "drain-2", "True", "Completed")
        assert not any(2 in znodes.read_assignment("emptied", number) for number in range(4))

"""Definitions that are rolled back under live objects on a real API server: nothing begins, and nothing is lost.

Everything continues when the definitions are there again.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import yaml

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from tests.real.operator.operated import PROJECT, Objects, operate_namespace, run_operator

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

KIND = "partitionreassignment"
MOVE = {"partitions": [{"topic": "kept", "partition": 0, "replicas": [2]}]}
DEFINITION = PROJECT / "crds" / "partitionreassignments.yaml"


@pytest.fixture
def kafka(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[KafkaCluster]:
    with zookeeper.client() as client:
        client.ensure_path("/rolled-back")
    with KafkaCluster(servers_folder, zookeeper, brokers=2, chroot="/rolled-back") as cluster:
        yield cluster


@contextmanager
def roll_back(api: KubernetesCluster) -> Iterator[None]:
    """Use the definition of a release without `suspend` while the block runs."""
    earlier = yaml.safe_load(DEFINITION.read_text())
    del earlier["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["suspend"]
    try:
        api.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=yaml.safe_dump(earlier))
        yield
    finally:
        api.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(DEFINITION))


def is_shown_suspended(objects: Objects) -> bool:
    return "suspend" in (objects.get(KIND, "kept") or {"spec": {}})["spec"]


def test_a_suspended_move_outlives_a_rollback_of_its_definition(
    kafka: KafkaCluster, servers_folder: RunFolder, kubernetes_api: KubernetesCluster
) -> None:
    with open_client(kafka.zookeeper_connect) as client, operate_namespace(
        kubernetes_api, kafka.zookeeper_connect
    ) as objects:  # fmt: skip
        znodes = ClusterZnodes(client)
        znodes.create_topic("kept", [[1]])
        with run_operator(servers_folder, kubernetes_api):
            objects.apply("PartitionReassignment", "kept", {**MOVE, "suspend": True})
            objects.wait_ready(KIND, "kept", "False", "Suspended")
        with run_operator(servers_folder, kubernetes_api) as operator:
            wait_until(lambda: operator.trouble() is None, "it is ready")
            with roll_back(kubernetes_api):
                wait_until(lambda: not is_shown_suspended(objects), "the API server drops the field")
                wait_until(lambda: "lacks spec.suspend" in (operator.trouble() or ""), "it is noticed")
                with run_operator(servers_folder, kubernetes_api) as another:
                    wait_until(lambda: "lacks spec.suspend" in (another.trouble() or ""), "it is noticed at once")
                    assert not another.writes()
                    assert znodes.read_assignment("kept", 0) == [1]
            wait_until(lambda: operator.trouble() is None, "the definition is there again")
            assert is_shown_suspended(objects)
            assert znodes.read_assignment("kept", 0) == [1]
            objects.patch(KIND, "kept", {"spec": {"suspend": False}})
            objects.wait_ready(KIND, "kept", "True", "Completed")
            assert znodes.read_assignment("kept", 0) == [2]

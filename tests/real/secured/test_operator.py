"""The operator with a ZooKeeper that needs certificates and logins: it presents them only to the right servers."""

from collections.abc import Iterator

import pytest

from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_zookeeper import PASSWORD, SecuredZooKeeper
from devcluster.running.processes import wait_until
from tests.real.operator.operated import Objects, operate_namespace, run_operator
from tests.real.secured.clusters import BY_US

pytestmark = [pytest.mark.real, pytest.mark.timeout(200)]


@pytest.fixture
def objects(
    kubernetes_api: KubernetesCluster, secured: dict[str, KafkaCluster], zookeeper_with_users: SecuredZooKeeper
) -> Iterator[Objects]:
    with operate_namespace(kubernetes_api, zookeeper_with_users.secure_connect + BY_US) as found:
        yield found


def test_a_topic_becomes_ready_where_the_file_names_the_cluster_s_servers(
    objects: Objects,
    kubernetes_api: KubernetesCluster,
    servers_folder: RunFolder,
    zookeeper_with_users: SecuredZooKeeper,
) -> None:
    server = zookeeper_with_users
    file = server.write_properties("operator.properties", zookeeper_connect=server.secure_connect)
    objects.apply("KafkaTopic", "secured", {"topicName": "secured", "partitions": 2, "replicationFactor": 2})
    with run_operator(servers_folder, kubernetes_api, env={"KONTROLLER_PROPERTIES": str(file)}) as operator:
        objects.wait_for("KafkaTopic", "secured", "Ready")
        assert PASSWORD not in operator.log()


def test_a_cluster_of_which_no_file_says_anything_is_said_to_be_out_of_reach(
    objects: Objects,
    kubernetes_api: KubernetesCluster,
    servers_folder: RunFolder,
    zookeeper_with_users: SecuredZooKeeper,
) -> None:
    other = zookeeper_with_users.write_properties("other.properties", zookeeper_connect="elsewhere:2182")
    with run_operator(servers_folder, kubernetes_api, env={"KONTROLLER_PROPERTIES": str(other)}):
        wait_until(
            lambda: objects.condition("KafkaCluster", "demo").get("status") in ("False", "Unknown"),
            "the cluster is out of reach",
        )

"""ZooKeeper stops and starts under everything."""

from devcluster.clients.load import AckedProducer, lost, read_back
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import wait_until_served


def test_zookeeper_restarts_under_brokers_controller_and_load(servers_folder: RunFolder) -> None:
    with (
        ZooKeeper(servers_folder, name="restarting-zookeeper") as zookeeper,
        KafkaCluster(servers_folder, zookeeper, brokers=3, chroot="/outage") as kafka,
        ControllerProcess(servers_folder, kafka.zookeeper_connect, name="outage-controller") as controller,
        zookeeper.client("/outage") as client,
    ):
        znodes = ClusterZnodes(client)
        znodes.create_topic("enduring", [[1, 2, 3]], {"min.insync.replicas": "2"})
        wait_until_served(znodes, "enduring", [0])
        with AckedProducer(kafka.bootstrap_servers, "enduring") as producer:
            wait_until(lambda: producer.acknowledged_count > 0, "the first acknowledgement")
            zookeeper.kill()
            acknowledged = producer.acknowledged_count
            wait_until(lambda: producer.acknowledged_count > acknowledged, "brokers serve without it")
            zookeeper.start()
        wait_until(lambda: client.connected, "this test's own client is back")
        wait_until(lambda: znodes.controller() == controller.controller_id, "our controller has the role")
        wait_until_served(znodes, "enduring", [0])
        znodes.create_topic("later", [[3, 2, 1]])
        wait_until_served(znodes, "later", [0])
        assert lost(producer.stop().acknowledged, read_back(kafka.bootstrap_servers, "enduring")) == []

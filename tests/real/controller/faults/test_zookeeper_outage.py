"""ZooKeeper stops and starts under running servers."""

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.running.processes import wait_until
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import (
    serve_topic,
    wait_until_acknowledged,
    wait_until_controlled_by,
    wait_until_served,
)


def test_zookeeper_restarts_under_brokers_controller_and_load(servers_folder: RunFolder) -> None:
    with (
        ZooKeeper(servers_folder, name="restarting-zookeeper") as zookeeper,
        KafkaCluster(servers_folder, zookeeper, brokers=3, chroot="/outage") as kafka,
        ControllerProcess(servers_folder, kafka.zookeeper_connect, name="outage-controller") as controller,
        zookeeper.client("/outage") as client,
    ):
        znodes = ClusterZnodes(client)
        serve_topic(znodes, "enduring", [[1, 2, 3]], {"min.insync.replicas": "2"})
        with nothing_lost(kafka.bootstrap_servers, "enduring") as producer:
            zookeeper.kill()
            wait_until_acknowledged(producer)
            zookeeper.start()
            wait_until(lambda: client.connected, "this test's own client is back")
            wait_until_controlled_by(znodes, controller.controller_id)
            wait_until_served(znodes, "enduring")
            serve_topic(znodes, "later", [[3, 2, 1]])

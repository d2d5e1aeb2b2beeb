"""A requested unclean election on real brokers: the replica with the longest log leads."""

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as WatchedPartition

from controller_core.client.admin_client import BlockingAdminClient
from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.waiting.vocabulary import (
    serve_topic,
    wait_until_in_sync,
    wait_until_led,
    wait_until_metric,
)
from tests.real.conftest import StartKafka
from tests.real.controller.faults.test_lost_epochs import acknowledge_some
from tests.real.versions.releases import of_each_release

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

TOPIC = "orders"
CHOICE = '{"partitions":[{"topic":"orders","partition":0}]}'


def log_end(kafka: KafkaCluster) -> int:
    """Return the log end offset, as clients see it."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "none", "log_level": 2})
    try:
        _, end = consumer.get_watermark_offsets(WatchedPartition(TOPIC, 0), timeout=30)
    finally:
        consumer.close()
    return int(end)


@of_each_release
def test_the_replica_that_was_in_sync_longest_leads_and_has_what_was_acknowledged_until_then(
    servers_folder: RunFolder, zookeeper: ZooKeeper, zookeeper_chroot: str, start_kafka: StartKafka, release: str
) -> None:
    kafka = start_kafka(version=release)
    with (
        ControllerProcess(servers_folder, kafka.zookeeper_connect, name=f"recovery-{release}") as controller,
        zookeeper.client(zookeeper_chroot) as client,
        BlockingAdminClient({"bootstrap.servers": controller.address}) as admin,
    ):
        znodes = ClusterZnodes(client)
        serve_topic(znodes, TOPIC, [[1, 2, 3]])
        acknowledged = {}
        for leader, next_leader in {1: 2, 2: 3, 3: -1}.items():
            acknowledged[leader] = acknowledge_some(kafka, TOPIC).stop().acknowledged
            kafka.broker(leader).kill()
            wait_until_led(znodes, TOPIC, next_leader)
        kafka.broker(1).start()
        kafka.broker(2).start()
        wait_until_metric(controller, "kontroller_brokers", 2)
        assert (znodes.leader(TOPIC, 0), znodes.isr(TOPIC, 0)) == (-1, [3])

        assert admin.elect_unclean(CHOICE) == {TopicPartition(TopicName(TOPIC), PartitionId(0)): None}

        assert znodes.leader(TOPIC, 0) == 2
        wait_until_in_sync(znodes, TOPIC, 1, 2)
        end = log_end(kafka)
        assert acknowledged[2][-1].offset < end <= acknowledged[3][0].offset

"""Lost epochs: in `/controller_epoch` or a state znode under running brokers, or by an older copy of ZooKeeper."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka.admin import AdminClient

from devcluster.clients.load import AckedProducer, find_lost, read_back
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import (
    serve_topic,
    wait_until_acknowledged,
    wait_until_led,
    wait_until_logged,
    wait_until_metric,
    wait_until_served,
)
from tests.real.conftest import StartKafka


def acknowledge_some(kafka: KafkaCluster, topic: str) -> AckedProducer:
    """Produce to a topic until its whole ISR has acknowledged a message."""
    with AckedProducer(kafka.bootstrap_servers, topic) as producer:
        wait_until_acknowledged(producer)
    return producer


def wait_until_known(kafka: KafkaCluster, topic: str) -> None:
    """Wait until every broker's metadata has a topic."""
    for broker in kafka.brokers.values():
        list_topics = AdminClient({"bootstrap.servers": broker.address, "log_level": 2}).list_topics
        wait_until(lambda: topic in list_topics(timeout=30).topics, f"{broker.name} knows {topic}")  # noqa: B023


@contextmanager
def znodes_of(zookeeper: ZooKeeper, chroot: str) -> Iterator[ClusterZnodes]:
    with zookeeper.client(chroot) as client:
        yield ClusterZnodes(client)


def test_brokers_that_know_later_epochs_than_zookeeper_are_led_all_the_same(
    servers_folder: RunFolder, zookeeper: ZooKeeper, zookeeper_chroot: str, start_kafka: StartKafka
) -> None:
    kafka = start_kafka()
    with (
        ControllerProcess(servers_folder, kafka.zookeeper_connect, name="lowered-controller") as controller,
        znodes_of(zookeeper, zookeeper_chroot) as znodes,
    ):
        serve_topic(znodes, "orders", [[1, 2, 3]])
        for _ in range(3):
            controller.restart_whole()  # each raises the epoch, and rewrites no partition's state
        known = int(znodes.client.get("/controller_epoch")[0])
        for broker in kafka.brokers.values():
            wait_until_logged(broker.process, f"epoch {known} with correlation id")  # of an UpdateMetadata
        controller.kill(ends_session=False)
        znodes.client.set("/controller_epoch", b"1")
        controller.restart_whole()

        kafka.broker(1).kill()
        wait_until_led(znodes, "orders", 2)
        acknowledge_some(kafka, "orders")
        serve_topic(znodes, "later", [[2, 3]])
        acknowledge_some(kafka, "later")
        assert known <= int(znodes.client.get("/controller_epoch")[0])
        wait_until_metric(controller, "kontroller_brokers_not_obeying", 0)
        kafka.broker(1).start()
        wait_until_served(znodes, "orders")


def test_a_restored_backup_is_served_and_logs_of_lost_topics_stand_in_nobody_s_way(servers_folder: RunFolder) -> None:
    """As in the runbook: everything stops, ZooKeeper gets the older copy, brokers start, then the controller."""
    with (
        ZooKeeper(servers_folder, name="restored-zookeeper") as zookeeper,
        KafkaCluster(servers_folder, zookeeper, brokers=3, chroot="/restored") as kafka,
        ControllerProcess(servers_folder, kafka.zookeeper_connect, name="restored-controller") as controller,
    ):
        version_2 = zookeeper.data_folder / "version-2"
        with znodes_of(zookeeper, "/restored") as znodes:
            serve_topic(znodes, "orders", [[1, 2, 3]], {"min.insync.replicas": "2"})
            acknowledged = acknowledge_some(kafka, "orders")
            shutil.copytree(version_2, zookeeper.data_folder / "backup")
            serve_topic(znodes, "since", [[1, 2]])
            controller.restart_whole()

        controller.stop()
        for broker in kafka.brokers.values():
            broker.stop()
        zookeeper.stop()
        shutil.rmtree(version_2)
        shutil.copytree(zookeeper.data_folder / "backup", version_2)
        zookeeper.start()
        with znodes_of(zookeeper, "/restored") as znodes:
            assert znodes.client.get_children("/brokers/topics") == ["orders"]
            znodes.client.delete("/kontroller", recursive=True)
            for broker in kafka.brokers.values():
                broker.start()
            controller.start()
            wait_until_served(znodes, "orders")
            wait_until_known(kafka, "orders")
            assert find_lost(acknowledged.stop().acknowledged, read_back(kafka.bootstrap_servers, "orders")) == []

            # Broker 1 has a log of the topic of that name that the backup does not know, and refuses to lead.
            znodes.create_topic("since", [[1, 3]])
            wait_until_led(znodes, "since", 3)
            acknowledge_some(kafka, "since")
            assert znodes.isr("since", 0) == [3]
            assert controller.metric("kontroller_offline_replicas") == 1
            wait_until_logged(controller.process, "inconsistent_topic_id")

            # The runbook's cure.
            broker = kafka.broker(1)
            broker.stop()
            shutil.move(broker.log_folder / "since-0", servers_folder.data("moved-out"))
            broker.start()
            wait_until_served(znodes, "since")
            assert controller.metric("kontroller_offline_replicas") == 0


def test_a_partition_whose_state_somebody_deleted_is_led_again(
    servers_folder: RunFolder, zookeeper: ZooKeeper, zookeeper_chroot: str, start_kafka: StartKafka
) -> None:
    """Brokers ignore leader epochs and partition epochs that are not above those that they know."""
    kafka = start_kafka()
    with (
        ControllerProcess(servers_folder, kafka.zookeeper_connect, name="deleted-state-controller"),
        znodes_of(zookeeper, zookeeper_chroot) as znodes,
    ):
        serve_topic(znodes, "orders", [[1, 2, 3]])
        for broker in (1, 2):
            kafka.broker(broker).restart()
            wait_until_served(znodes, "orders")
        before = znodes.state("orders", 0)
        znodes.client.delete("/brokers/topics/orders/partitions/0/state")
        kafka.broker(before["leader"]).kill()
        wait_until_led(znodes, "orders", *(kafka.brokers.keys() - {before["leader"]}))
        assert znodes.state("orders", 0)["leader_epoch"] > before["leader_epoch"]
        acknowledge_some(kafka, "orders")
        kafka.broker(before["leader"]).start()
        wait_until_served(znodes, "orders")
        acknowledge_some(kafka, "orders")


def test_a_leader_that_refuses_an_epoch_that_was_set_back_is_sent_a_later_one_and_serves_again(
    servers_folder: RunFolder, zookeeper: ZooKeeper, zookeeper_chroot: str, start_kafka: StartKafka
) -> None:
    """It ignores every LeaderAndIsr before that, so it waits for a dead replica at each message."""
    kafka = start_kafka(properties={"replica.lag.time.max.ms": 5_000})
    with (
        ControllerProcess(servers_folder, kafka.zookeeper_connect, name="old-state-controller") as controller,
        znodes_of(zookeeper, zookeeper_chroot) as znodes,
    ):
        serve_topic(znodes, "orders", [[1, 2, 3]])
        for broker in (1, 2):
            kafka.broker(broker).restart()  # another leader each time, under a later epoch
            wait_until_served(znodes, "orders")
        first = acknowledge_some(kafka, "orders")
        before = znodes.state("orders", 0)
        controller.kill(ends_session=False)
        path = "/brokers/topics/orders/partitions/0/state"
        znodes.client.set(path, json.dumps({**before, "leader_epoch": 0}).encode())
        controller.restart_whole()

        dead = kafka.broker(min(kafka.brokers.keys() - {before["leader"]}))
        dead.kill()
        with AckedProducer(kafka.bootstrap_servers, "orders") as producer:
            wait_until_logged(controller.process, "broker has later epochs than ZooKeeper")
            wait_until_logged(controller.process, "leader epochs raised")
            wait_until_acknowledged(producer)
        assert znodes.leader("orders", 0) == before["leader"]
        assert znodes.state("orders", 0)["leader_epoch"] > before["leader_epoch"]
        wait_until_metric(controller, "kontroller_brokers_not_obeying", 0)
        dead.start()
        wait_until_served(znodes, "orders")
        acknowledged = [*first.stop().acknowledged, *producer.stop().acknowledged]
        assert find_lost(acknowledged, read_back(kafka.bootstrap_servers, "orders")) == []

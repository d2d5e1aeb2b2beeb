"""Unmodified brokers of older releases of Kafka under our controller, each with its own inter-broker protocol.

Also the upgrade from the oldest to the newest, under load with acks=all; every acknowledged message is read back.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from kio.schema.api_versions.v3 import ApiVersionsRequest as ApiVersionsRequest3
from kio.schema.api_versions.v4 import ApiVersionsRequest as ApiVersionsRequest4

from controller_core.client.admin_client import BlockingAdminClient
from devcluster.building.java import KAFKA_VERSION, OLDER_VERSIONS
from devcluster.clients.requests import send_request
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess, run_command
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from devcluster.waiting.under_load import nothing_lost

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]

TOPIC = "orders"
PARTITIONS = range(3)
OLDEST = OLDER_VERSIONS[0]
PRODUCE = 0
PROPERTIES = {
    "min.insync.replicas": 2,
    "controlled.shutdown.retry.backoff.ms": 100,  # brokers that do not find our controller give up soon
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """A cluster, our controller, and the state of the topic in ZooKeeper."""

    kafka: KafkaCluster
    controller: ControllerProcess
    znodes: ClusterZnodes

    def isrs(self) -> list[set[int]]:
        return [set(self.znodes.isr(TOPIC, partition)) for partition in PARTITIONS]

    def leaders(self) -> set[int]:
        return {self.znodes.leader(TOPIC, partition) for partition in PARTITIONS}

    def wait_for_all(self) -> None:
        """Wait until all replicas are in sync."""
        wait_until(lambda: all(isr == {1, 2, 3} for isr in self.isrs()), "all replicas are in sync")


@contextmanager
def ours(folder: RunFolder, zookeeper: ZooKeeper, name: str, version: str, **properties: object) -> Iterator[Ours]:
    with (
        KafkaCluster(
            folder, zookeeper, chroot=f"/{name}", version=version, properties={**PROPERTIES, **properties}
        ) as kafka,
        ControllerProcess(folder, kafka.zookeeper_connect, name=f"{name}-controller") as controller,
        open_client(kafka.zookeeper_connect) as client,
    ):
        yield Ours(kafka=kafka, controller=controller, znodes=ClusterZnodes(client))


def create(cluster: Ours) -> None:
    """Create the topic by a request to our controller."""
    with BlockingAdminClient({"bootstrap.servers": cluster.controller.address}) as admin:
        admin.create_topic(TOPIC, len(PARTITIONS), 3)
    cluster.wait_for_all()


def newest_produce(address: str, asked_in: Any) -> int:
    """Return the newest version of Produce in the answer to an ApiVersions of some version."""
    host, _, port = address.partition(":")
    answer = send_request((host, int(port)), asked_in(client_software_name="tester", client_software_version="1"))
    return next(int(api.max_version) for api in answer.api_keys if api.api_key == PRODUCE)


@pytest.mark.parametrize("version", OLDER_VERSIONS)
def test_brokers_of_an_older_release_lead_follow_die_and_return(
    servers_folder: RunFolder, zookeeper: ZooKeeper, version: str
) -> None:
    with ours(servers_folder, zookeeper, f"of-{version.replace('.', '-')}", version) as cluster:
        create(cluster)
        of_brokers = newest_produce(cluster.kafka.broker(1).address, ApiVersionsRequest3)
        assert newest_produce(cluster.controller.address, ApiVersionsRequest4) == of_brokers, (
            "also a new client is told so"
        )
        with nothing_lost(cluster.kafka.bootstrap_servers, TOPIC):
            cluster.kafka.broker(2).kill()
            wait_until(lambda: 2 not in cluster.leaders(), "others lead")
            wait_until(lambda: all(2 not in isr for isr in cluster.isrs()), "the ISRs shrink")
            cluster.kafka.broker(2).start()
            cluster.wait_for_all()
            cluster.controller.kill(ends_session=False)
            cluster.controller.start()
            drained = run_command("drain", "--bootstrap-server", cluster.kafka.bootstrap_servers, "--broker-id", "1")
            assert drained.returncode == 0, drained.stdout + drained.stderr
            assert 1 not in cluster.leaders(), "it hands over while it runs, also who would not find us when it stops"
            cluster.kafka.broker(1).restart()
            cluster.wait_for_all()
        assert "up to version" not in cluster.controller.process.log_path.read_text(errors="replace")


def test_a_cluster_goes_from_the_oldest_release_to_the_newest_broker_by_broker(
    servers_folder: RunFolder, zookeeper: ZooKeeper
) -> None:
    """First the programs are upgraded, then the inter-broker protocol, as in Kafka's own upgrade."""
    old, new = ".".join(OLDEST.split(".")[:2]), ".".join(KAFKA_VERSION.split(".")[:2])
    with ours(servers_folder, zookeeper, "rolling", OLDEST, **{"inter.broker.protocol.version": old}) as cluster:
        create(cluster)
        with nothing_lost(cluster.kafka.bootstrap_servers, TOPIC):
            for broker in cluster.kafka.brokers.values():
                broker.upgrade(KAFKA_VERSION)
                cluster.wait_for_all()
            for broker in cluster.kafka.brokers.values():
                broker.restart({"inter.broker.protocol.version": new})
                cluster.wait_for_all()

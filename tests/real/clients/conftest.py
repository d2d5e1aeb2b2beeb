"""Three unmodified brokers under our controller, for clients that take it for one of them."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, connected_client
from devcluster.running.processes import wait_until


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedCluster:
    """The brokers, our controller, and their znodes."""

    kafka: KafkaCluster
    controller: ControllerProcess
    znodes: ClusterZnodes

    @property
    def controller_address(self) -> tuple[str, int]:
        return "127.0.0.1", self.controller.port

    def broker_address(self, broker_id: int) -> tuple[str, int]:
        return "127.0.0.1", self.kafka.broker(broker_id).port

    def serve_topic(self, topic: str, replicas: list[list[int]]) -> None:
        """Creates a topic, unless it is there, and waits until every replica is in sync."""
        if self.znodes.client.exists(f"/brokers/topics/{topic}") is None:
            self.znodes.create_topic(topic, replicas)
        wait_until(
            lambda: self.znodes.is_served(topic, range(len(replicas))),
            f"every replica of {topic} is in sync",
            deadline_s=90,
        )


@pytest.fixture(scope="session")
def served(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[tuple[KafkaCluster, ControllerProcess]]:
    with (
        KafkaCluster(
            servers_folder,
            zookeeper,
            brokers=3,
            chroot="/clients",
            racks=["a", "b", "c"],
            properties={"auto.create.topics.enable": "true", "num.partitions": 2},
        ) as kafka,
        ControllerProcess(servers_folder, kafka.zookeeper_connect, name="clients-controller") as controller,
    ):
        yield kafka, controller


@pytest.fixture
def served_cluster(served: tuple[KafkaCluster, ControllerProcess]) -> Iterator[ServedCluster]:
    """All brokers alive and our controller in its role, whatever the last test left."""
    kafka, controller = served
    kafka.start()
    with connected_client(kafka.zookeeper_connect) as client:
        znodes = ClusterZnodes(client)
        wait_until(lambda: znodes.controller() == controller.controller_id, "our controller", deadline_s=60)
        yield ServedCluster(kafka=kafka, controller=controller, znodes=znodes)
    log = controller.process.log_path.read_text(errors="replace")
    assert "unexpected error" not in log, "the controller met an error that it did not understand"
    assert "could not be answered" not in log, "the controller's listener met an error that it did not understand"

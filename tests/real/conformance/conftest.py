"""Two equal clusters, one led by Kafka's own controller and one by ours: what holds for both is what Kafka does.

A test that takes `cluster` runs on each of them. What only ours can show (its logs, its listener) belongs to
`tests/real/controller`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from devcluster.kafka import KafkaCluster
from devcluster.kontroller import ControllerProcess
from devcluster.processes import wait_until
from devcluster.run_folder import RunFolder
from devcluster.znodes import ClusterZnodes
from devcluster.zookeeper import ZooKeeper, connected_client

BROKERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceCluster:
    """Three unmodified brokers and whoever is their controller."""

    kafka: KafkaCluster
    znodes: ClusterZnodes
    own_controller: ControllerProcess | None
    """Our controller; None where Kafka's own leads."""

    @property
    def is_kafkas_own(self) -> bool:
        return self.own_controller is None

    @property
    def controller_address(self) -> tuple[str, int]:
        """Where requests to the controller go: the broker that is it, or our process."""
        if self.own_controller is not None:
            return "127.0.0.1", self.own_controller.port
        controller = self.znodes.controller()
        assert controller is not None, "there is no controller"
        return "127.0.0.1", self.kafka.broker(controller).port

    @property
    def bootstrap(self) -> str:
        """The address of the controller, for clients that bootstrap there."""
        host, port = self.controller_address
        return f"{host}:{port}"

    def wait(self, condition: Callable[[], bool], what: str, deadline_s: float = 60) -> None:
        wait_until(condition, what, deadline_s=deadline_s)

    def serve_topic(self, topic: str, replicas: list[list[int]], config: dict[str, str] | None = None) -> None:
        """Creates a topic through ZooKeeper and waits until every replica is in sync."""
        self.znodes.create_topic(topic, replicas, config)
        self.wait(lambda: self.znodes.is_served(topic, range(len(replicas))), f"every replica of {topic} is in sync")


@pytest.fixture(scope="session")
def kafkas_own(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[KafkaCluster]:
    with KafkaCluster(servers_folder, zookeeper, brokers=BROKERS, chroot="/kafkas-own") as kafka:
        yield kafka


@pytest.fixture(scope="session")
def ours(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[tuple[KafkaCluster, ControllerProcess]]:
    with (
        KafkaCluster(servers_folder, zookeeper, brokers=BROKERS, chroot="/ours") as kafka,
        ControllerProcess(servers_folder, kafka.zookeeper_connect, name="conforming-controller") as controller,
    ):
        yield kafka, controller


@pytest.fixture(params=["kafka", "kontroller"])
def cluster(request: pytest.FixtureRequest) -> Iterator[ConformanceCluster]:
    """The cluster of one of the two controllers, all brokers alive and the controller in its role."""
    controller: ControllerProcess | None = None
    if request.param == "kafka":
        kafka = request.getfixturevalue("kafkas_own")
    else:
        kafka, controller = request.getfixturevalue("ours")
    kafka.start()
    with connected_client(kafka.zookeeper_connect) as client:
        znodes = ClusterZnodes(client)
        wanted = {controller.controller_id} if controller else set(kafka.brokers)
        wait_until(lambda: znodes.controller() in wanted, "the cluster has its controller", deadline_s=60)
        yield ConformanceCluster(kafka=kafka, znodes=znodes, own_controller=controller)

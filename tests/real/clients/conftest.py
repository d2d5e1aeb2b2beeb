"""Three unmodified brokers under our controller, which clients take for one of the brokers."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from kio.static.protocol import RequestPayload

from devcluster.building.java import KAFKA_VERSION, OLDER_VERSIONS
from devcluster.clients.identity import NOBODY, Identity
from devcluster.clients.requests import send_request
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.listeners import ONE_FOR_ALL
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.waiting.health_gate import HealthGate
from devcluster.waiting.vocabulary import wait_until_served
from tests.real.conformance.set_ups import SET_UPS, release_of, skip_on_older_releases


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedCluster:
    """A cluster of stock brokers and our controller."""

    kafka: KafkaCluster
    controller: ControllerProcess
    znodes: ClusterZnodes
    identity: Identity = NOBODY
    """The identity of clients at every node."""
    passes_on: bool = True
    """True if the controller relays requests to brokers. It does not for authenticated clients, or with ACLs."""
    release: str = KAFKA_VERSION
    """The release of the brokers."""

    @property
    def controller_address(self) -> tuple[str, int]:
        return "127.0.0.1", self.controller.port

    def broker_address(self, broker_id: int) -> tuple[str, int]:
        return "127.0.0.1", self.kafka.broker(broker_id).port

    def ask(self, address: tuple[str, int], request: RequestPayload) -> Any:
        """Return the answer of a node."""
        return send_request(address, request, identity=self.identity)

    def serve_topic(self, topic: str, replicas: list[list[int]]) -> None:
        """Create a topic unless it exists, and wait until every replica is in sync."""
        if self.znodes.client.exists(f"/brokers/topics/{topic}") is None:
            self.znodes.create_topic(topic, replicas)
        wait_until_served(self.znodes, topic, range(len(replicas)))


_PROPERTIES = {
    "auto.create.topics.enable": "true",
    "num.partitions": 2,
    "default.replication.factor": 3,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
}
_RACKS = ("a", "b", "c")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip_on_older_releases(items, "served")


_OTHER = pytest.mark.nightly("set-ups and older brokers change what the controller relays, not how")
_SET_UPS = ["PLAINTEXT", *(pytest.param(name, marks=_OTHER) for name in (*SET_UPS, *OLDER_VERSIONS))]


@pytest.fixture(scope="session", params=_SET_UPS)
def served(request: pytest.FixtureRequest, servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[ServedCluster]:
    set_up = SET_UPS.get(request.param)
    with ExitStack() as stack:
        if set_up is None:
            kafka = KafkaCluster(
                servers_folder,
                zookeeper,
                brokers=3,
                chroot=f"/clients-{request.param}",
                racks=_RACKS,
                properties=_PROPERTIES,
                version=release_of(request.param),
            )
            settings, identity, listeners = {}, NOBODY, ONE_FOR_ALL
        else:
            name, listeners = f"clients-{request.param}", set_up.listeners
            kafka = secured = set_up.kafka(servers_folder, zookeeper, name=name, properties=_PROPERTIES)
            for number, rack in enumerate(_RACKS, start=1):
                kafka.add_broker(number, rack=rack)
            set_up.allow(secured)
            settings, identity = {"properties": set_up.controllers_properties(secured)}, set_up.identity(secured)
        stack.enter_context(kafka)
        controller = ControllerProcess(
            servers_folder,
            kafka.zookeeper_connect,
            name=f"clients-controller-{request.param}",
            settings=settings,
            listeners=listeners,
        )
        stack.enter_context(controller)
        client = stack.enter_context(open_client(kafka.zookeeper_connect))
        yield ServedCluster(
            kafka=kafka,
            controller=controller,
            znodes=ClusterZnodes(client),
            identity=identity,
            passes_on=set_up is None,
            release=release_of(request.param),
        )


@pytest.fixture
def served_cluster(served: ServedCluster) -> Iterator[ServedCluster]:
    """All brokers alive and our controller in its role."""
    gate = HealthGate(kafka=served.kafka, znodes=served.znodes, controller=served.controller, identity=served.identity)
    gate.open()
    yield served
    gate.close()
    log = served.controller.process.log_path.read_text(errors="replace")
    assert "unexpected error" not in log, "the controller met an error that it did not understand"
    assert "could not be answered" not in log, "the controller's listener met an error that it did not understand"

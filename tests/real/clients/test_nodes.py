"""Tools that count the nodes of a cluster, ask each of them, or place replicas on all, as six client libraries do it.

The cluster's brokers have a listener for each other, at which the controller is a node, and one for clients, from which
it is hidden.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

import pytest

from controller_core.client.admin_client import AdminClient
from controller_core.client.errors import Unreachable
from controller_core.wire.requests.metadata import NO_TOPICS
from devcluster.building.java import KAFKA_VERSION, OLDER_VERSIONS
from devcluster.clients.requests import send_request
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.listeners import CLIENTS_APART
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.nodes import Library, Report, use
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import serve_topic
from tests.real.clients.python_nodes import use_kafka_python, use_librdkafka

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

CONTROLLER: Final = 1000
OLDER: Final = pytest.mark.nightly("the oldest brokers leave nodes out of metadata by the same rule")
LISTED, HIDDEN = "INTERNAL", "CLIENT"
CLIENTS: Final[dict[str, Callable[..., Report]]] = {
    **{library.name.lower(): partial(use, library) for library in Library},
    "kafka-python": use_kafka_python,
    "librdkafka": use_librdkafka,
}
HOLDS_NO_REPLICAS: Final = "1000 is the controller, which holds no replicas: name a broker"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApartCluster:
    """A cluster whose controller is hidden from clients."""

    kafka: KafkaCluster
    znodes: ClusterZnodes

    def address(self, listener: str) -> str:
        """Return the address of broker 1 on a listener."""
        return f"127.0.0.1:{self.kafka.broker(1).ports[listener]}"

    def nodes(self, listener: str) -> list[int]:
        """Return the nodes in the metadata of broker 1 on a listener."""
        answer = send_request(("127.0.0.1", self.kafka.broker(1).ports[listener]), NO_TOPICS)
        return sorted(int(node.node_id) for node in answer.brokers)

    def wait_for_nodes(self, *brokers: int) -> None:
        """Wait until clients of each listener see these brokers, and only those of one the controller."""
        seen = ([*brokers, CONTROLLER], [*brokers])
        wait_until(lambda: (self.nodes(LISTED), self.nodes(HIDDEN)) == seen, "clients see the nodes")


@pytest.fixture(scope="module", params=[KAFKA_VERSION, pytest.param(OLDER_VERSIONS[0], marks=OLDER)])
def apart(request: pytest.FixtureRequest, servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[ApartCluster]:
    with ExitStack() as stack:
        kafka = KafkaCluster(
            servers_folder,
            zookeeper,
            brokers=3,
            chroot=f"/apart-{request.param}",
            listeners=CLIENTS_APART,
            version=request.param,
        )
        stack.enter_context(kafka)
        settings = {"client_listener": None, "hide_from": [HIDDEN]}
        controller = ControllerProcess(
            servers_folder,
            kafka.zookeeper_connect,
            name=f"apart-controller-{request.param}",
            settings=settings,
            listeners=CLIENTS_APART,
            one_port=True,
        )
        stack.enter_context(controller)
        client = stack.enter_context(open_client(kafka.zookeeper_connect))
        cluster = ApartCluster(kafka=kafka, znodes=ClusterZnodes(client))
        cluster.wait_for_nodes(1, 2, 3)
        serve_topic(cluster.znodes, "walked", [[1]])
        yield cluster


@pytest.fixture
def two_brokers(apart: ApartCluster) -> Iterator[ApartCluster]:
    """The cluster without its broker 3."""
    apart.kafka.broker(3).kill()
    apart.wait_for_nodes(1, 2)
    yield apart
    apart.kafka.broker(3).start()
    apart.wait_for_nodes(1, 2, 3)


@pytest.mark.filterwarnings("ignore:alter_configs has been deprecated:DeprecationWarning")
@pytest.mark.parametrize("listener", [LISTED, HIDDEN])
@pytest.mark.parametrize("library", CLIENTS)
def test_every_node_answers_every_question_as_a_broker_does(apart: ApartCluster, library: str, listener: str) -> None:
    walked = CLIENTS[library]("walk", apart.address(listener))
    assert list(walked.nodes) == [1, 2, 3, *([CONTROLLER] if listener == LISTED else [])]
    of_cluster = {what: error for what, error in walked.errors(-1).items() if "does not support" not in error}
    assert not any(of_cluster.values()), of_cluster
    by_brokers = [walked.errors(broker) for broker in (1, 2, 3)]
    for node in walked.nodes:
        answered = walked.errors(node)
        assert answered.keys() == by_brokers[0].keys()
        odd = {
            what: error
            for what, error in answered.items()
            if error and (all(not errors[what] for errors in by_brokers) or "closed" in error or "EOF" in error)
        }
        assert odd == {}, f"{library} at node {node}"


def test_an_alert_on_the_number_of_brokers_sees_a_dead_one_where_the_controller_is_hidden(
    two_brokers: ApartCluster,
) -> None:
    """kafka_exporter counts the nodes that sarama lists."""
    assert len(CLIENTS["sarama"]("count", two_brokers.address(LISTED)).nodes) == 3
    assert len(CLIENTS["sarama"]("count", two_brokers.address(HIDDEN)).nodes) == 2


@pytest.mark.parametrize("library", CLIENTS)
def test_a_service_with_a_replica_for_each_node_needs_its_topic_to_be_there(
    two_brokers: ApartCluster, library: str
) -> None:
    """If the controller is a node, the service asks for one replica too many; if it is hidden, nobody creates topics."""
    listed = CLIENTS[library]("create", two_brokers.address(LISTED), f"service-{library}")
    assert len(listed.nodes) == 3
    assert listed.errors(-1)["CreateTopics"], "three replicas on two brokers"
    hidden = CLIENTS[library]("create", two_brokers.address(HIDDEN), f"service-{library}")
    assert list(hidden.nodes) == [1, 2]
    assert hidden.errors(-1)["CreateTopics"], "there is no controller to ask"
    assert two_brokers.znodes.read(f"/brokers/topics/service-{library}") is None
    serve_topic(two_brokers.znodes, f"service-{library}", [[1, 2]])


def test_terraform_raises_replicas_to_all_nodes(apart: ApartCluster) -> None:
    listed = CLIENTS["sarama"]("spread", apart.address(LISTED), "raised")
    errors = listed.errors(-1)
    assert (errors["CreateTopics"], errors["Produce"]) == ("", "")
    assert "Replica assignment is invalid" in errors["AlterPartitionReassignments"], "sarama leaves the message out"
    hidden = CLIENTS["sarama"]("spread", apart.address(HIDDEN), "raised")
    assert list(hidden.nodes) == [1, 2, 3]
    assert hidden.errors(-1)["Produce"] == "", "clients that only write need no controller"


def test_kminions_probe_of_each_node(apart: ApartCluster) -> None:
    listed = CLIENTS["franz_go"]("spread", apart.address(LISTED), "probe")
    assert HOLDS_NO_REPLICAS in listed.errors(CONTROLLER)["move"]
    assert [listed.errors(broker)["move"] for broker in (1, 2, 3)] == ["", "", ""]
    # Its topic is made before it starts, with a partition for each broker.
    serve_topic(apart.znodes, "probe-of-brokers", [[1], [2], [3]])
    hidden = CLIENTS["franz_go"]("spread", apart.address(HIDDEN), "probe-of-brokers")
    assert [hidden.errors(broker)["Produce"] for broker in (1, 2, 3)] == ["", "", ""]


async def test_our_own_client_says_where_the_controller_is_found(apart: ApartCluster) -> None:
    admin = AdminClient({"bootstrap.servers": apart.address(HIDDEN)})
    with pytest.raises(Unreachable, match=r"1000 is the controller, and does not list it.*inter-broker listener"):
        await admin.create_topic("nowhere", 1, 1, timeout_ms=3000)
    await AdminClient({"bootstrap.servers": apart.address(LISTED)}).create_topic("somewhere", 1, 1)

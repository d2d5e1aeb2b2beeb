"""A controller or a broker that may open few files serves brokers, administrators and probes while strangers take all
they can, and finds ZooKeeper again."""

import socket
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from kio.schema.create_topics.v5.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v5.response import CreateTopicsResponse
from kio.schema.metadata.v9.request import MetadataRequest
from kio.schema.metadata.v9.response import MetadataResponse
from kio.schema.types import BrokerId as KioBrokerId
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32, i32Timedelta, i64
from kio.static.protocol import RequestPayload

from controller_core.wire.codecs.frames import decode_response, encode_request
from controller_core.wire.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse, ErrorCode
from devcluster.clients.requests import answer_to
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.places import Place
from devcluster.running.processes import wait_until
from devcluster.running.ways import Way
from devcluster.waiting.vocabulary import serve_topic
from tests.real.ports.http_clients import HttpPort, assert_little_is_taken
from tests.real.ports.strangers import SOON_S, connect_strangers

DESCRIPTORS = 256
FEW_DESCRIPTORS = Place(entering=["prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}"])
BROKER = 1
ADMINISTRATOR = "127.0.0.9"


@pytest.fixture
def way(zookeeper: ZooKeeper) -> Iterator[Way]:
    """The way of controller and broker to ZooKeeper."""
    way = Way(zookeeper.port)
    way.start()
    yield way
    way.close()


@pytest.fixture
def controller(servers_folder: RunFolder, zookeeper_chroot: str, way: Way) -> Iterator[ControllerProcess]:
    settings = {"admin_cidr": [f"{ADMINISTRATOR}/32"], "zookeeper_session_timeout_ms": 30_000}
    connect = way.connect + zookeeper_chroot
    with ControllerProcess(
        servers_folder, connect, name="few-descriptors", place=FEW_DESCRIPTORS, settings=settings
    ) as process:
        yield process


@pytest.fixture
def broker(
    servers_folder: RunFolder, zookeeper_chroot: str, way: Way, controller: ControllerProcess
) -> Iterator[PythonBroker]:
    name = f"few{zookeeper_chroot.replace('/', '-')}-broker"
    connect = way.connect + zookeeper_chroot
    with PythonBroker(servers_folder, connect, BROKER, name=name, place=FEW_DESCRIPTORS) as process:
        yield process


def ask(
    process: ControllerProcess | PythonBroker, request: RequestPayload, response_type: type[Any], address: str
) -> Any:
    """Return the answer of a process to a request from an address."""
    with socket.create_connection(("127.0.0.1", process.port), SOON_S, source_address=(address, 0)) as connection:
        return decode_response(response_type, answer_to(connection, encode_request(request, 1, "test")))


def ask_for_producer_ids(controller: ControllerProcess, epoch: int) -> ErrorCode:
    """Ask as the broker for what only registered brokers get."""
    request = AllocateProducerIdsRequest(broker_id=KioBrokerId(BROKER), broker_epoch=i64(epoch))
    return ErrorCode(ask(controller, request, AllocateProducerIdsResponse, "127.0.0.1").error_code)


def create_topic(controller: ControllerProcess, name: str) -> ErrorCode:
    """Create a topic as an administrator."""
    topic = CreatableTopic(
        name=TopicName(name), num_partitions=i32(1), replication_factor=i16(1), assignments=(), configs=()
    )
    timeout = i32Timedelta.parse(timedelta(seconds=SOON_S))
    request = CreateTopicsRequest(topics=(topic,), timeout=timeout, validate_only=False)
    (result,) = ask(controller, request, CreateTopicsResponse, ADMINISTRATOR).topics
    return ErrorCode(result.error_code)


def knows_topics(broker: PythonBroker, count: int) -> bool:
    """Return True if the broker tells another broker about this number of topics."""
    request = MetadataRequest(
        topics=None,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    return len(ask(broker, request, MetadataResponse, "127.0.0.1").topics) == count


def test_strangers_at_the_http_port_keep_nobody_out(
    zookeeper_connect: str, controller: ControllerProcess, broker: PythonBroker
) -> None:
    port = HttpPort(number=controller.metrics_port, process=controller.process)
    with open_client(zookeeper_connect) as client, assert_little_is_taken(port):
        epoch = client.exists(f"/brokers/ids/{BROKER}").czxid
        with port.send_halves(2000):
            for number in range(3):
                assert port.probe() == 200
                assert ask_for_producer_ids(controller, epoch) is ErrorCode.none
                assert create_topic(controller, f"topic-{number}") is ErrorCode.none


def test_strangers_at_all_ports_leave_descriptors_for_zookeeper_brokers_and_probes(
    zookeeper_connect: str, controller: ControllerProcess, broker: PythonBroker, way: Way
) -> None:
    port = HttpPort(number=controller.metrics_port, process=controller.process)
    with open_client(zookeeper_connect) as client, assert_little_is_taken(port) as check:
        znodes = ClusterZnodes(client)
        epoch = client.exists(f"/brokers/ids/{BROKER}").czxid
        with (
            port.send_halves(2000),
            connect_strangers(controller.port, 2000, sent=b"\0\0"),
        ):
            for number in range(3):
                assert port.probe() == 200
                assert ask_for_producer_ids(controller, epoch) is ErrorCode.none
                assert port.count_descriptors() < DESCRIPTORS
                way.cut()
                serve_topic(znodes, f"topic-{number}", [[BROKER]])
                check()


def test_strangers_at_all_ports_of_a_broker_leave_descriptors_for_zookeeper_brokers_and_probes(
    zookeeper_connect: str, broker: PythonBroker, way: Way
) -> None:
    port = HttpPort(number=broker.metrics_port, process=broker.process)
    with open_client(zookeeper_connect) as client, assert_little_is_taken(port) as check:
        znodes = ClusterZnodes(client)
        with port.send_halves(2000), connect_strangers(broker.port, 2000, sent=b"\0\0"):
            for number in range(3):
                assert port.probe() == 200
                assert port.count_descriptors() < DESCRIPTORS
                way.cut()
                serve_topic(znodes, f"topic-{number}", [[BROKER]])
                wait_until(partial(knows_topics, broker, number + 1), "the broker knows the topic")
                check()

"""A broker of ours with a listener for brokers and one for clients, like the stock ones beside it.

It has its own cluster, because that of the other tests has one listener for all.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka.admin import AdminClient

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.listeners import CLIENTS_APART
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import wait_until_acknowledged, wait_until_ended, wait_until_led
from tests.real.replica_broker.conftest import CONTROLLERS
from tests.real.replica_broker.mixed import OURS, MixedCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@pytest.fixture(scope="module", params=CONTROLLERS)
def apart(request: pytest.FixtureRequest, servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[MixedCluster]:
    name = f"apart-{request.param}"
    with (
        KafkaCluster(servers_folder, zookeeper, brokers=2, chroot=f"/{name}", listeners=CLIENTS_APART) as kafka,
        open_client(kafka.zookeeper_connect) as client,
        ExitStack() as stack,
    ):
        own = None
        if request.param == "kontroller":
            own = ControllerProcess(
                servers_folder, kafka.zookeeper_connect, name=f"{name}-controller", listeners=CLIENTS_APART
            )
            stack.enter_context(own)
        ours = PythonBroker(servers_folder, kafka.zookeeper_connect, OURS, name=f"{name}-ours", listeners=CLIENTS_APART)
        stack.enter_context(ours)
        yield MixedCluster(kafka=kafka, ours=ours, znodes=ClusterZnodes(client), own_controller=own)


def test_ours_registers_both_listeners_as_a_stock_broker_does(apart: MixedCluster) -> None:
    stock, ours = (apart.znodes.read(f"/brokers/ids/{broker}") for broker in (1, OURS))
    assert ours["endpoints"] == [f"{name}://127.0.0.1:{apart.ours.ports[name]}" for name in ("INTERNAL", "CLIENT")]
    assert ours["listener_security_protocol_map"] == stock["listener_security_protocol_map"]
    assert (ours["host"], ours["port"]) == ("127.0.0.1", apart.ours.ports["INTERNAL"])
    assert stock["port"] == apart.kafka.broker(1).ports["INTERNAL"]


def test_clients_of_each_listener_are_told_the_addresses_on_it(apart: MixedCluster) -> None:
    stock = {broker: apart.kafka.broker(broker).ports for broker in (1, 2)}
    for name in ("INTERNAL", "CLIENT"):
        client = AdminClient({"bootstrap.servers": f"127.0.0.1:{apart.ours.ports[name]}"})
        told = {broker.id: broker.port for broker in client.list_topics(timeout=30).brokers.values()}
        expected = {**{broker: ports[name] for broker, ports in stock.items()}, OURS: apart.ours.ports[name]}
        assert told.items() >= expected.items(), json.dumps(told)


def test_ours_leads_and_follows_by_the_listener_between_brokers(apart: MixedCluster) -> None:
    apart.serve_topic("both-ways", [[3, 1], [1, 3], [2, 3]])
    with nothing_lost(apart.ours.address, "both-ways") as producer:
        wait_until_acknowledged(producer, 300)
    assert producer.stop().errors == []
    assert {one.partition for one in producer.stop().acknowledged} == {0, 1, 2}


def test_ours_leaves_in_order_and_is_back(apart: MixedCluster) -> None:
    apart.serve_topic("moved", [[3, 1]])
    apart.ours.stop()
    wait_until_led(apart.znodes, "moved", 1)
    assert "this broker leads no partitions now" in apart.ours.log()
    apart.ours.start()
    apart.wait_until_served("moved")


def test_a_broker_without_the_others_listener_is_refused_in_words(
    apart: MixedCluster, servers_folder: RunFolder
) -> None:
    stranger = PythonBroker(servers_folder, apart.kafka.zookeeper_connect, 9, name="stranger")
    stranger.spawn()
    wait_until_ended(stranger.process)
    assert "no registered broker has a listener PLAINTEXT, only CLIENT, INTERNAL" in stranger.log()
    assert '"registered"' not in stranger.log()

"""Clients of brokers with logins: the journal's topic, a broker of our own, and the operator."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import pytest

from controller_core.wire.connections.broker_properties import SecuredBrokers
from controller_core.wire.connections.librdkafka import librdkafka_source
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.listeners import ListenerNames
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_kafka import ADMIN, PASSWORDS, SecuredKafka
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import serve_topic
from kontroller.history.sources.journal_http import JournalUnreadable
from kontroller.history.watching.journals.topic import TopicJournal
from tests.real.operator.operated import operate_namespace, run_operator

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

LISTENERS = ListenerNames(inter_broker="INTERNAL", clients="CLIENT", protocols={"INTERNAL": "SASL_SSL"})
OURS = 3


@pytest.fixture(scope="module")
def led_by_us(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[SecuredKafka]:
    """Brokers that log in at each other, and a controller that writes its journal to one of their topics."""
    with SecuredKafka(servers_folder, zookeeper, listeners=LISTENERS, name="beside") as kafka:
        kafka.start()
        settings = {
            "properties": str(kafka.write_properties(sasl_enabled_mechanisms="SCRAM-SHA-512")),
            "journal_topic": "journal",
            "journal_bootstrap_server": addresses(kafka),
        }
        with ControllerProcess(
            servers_folder, kafka.zookeeper_connect, name="beside-controller", settings=settings, listeners=LISTENERS
        ) as controller:
            with open_client(kafka.zookeeper_connect) as client:
                ClusterZnodes(client).create_topic("journal", [[1, 2]])
            yield kafka
            log = controller.process.log_path.read_text()
            assert not any(password in log for password in PASSWORDS.values())


@pytest.fixture
def znodes(led_by_us: SecuredKafka) -> Iterator[ClusterZnodes]:
    with open_client(led_by_us.zookeeper_connect) as client:
        yield ClusterZnodes(client)


async def test_the_journal_is_written_to_and_read_from_a_topic_of_brokers_that_want_a_login(
    led_by_us: SecuredKafka,
) -> None:
    right = led_by_us.write_properties("reader.properties").read_text()
    file = led_by_us.write_properties("reader.properties", sasl_mechanism_inter_broker_protocol="SCRAM-SHA-256")
    file.write_text(file.read_text().replace(PASSWORDS[ADMIN], "wrong one"))
    journal = TopicJournal("journal", addresses(led_by_us), librdkafka_source(SecuredBrokers(file)))
    async with asyncio.timeout(120):
        with pytest.raises(JournalUnreadable) as refused:
            await first_line(journal)
        assert "wrong one" not in str(refused.value)
        file.write_text(right)
        while True:
            with suppress(JournalUnreadable):
                assert b"cluster_id" in await first_line(journal)
                break
    await journal.close()


async def first_line(journal: TopicJournal) -> bytes:
    while True:
        if lines := (await journal.read()).lines:
            return lines[0]


def addresses(kafka: SecuredKafka) -> str:
    return ",".join(f"127.0.0.1:{broker.ports['INTERNAL']}" for broker in kafka.brokers.values())


def test_a_broker_of_our_own_follows_leads_and_leaves_where_everybody_wants_a_login(
    led_by_us: SecuredKafka, znodes: ClusterZnodes, servers_folder: RunFolder
) -> None:
    file = led_by_us.write_properties("ours.properties", sasl_enabled_mechanisms="SCRAM-SHA-512")
    settings = {"properties": str(file)}
    with PythonBroker(
        servers_folder, led_by_us.zookeeper_connect, OURS, name="beside-ours", settings=settings, listeners=LISTENERS
    ) as ours:
        serve_topic(znodes, "followed", [[1, OURS], [OURS, 1]])
        led_by_us.broker(1).restart()
        wait_until(
            lambda: all({1, OURS} == set(znodes.isr("followed", number)) for number in (0, 1)),
            "each is in sync with what the other leads, as the leader asked the controller for",
        )
        ours.stop()
        assert znodes.leader("followed", 1) == 1
        assert "this broker leads no partitions now" in ours.log(), "it had asked the controller to see to that"
        assert not any(password in ours.log() for password in PASSWORDS.values())


def test_the_operator_moves_partitions_by_the_login_of_the_file_and_shows_it_to_nobody_else(
    servers_folder: RunFolder, zookeeper: ZooKeeper, kubernetes_api: KubernetesCluster
) -> None:
    names = ListenerNames(inter_broker="INTERNAL", clients="INTERNAL", protocols={"INTERNAL": "SASL_SSL"})
    with SecuredKafka(servers_folder, zookeeper, listeners=names, name="operated", authorizes=True) as kafka:
        kafka.start()
        file = kafka.write_properties("operator.properties", zookeeper_connect=zookeeper.connect)
        with (
            open_client(kafka.zookeeper_connect) as client,
            operate_namespace(kubernetes_api, kafka.zookeeper_connect) as objects,
            run_operator(servers_folder, kubernetes_api, env={"KONTROLLER_PROPERTIES": str(file)}) as operator,
        ):
            znodes = ClusterZnodes(client)
            serve_topic(znodes, "moved", [[1]])
            there = {"zookeeper": {"connect": kafka.zookeeper_connect}}
            objects.apply("KafkaCluster", "demo", {**there, "bootstrapServers": "127.0.0.1:9"})
            objects.apply("PartitionReassignment", "moved", MOVE)
            message = "only brokers get the operator's login"
            wait_until(lambda: message in str(objects.status("PartitionReassignment", "moved")), "it is said")
            objects.apply("KafkaCluster", "demo", there)
            assert objects.wait_ready("PartitionReassignment", "moved")["status"]["phase"] == "Completed"
            assert znodes.read_assignment("moved", 0) == [2]
            assert not any(password in operator.log() for password in PASSWORDS.values())


MOVE = {"partitions": [{"topic": "moved", "partition": 0, "replicas": [2]}]}

"""A leader of ours that writes the ISR into ZooKeeper itself, as in seed 004.

It runs beside stock brokers that leave the ISR to the controller, and beside stock brokers that also write it, as
Kafka's did up to inter-broker protocol 2.6.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from devcluster.clients.load import AckedProducer
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from devcluster.running.servers import Server
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import (
    serve_topic,
    wait_until_acknowledged,
    wait_until_gone,
    wait_until_in_sync,
    wait_until_served,
)
from tests.real.conftest import StartKafka
from tests.real.replica_broker.conftest import CONTROLLERS

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]

OURS = 3
SESSION_MS = 30_000
SETTINGS = {"isr_writes": "zookeeper", "max_time_lag_ms": 2_000, "zookeeper_session_timeout_ms": SESSION_MS}
AS_OF_2_6 = {
    "inter.broker.protocol.version": "2.6",
    "replica.lag.time.max.ms": 2_000,
    "zookeeper.session.timeout.ms": SESSION_MS,
}
NOTIFICATIONS = "/isr_change_notification"


@contextmanager
def run_under_load(bootstrap: str, topic: str) -> Iterator[None]:
    """Produce messages all the time, because a replica of an idle partition never lags. The whole ISR follows at the
    beginning.
    """
    with AckedProducer(bootstrap, topic) as producer:
        wait_until_acknowledged(producer)
        yield


def test_a_stock_follower_leaves_the_isr_and_joins_it_by_the_leaders_own_writes(
    servers_folder: RunFolder, start_kafka: StartKafka
) -> None:
    kafka = start_kafka(brokers=2)
    settings = {"isr_writes": "zookeeper", "max_time_lag_ms": 2_000}
    with (
        PythonBroker(servers_folder, kafka.zookeeper_connect, OURS, name="writing", settings=settings) as ours,
        open_client(kafka.zookeeper_connect) as client,
    ):
        znodes = ClusterZnodes(client)
        serve_topic(znodes, "written", [[3, 1, 2]])
        slow, other = (1, 2) if znodes.controller() == 2 else (2, 1)
        with run_under_load(ours.address, "written"):
            # A session lasts longer than a follower may lag, so the leader removes it.
            kafka.broker(slow).pause()
            wait_until_in_sync(znodes, "written", other, 3)
            assert client.exists(f"/brokers/ids/{slow}") is not None
            kafka.broker(slow).resume()
            wait_until_served(znodes, "written")
        assert "Traceback" not in ours.log()


@dataclass(frozen=True, slots=True, kw_only=True)
class OldCluster:
    """Two stock brokers with inter-broker protocol 2.6, and ours; the controller is a stock one, or ours."""

    kafka: KafkaCluster
    ours: PythonBroker
    znodes: ClusterZnodes
    own_controller: ControllerProcess | None

    @property
    def follower(self) -> int:
        """The stock broker that is the controller, if there is one."""
        return self.znodes.controller() or 1 if self.own_controller is None else 1

    def servers(self) -> list[Server]:
        """Return the follower and the controller."""
        own = [] if self.own_controller is None else [self.own_controller]
        return [self.kafka.broker(self.follower), *own]

    @property
    def client(self) -> KazooClient:
        return self.znodes.client

    @property
    def bootstrap(self) -> str:
        return f"{self.kafka.bootstrap_servers},{self.ours.address}"

    def serve(self, *topics: str) -> None:
        for topic in topics:
            wait_until_served(self.znodes, topic, self.znodes.partitions(topic))

    def read_notifications(self) -> dict[str, Any]:
        """Return the notifications of changed ISRs, by topic, without other partitions in the same notification."""
        found = {}
        for name in self.client.get_children(NOTIFICATIONS):
            try:
                content = json.loads(self.client.get(f"{NOTIFICATIONS}/{name}")[0])
            except NoNodeError:
                continue
            for partition in content["partitions"]:
                found[partition["topic"]] = {**content, "partitions": [partition]}
        return found

    def read_state(self, topic: str) -> tuple[Any, int]:
        """Return the state of partition 0, with its leader replaced by L, and its version."""
        data, stat = self.client.get(f"/brokers/topics/{topic}/partitions/0/state")
        state = json.loads(data)
        leader = state["leader"]
        return {**state, "leader": "L", "isr": ["L" if one == leader else one for one in state["isr"]]}, stat.version


@pytest.fixture(scope="module", params=CONTROLLERS)
def old_cluster(
    request: pytest.FixtureRequest, servers_folder: RunFolder, zookeeper: ZooKeeper
) -> Iterator[OldCluster]:
    name = f"as-of-2-6-{request.param}"
    with (
        KafkaCluster(servers_folder, zookeeper, brokers=2, properties=AS_OF_2_6, chroot=f"/{name}") as kafka,
        open_client(kafka.zookeeper_connect) as client,
        ExitStack() as stack,
    ):
        own = None
        if request.param == "kontroller":
            session = {"zookeeper_session_timeout_ms": SESSION_MS}
            own = ControllerProcess(
                servers_folder, kafka.zookeeper_connect, name=f"{name}-controller", settings=session
            )
            stack.enter_context(own)
        ours = PythonBroker(servers_folder, kafka.zookeeper_connect, OURS, name=f"{name}-ours", settings=SETTINGS)
        stack.enter_context(ours)
        yield OldCluster(kafka=kafka, ours=ours, znodes=ClusterZnodes(client), own_controller=own)
        for words in ("Traceback", "failed unexpectedly", "could not be answered", "bad request"):
            assert words not in ours.log()


def test_it_is_a_member_of_a_cluster_that_speaks_an_older_protocol(old_cluster: OldCluster) -> None:
    znodes = old_cluster.znodes
    znodes.create_topic("spoken", [[3, 1, 2], [1, 2, 3], [2, 3, 1]], {"min.insync.replicas": "2"})
    old_cluster.serve("spoken")
    with nothing_lost(old_cluster.bootstrap, "spoken", more_than=200) as producer:
        old_cluster.ours.pause()
        wait_until_in_sync(znodes, "spoken", 1, 2, partition=1)
        old_cluster.ours.resume()
        old_cluster.serve("spoken")
        old_cluster.ours.restart()
        old_cluster.serve("spoken")
    assert {one.partition for one in producer.stop().acknowledged} == {0, 1, 2}
    znodes.mark_for_deletion("spoken")
    wait_until_gone(znodes, "/brokers/topics/spoken")
    wait_until(lambda: not list(old_cluster.ours.log_folder.glob("spoken-*")), "its logs are gone")


def test_what_it_writes_when_a_follower_stops_and_is_back_is_what_a_stock_leader_writes(
    old_cluster: OldCluster,
) -> None:
    """The controller is also paused, so nobody removes the notifications."""
    znodes, follower, stopped = old_cluster.znodes, old_cluster.follower, old_cluster.servers()
    stock = 3 - follower
    znodes.create_topic("led-by-stock", [[stock, follower]])
    znodes.create_topic("led-by-ours", [[OURS, follower]])
    topics = ("led-by-stock", "led-by-ours")
    old_cluster.serve(*topics)
    with run_under_load(old_cluster.bootstrap, topics[0]), run_under_load(old_cluster.bootstrap, topics[1]):
        created = [old_cluster.read_state(topic) for topic in topics]
        for server in stopped:
            server.pause()
        wait_until(lambda: set(old_cluster.read_notifications()) >= set(topics), "both leaders have told of it")
        told = old_cluster.read_notifications()
        without = [old_cluster.read_state(topic) for topic in topics]
        for server in stopped:
            server.resume()
        old_cluster.serve(*topics)
        again = [old_cluster.read_state(topic) for topic in topics]
    assert created[0] == created[1]
    assert without[0] == without[1]
    assert without[0][0]["isr"] == ["L"]
    for topic in topics:
        assert told[topic] == {"version": 1, "partitions": [{"topic": topic, "partition": 0}]}
    assert again[0] == again[1]
    wait_until(lambda: not set(old_cluster.read_notifications()) & set(topics), "the controller has heard of all")

"""A cluster of brokers of ours alone, under our controller: what stock brokers do not allow.

Features can be finalized, as all brokers advertise them (seed 001); leaders write the ISR into ZooKeeper themselves, and
followers cut their logs to the high watermark, as seed 004 writes it.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from devcluster.clients.load import AckedProducer, lost, read_back
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kontroller import ControllerProcess, run_command
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, connected_client
from devcluster.running.processes import wait_until

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SUPPORTS = {1: "f:1-3", 2: "f:0-3", 3: "f:1-2"}
AS_THE_SEED_HAS_IT = {"isr_writes": "zookeeper", "truncate_to": "high-watermark"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyOurs:
    brokers: dict[int, PythonBroker]
    znodes: ClusterZnodes

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    def wait_until_served(self, topic: str, *partitions: int) -> None:
        wait_until(lambda: self.znodes.is_served(topic, partitions), f"all of {topic} is in sync", deadline_s=60)


@pytest.fixture(scope="module")
def ours(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[OnlyOurs]:
    connect = f"{zookeeper.connect}/only-ours"
    with ExitStack() as stack:
        stack.enter_context(ControllerProcess(servers_folder, connect, name="only-ours-controller"))
        brokers = {}
        for broker, feature in SUPPORTS.items():
            settings = {**AS_THE_SEED_HAS_IT, "feature": [feature], "controlled_shutdown_retry_backoff_ms": 200}
            name = f"only-ours-{broker}"
            brokers[broker] = PythonBroker(servers_folder, connect, broker, name=name, settings=settings)
            stack.enter_context(brokers[broker])
        client = stack.enter_context(connected_client(connect))
        yield OnlyOurs(brokers=brokers, znodes=ClusterZnodes(client))


def test_a_feature_is_finalized_where_all_brokers_support_it(ours: OnlyOurs) -> None:
    update = ("features", "update", "--bootstrap-server", ours.bootstrap, "--yes", "--feature-upgrade")
    updated = run_command(*update, "f:2")
    assert updated.returncode == 0, updated
    described = run_command("features", "describe", "--bootstrap-server", ours.brokers[1].address)
    assert '"version": 2' in described.stdout, described
    refused = run_command(*update, "f:3")
    assert refused.returncode != 0
    assert "broker 3 supports 1 to 2" in refused.stdout + refused.stderr


def test_nothing_is_lost_when_leaders_write_the_isr_and_one_is_killed(ours: OnlyOurs) -> None:
    ours.znodes.create_topic("alone", [[1, 2, 3], [2, 3, 1], [3, 1, 2]], {"min.insync.replicas": "2"})
    ours.wait_until_served("alone", 0, 1, 2)
    with AckedProducer(ours.bootstrap, "alone") as producer:
        wait_until(lambda: producer.acknowledged_count > 200, "two hundred acknowledgements")
        ours.brokers[1].kill()
        wait_until(lambda: ours.znodes.leader("alone", 0) != 1, "another leads", deadline_s=60)
        goal = producer.acknowledged_count + 200
        wait_until(lambda: producer.acknowledged_count > goal, "two hundred more", deadline_s=60)
        ours.brokers[1].start()
        ours.wait_until_served("alone", 0, 1, 2)
    report = producer.stop()
    assert lost(report.acknowledged, read_back(ours.bootstrap, "alone")) == []


def test_the_isr_that_a_leader_wrote_is_told_to_the_controller(ours: OnlyOurs) -> None:
    ours.znodes.create_topic("told", [[2, 3]])
    ours.wait_until_served("told", 0)
    ours.brokers[3].stop()
    wait_until(lambda: ours.znodes.isr("told", 0) == [2], "broker 3 is out", deadline_s=60)
    ours.brokers[3].start()
    ours.wait_until_served("told", 0)
    wait_until(lambda: not ours.znodes.client.get_children("/isr_change_notification"), "the controller was told")


def test_messages_of_every_codec_are_taken_and_given_as_they_are(ours: OnlyOurs) -> None:
    from confluent_kafka import Producer

    ours.znodes.create_topic("packed", [[1, 2, 3]])
    ours.wait_until_served("packed", 0)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer(
            {"bootstrap.servers": ours.bootstrap, "compression.type": codec, "acks": "all", "linger.ms": 50}
        )
        for number in range(50):
            producer.produce("packed", value=f"{codec}-{number}-{'x' * 1000}")
        assert producer.flush(30) == 0
    read = read_back(ours.bootstrap, "packed")
    assert {value.rsplit("-", 1)[0] for value in read} == {
        f"{codec}-{number}" for codec in ("none", "gzip", "snappy", "lz4", "zstd") for number in range(50)
    }

"""A cluster of our brokers alone, under our controller, with functions that stock brokers lack.

Features can be finalized, because all brokers advertise them (seed 001). As in seed 004, leaders write the ISR into
ZooKeeper themselves, followers truncate their logs to the high watermark, and single partitions can be removed.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from devcluster.clients.load import read_back
from devcluster.clients.znodes import PARTITIONS_ADD, PARTITIONS_REMOVE, ClusterZnodes
from devcluster.clusters.kontroller import ControllerProcess, run_command
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import (
    serve_topic,
    wait_until_acknowledged,
    wait_until_empty,
    wait_until_gone,
    wait_until_in_sync,
    wait_until_led,
    wait_until_served,
)

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SUPPORTS = {1: "f:1-3", 2: "f:0-3", 3: "f:1-2"}
AS_THE_SEED_HAS_IT = {"isr_writes": "zookeeper", "truncate_to": "high-watermark"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyOurs:
    controller: ControllerProcess
    brokers: dict[int, PythonBroker]
    znodes: ClusterZnodes

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    def wait_until_removed(self, topic: str, *partitions: int) -> None:
        """Wait until nothing is left of partitions of a topic that stays: no znode, no log, and no metadata."""
        for partition in partitions:
            wait_until_gone(self.znodes, f"{PARTITIONS_REMOVE}/{topic}/{partition}")
            assert not self.znodes.client.exists(f"/brokers/topics/{topic}/partitions/{partition}")
            assert self.brokers_with_a_log(topic, partition) == set()
        wait_until(
            lambda: all(not self.list_shown(broker, topic) & set(partitions) for broker in self.brokers),
            f"no broker shows {partitions} of {topic}",
        )

    def brokers_with_a_log(self, topic: str, partition: int) -> set[int]:
        return {
            number for number, broker in self.brokers.items() if (broker.log_folder / f"{topic}-{partition}").exists()
        }

    def write(self, topic: str, partition: int, value: str) -> None:
        """Write one message, acknowledged by all replicas in sync."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.bootstrap, "acks": "all"})
        producer.produce(topic, value=value, partition=partition)
        assert producer.flush(30) == 0

    def list_shown(self, broker: int, topic: str) -> set[int]:
        """Return the partitions of a topic in a broker's metadata."""
        from confluent_kafka.admin import AdminClient

        client = AdminClient({"bootstrap.servers": self.brokers[broker].address})
        return set(client.list_topics(topic, timeout=30).topics[topic].partitions)


@pytest.fixture(scope="module")
def ours(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[OnlyOurs]:
    connect = f"{zookeeper.connect}/only-ours"
    with ExitStack() as stack:
        controller = ControllerProcess(servers_folder, connect, name="only-ours-controller")
        stack.enter_context(controller)
        brokers = {}
        for broker, feature in SUPPORTS.items():
            settings = {**AS_THE_SEED_HAS_IT, "feature": [feature], "controlled_shutdown_retry_backoff_ms": 200}
            name = f"only-ours-{broker}"
            brokers[broker] = PythonBroker(servers_folder, connect, broker, name=name, settings=settings)
            stack.enter_context(brokers[broker])
        client = stack.enter_context(open_client(connect))
        yield OnlyOurs(controller=controller, brokers=brokers, znodes=ClusterZnodes(client))


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
    serve_topic(ours.znodes, "alone", [[1, 2, 3], [2, 3, 1], [3, 1, 2]], {"min.insync.replicas": "2"})
    with nothing_lost(ours.bootstrap, "alone", more_than=200) as producer:
        ours.brokers[1].kill()
        wait_until_led(ours.znodes, "alone", 2, 3)
        wait_until_acknowledged(producer, 200)
        ours.brokers[1].start()
        wait_until_served(ours.znodes, "alone", [0, 1, 2])


def test_the_isr_that_a_leader_wrote_is_told_to_the_controller(ours: OnlyOurs) -> None:
    serve_topic(ours.znodes, "told", [[2, 3]])
    ours.brokers[3].stop()
    wait_until_in_sync(ours.znodes, "told", 2)
    ours.brokers[3].start()
    wait_until_served(ours.znodes, "told")
    wait_until_empty(ours.znodes, "/isr_change_notification")


def test_messages_of_every_codec_are_taken_and_given_as_they_are(ours: OnlyOurs) -> None:
    from confluent_kafka import Producer

    serve_topic(ours.znodes, "packed", [[1, 2, 3]])
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


def test_the_last_partitions_are_removed_and_the_others_go_on(ours: OnlyOurs) -> None:
    serve_topic(ours.znodes, "beside", [[1, 2, 3]])
    serve_topic(ours.znodes, "shrunk", [[1, 2], [2, 3], [3, 1]])
    wait_until(lambda: ours.brokers_with_a_log("shrunk", 2) == {3, 1}, "there is something to remove")
    with nothing_lost(ours.bootstrap, "beside"):
        for number in range(3):
            ours.write("shrunk", number, f"before-{number}")
        for partition in (2, 1):  # only the last one may go, and the controller may look between the two
            ours.znodes.ask_of_partition(PARTITIONS_REMOVE, "shrunk", partition)
        ours.wait_until_removed("shrunk", 1, 2)
        ours.write("shrunk", 0, "after")
    assert ours.znodes.partitions("shrunk") == {0: [1, 2]}
    assert read_back(ours.bootstrap, "shrunk") == {"before-0", "after"}


def test_a_removal_waits_for_a_broker_that_is_down_and_goes_on_under_the_next_controller(ours: OnlyOurs) -> None:
    serve_topic(ours.znodes, "held-up", [[1, 2], [2, 3]])
    wait_until(lambda: ours.brokers_with_a_log("held-up", 1) == {2, 3}, "there is something to remove")
    ours.brokers[3].kill()
    wait_until_in_sync(ours.znodes, "held-up", 2, partition=1)
    request = ours.znodes.ask_of_partition(PARTITIONS_REMOVE, "held-up", 1)
    wait_until(lambda: ours.brokers_with_a_log("held-up", 1) == {3}, "only the log on 3 is left")
    ours.controller.kill(ends_session=False)
    ours.controller.start()
    assert ours.znodes.client.exists(request)
    ours.brokers[3].start()
    ours.wait_until_removed("held-up", 1)
    assert ours.znodes.partitions("held-up") == {0: [1, 2]}


def test_a_partition_that_was_removed_begins_anew_when_it_is_added_again(ours: OnlyOurs) -> None:
    serve_topic(ours.znodes, "again", [[1, 2], [2, 3]])
    ours.write("again", 1, "former")
    ours.znodes.ask_of_partition(PARTITIONS_REMOVE, "again", 1)
    ours.wait_until_removed("again", 1)
    ours.znodes.ask_of_partition(PARTITIONS_ADD, "again", 1, [3, 2])
    wait_until_served(ours.znodes, "again", [1])
    wait_until(lambda: all(ours.list_shown(broker, "again") == {0, 1} for broker in ours.brokers), "all show it")
    ours.write("again", 1, "present")
    assert read_back(ours.bootstrap, "again") == {"present"}

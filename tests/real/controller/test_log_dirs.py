"""A real broker loses one of two log directories, and later gets it back."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.kafka import KafkaCluster
from devcluster.kontroller import ControllerProcess
from devcluster.processes import wait_until
from devcluster.run_folder import RunFolder
from devcluster.znodes import ClusterZnodes
from devcluster.zookeeper import ZooKeeper, connected_client

TOPICS = ("one", "two")
DEADLINE_S = 90


@pytest.fixture
def disks(servers_folder: RunFolder, zookeeper_chroot: str) -> list[Path]:
    """The log directories of broker 2."""
    return [servers_folder.data(f"{zookeeper_chroot.strip('/')}-disk-{number}") for number in (1, 2)]


@pytest.fixture
def kafka(
    servers_folder: RunFolder, zookeeper: ZooKeeper, zookeeper_chroot: str, disks: list[Path]
) -> Iterator[KafkaCluster]:
    """Two brokers; the second has two log directories, and writes its checkpoints often enough to notice a loss."""
    with KafkaCluster(servers_folder, zookeeper, brokers=1, chroot=zookeeper_chroot) as cluster:
        properties = {"log.dirs": ",".join(map(str, disks)), "log.flush.offset.checkpoint.interval.ms": 500}
        cluster.add_broker(2, properties=properties)
        cluster.start()
        yield cluster


@pytest.fixture
def znodes(servers_folder: RunFolder, kafka: KafkaCluster) -> Iterator[ClusterZnodes]:
    controller = ControllerProcess(servers_folder, kafka.zookeeper_connect, name="disk-controller")
    with controller, connected_client(kafka.zookeeper_connect) as client:
        yield ClusterZnodes(client)
        assert "unexpected error" not in controller.process.log_path.read_text(errors="replace")


def folder_of(disks: list[Path], topic: str) -> Path:
    """The log directory that broker 2 has put a topic into."""

    def found() -> list[Path]:
        return [folder for folder in disks if (folder / f"{topic}-0").exists()]

    wait_until(lambda: bool(found()), f"broker 2 has a log of {topic}", deadline_s=DEADLINE_S)
    return found()[0]


def test_the_partitions_of_a_lost_directory_move_on_and_return_with_it(
    disks: list[Path], kafka: KafkaCluster, znodes: ClusterZnodes
) -> None:
    for topic in TOPICS:
        znodes.create_topic(topic, [[2, 1]])
        folder_of(disks, topic)
    lost = folder_of(disks, "one")
    assert folder_of(disks, "two") != lost, "a broker spreads its partitions over its directories"

    shutil.rmtree(lost)
    lost.touch()  # a file in its place: nothing can be written there any more
    wait_until(lambda: znodes.leader("one", 0) == 1, "one is led by the other broker", deadline_s=DEADLINE_S)
    wait_until(lambda: znodes.isr("one", 0) == [1], "the lost replica has left the ISR", deadline_s=DEADLINE_S)
    assert (znodes.leader("two", 0), znodes.isr("two", 0)) == (2, [1, 2]), "the other directory is not affected"

    znodes.create_topic("new", [[2, 1]])
    wait_until(lambda: znodes.is_served("new", [0]), "a new replica goes to the sound directory", deadline_s=DEADLINE_S)
    assert not znodes.client.get_children("/log_dir_event_notification")

    kafka.broker(2).kill()
    lost.unlink()
    lost.mkdir()
    kafka.broker(2).start()
    wait_until(
        lambda: all(znodes.is_served(topic, [0]) for topic in (*TOPICS, "new")),
        "every replica is in sync again",
        deadline_s=DEADLINE_S,
    )


def test_a_topic_whose_configuration_changes_gets_an_unclean_leader(kafka: KafkaCluster, znodes: ClusterZnodes) -> None:
    znodes.create_topic("waiting", [[2, 1]])
    wait_until(lambda: znodes.is_served("waiting", [0]), "it is served", deadline_s=DEADLINE_S)
    kafka.broker(1).stop()
    wait_until(lambda: znodes.isr("waiting", 0) == [2], "2 alone is in sync", deadline_s=DEADLINE_S)
    kafka.broker(2).kill()
    wait_until(lambda: znodes.leader("waiting", 0) == -1, "nobody leads", deadline_s=DEADLINE_S)
    kafka.broker(1).start()
    assert (znodes.leader("waiting", 0), znodes.isr("waiting", 0)) == (-1, [2])

    znodes.change_config("waiting", {"unclean.leader.election.enable": "true"})
    wait_until(lambda: znodes.leader("waiting", 0) == 1, "1 leads, uncleanly", deadline_s=DEADLINE_S)
    assert znodes.isr("waiting", 0) == [1]

    kafka.broker(2).start()
    wait_until(lambda: znodes.is_served("waiting", [0]), "2 follows and is in sync", deadline_s=DEADLINE_S)
    assert znodes.state("waiting", 0).get("leader_recovery_state", 0) == 0, "the leader has recovered"

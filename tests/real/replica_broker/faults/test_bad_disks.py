"""Full disks and lost log directories of our broker beside stock ones.

The broker keeps serving its other directories, other brokers lead the lost partitions, and no acknowledged message is
lost.
"""

from pathlib import Path

import pytest

from devcluster.clusters.kafka import lose_directory
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.processes import wait_until
from devcluster.running.small_disk import SmallDisk, why_impossible
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import wait_until_acknowledged, wait_until_ended, wait_until_served
from tests.real.replica_broker.mixed import MixedCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]

CONFIG = {"min.insync.replicas": "2"}
DISK_BYTES = 64 * 1024 * 1024
FAILED = 1


class TwoDirectories:
    """A further broker of ours that leads a partition of a topic in each of its two log directories."""

    def __init__(self, cluster: MixedCluster, broker: PythonBroker, directories: list[Path], topic: str) -> None:
        self.cluster = cluster
        self.broker = broker
        self.topic = topic
        cluster.serve_topic(topic, [[broker.broker_id, 1, 2], [broker.broker_id, 2, 1]], CONFIG)

        def find_places() -> list[list[int]]:
            return [[number for number in (0, 1) if (one / f"{topic}-{number}").is_dir()] for one in directories]

        # The state has the replica in sync before the broker has heard of it.
        wait_until(lambda: all(find_places()), "there is a partition in each directory")
        (self.first,), (self.second,) = find_places()

    def wait_until_lost(self, partition: int) -> None:
        """Wait until a stock broker leads a partition, and this broker's replica is not in its ISR."""
        znodes = self.cluster.znodes
        wait_until(
            lambda: znodes.leader(self.topic, partition) in (1, 2) and znodes.isr(self.topic, partition) == [1, 2],
            f"{self.topic}-{partition} is led by others, without the replica that is lost",
        )

    def leads(self, partition: int) -> bool:
        state = self.cluster.znodes.state(self.topic, partition)
        return bool(state["leader"] == self.broker.broker_id)


def test_a_full_disk_costs_its_own_replicas_and_they_catch_up_when_there_is_room(
    cluster: MixedCluster, servers_folder: RunFolder, tmp_path: Path
) -> None:
    if (why := why_impossible()) is not None:
        pytest.skip(why)
    full, spared = tmp_path / "full", tmp_path / "spared"
    full.mkdir()
    settings = {"log_directory": [str(full), str(spared)]}
    connect = cluster.kafka.zookeeper_connect
    with (
        SmallDisk(full, size_bytes=DISK_BYTES, log_path=servers_folder.log("small-disk")) as disk,
        PythonBroker(servers_folder, connect, 4, name="full-disk", settings=settings, disk=disk) as broker,
    ):
        two = TwoDirectories(cluster, broker, [disk.find_outside(full), spared], "on-a-full-disk")
        with nothing_lost(cluster.bootstrap, two.topic, more_than=100) as producer:
            disk.fill()
            two.wait_until_lost(two.first)
            wait_until_acknowledged(producer, 100)
            assert two.leads(two.second)
            assert "the disk is full" in broker.log()
            broker.restart()  # while it is full
            wait_until_served(cluster.znodes, two.topic, [two.second])
            disk.make_room()
            broker.restart()
            cluster.wait_until_served(two.topic)
        assert "Traceback" not in broker.log()


def test_directories_vanish_one_after_the_other_and_without_any_the_broker_ends(
    cluster: MixedCluster, servers_folder: RunFolder, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    settings = {"log_directory": [str(first), str(second)]}
    connect = cluster.kafka.zookeeper_connect
    with PythonBroker(servers_folder, connect, 5, name="vanishing", settings=settings) as broker:
        two = TwoDirectories(cluster, broker, [first, second], "vanishing")
        with nothing_lost(cluster.bootstrap, two.topic, more_than=100) as producer:
            first.rename(tmp_path / "moved-away")
            two.wait_until_lost(two.first)
            wait_until_acknowledged(producer, 100)
            assert two.leads(two.second)
            lose_directory(second)
            assert wait_until_ended(broker.process) == FAILED
            assert "all log directories have failed" in broker.log()
            two.wait_until_lost(two.second)
            wait_until_acknowledged(producer, 100)
            second.unlink()
            broker.start()
            cluster.wait_until_served(two.topic)
        assert "Traceback" not in broker.log()

"""The journal of a real controller comes to what ZooKeeper says, also after the controller was killed."""

from pathlib import Path
from typing import Final

import pytest

from controller_core.journal.fold import Folded, fold
from controller_core.journal.reader import read
from controller_core.journal.records import Fields
from controller_core.journal.segments import segments
from devcluster import tools
from devcluster.kafka import KafkaCluster
from devcluster.kontroller import ControllerProcess
from devcluster.processes import wait_until
from devcluster.run_folder import RunFolder
from devcluster.znodes import ClusterZnodes
from devcluster.zookeeper import ZooKeeper, connected_client

pytestmark = pytest.mark.real

ORDERS: Final[dict[str, Fields]] = {"orders": {"config": {"min.insync.replicas": "2"}}}
BROKER_1: Final[dict[int | None, Fields]] = {1: {"config": {"leader.replication.throttled.rate": "123456"}}}


def assert_comes_to(folded: Folded, znodes: ClusterZnodes, topics: list[str]) -> None:
    """All that ZooKeeper says of brokers, topics and partitions, read anew."""
    image = folded.image
    assert image is not None
    client = znodes.client
    registered = {
        int(name): client.get(f"/brokers/ids/{name}")[1].czxid for name in client.get_children("/brokers/ids")
    }
    assert {broker: fields["broker_epoch"] for broker, fields in image.brokers.items()} == registered
    assert set(image.topics) == set(client.get_children("/brokers/topics")) == set(topics)
    for topic, partition in image.assignments:
        assert image.assignments[topic, partition]["replicas"] == znodes.assigned(topic, partition)
        path = f"/brokers/topics/{topic}/partitions/{partition}/state"
        assert image.leaderships[topic, partition]["partition_epoch"] == client.get(path)[1].version


def alter_config(kafka: KafkaCluster, entity_type: str, name: str, added: str) -> None:
    """As a person does it, with Kafka's own tool."""
    altered = tools.run_tool(
        tools.CONFIGS,
        *("--bootstrap-server", kafka.broker(1).address, "--alter", "--entity-type", entity_type),
        *("--entity-name", name, "--add-config", added),
    )
    assert altered.returncode == 0, altered.stdout + altered.stderr


def configs_in(journal: Path) -> tuple[dict[str, Fields], dict[int | None, Fields]] | None:
    """What the history says of topics and of brokers; None while a line is being written."""
    image = fold(read(journal)).image
    return (image.topic_configs, image.broker_configs) if image else None


def test_after_a_kill_and_a_torn_line_the_history_comes_to_the_state_of_zookeeper(
    servers_folder: RunFolder, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    settings = {"journal_directory": str(journal), "journal_snapshot_interval_seconds": 1}
    with (
        KafkaCluster(servers_folder, zookeeper, brokers=3, chroot="/journaled") as kafka,
        ControllerProcess(servers_folder, kafka.zookeeper_connect, name="journaled", settings=settings) as controller,
        connected_client(kafka.zookeeper_connect) as client,
    ):
        znodes = ClusterZnodes(client)
        znodes.create_topic("orders", [[1, 2], [2, 3], [3, 1]], {"min.insync.replicas": "1"})
        wait_until(lambda: znodes.is_served("orders", [0, 1, 2]), "orders is served", deadline_s=60)
        kafka.broker(3).stop()
        wait_until(lambda: znodes.leader("orders", 2) == 1, "another broker leads", deadline_s=60)
        alter_config(kafka, "topics", "orders", "min.insync.replicas=2,flush.messages=1000")
        alter_config(kafka, "brokers", "1", "leader.replication.throttled.rate=123456,log.cleaner.threads=2")
        wait_until(lambda: configs_in(journal) == (ORDERS, BROKER_1), "both are recorded", deadline_s=60)
        controller.process.kill()
        with segments(journal)[-1].open("ab") as last:
            last.write(b'{"v":1,"cluster_id":"torn')
        assert len(fold(read(journal)).findings) == 1

        controller.restart_whole()
        kafka.broker(3).start()
        wait_until(lambda: znodes.is_served("orders", [0, 1, 2]), "orders is served again", deadline_s=60)
        controller.process.stop()
        assert configs_in(journal) == (ORDERS, BROKER_1), "the next term knows them, too"
        folded = fold(read(journal))
        assert folded.findings == []
        assert folded.gaps == []
        assert folded.proven > 0
        assert_comes_to(folded, znodes, ["orders"])

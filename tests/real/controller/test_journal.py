"""The journal of a real controller agrees with ZooKeeper, even after the controller was killed."""

import json
import signal
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from controller_core.journal.fold import fold
from controller_core.journal.reader import read
from controller_core.journal.records import Fields
from controller_core.journal.segments import segments
from controller_core.journal.topic import PARTITION
from devcluster.clients import tools
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.ports import release_port, reserve_port
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import (
    serve_topic,
    wait_until_ended,
    wait_until_led,
    wait_until_metric,
    wait_until_served,
)
from tests.real.histories import assert_comes_to
from tests.real.versions.releases import of_each_release

pytestmark = pytest.mark.real

ORDERS: Final[dict[str, Fields]] = {"orders": {"config": {"min.insync.replicas": "2"}}}
BROKER_1: Final[dict[int | None, Fields]] = {1: {"config": {"leader.replication.throttled.rate": "123456"}}}


def alter_config(kafka: KafkaCluster, entity_type: str, name: str, added: str) -> None:
    """Change a configuration as a user does, with Kafka's own tool."""
    altered = tools.run_tool(
        tools.CONFIGS,
        *("--bootstrap-server", kafka.broker(1).address, "--alter", "--entity-type", entity_type),
        *("--entity-name", name, "--add-config", added),
    )
    assert altered.returncode == 0, altered.stdout + altered.stderr


def configs_in(journal: Path) -> tuple[dict[str, Fields], dict[int | None, Fields]] | None:
    """Return the configurations of topics and of brokers in the history; None while a line is being written."""
    image = fold(read(journal)).image
    return (image.topic_configs, image.broker_configs) if image else None


@of_each_release
def test_after_a_kill_and_a_torn_line_the_history_comes_to_the_state_of_zookeeper(
    servers_folder: RunFolder, zookeeper: ZooKeeper, tmp_path: Path, release: str
) -> None:
    journal = tmp_path / "journal"
    settings = {"journal_directory": str(journal), "journal_snapshot_interval_seconds": 1}
    with (
        KafkaCluster(servers_folder, zookeeper, brokers=3, chroot=f"/journaled-{release}", version=release) as kafka,
        ControllerProcess(servers_folder, kafka.zookeeper_connect, name="journaled", settings=settings) as controller,
        open_client(kafka.zookeeper_connect) as client,
    ):
        znodes = ClusterZnodes(client)
        serve_topic(znodes, "orders", [[1, 2], [2, 3], [3, 1]], {"min.insync.replicas": "1"})
        kafka.broker(3).stop()
        wait_until_led(znodes, "orders", 1, partition=2)
        alter_config(kafka, "topics", "orders", "min.insync.replicas=2,flush.messages=1000")
        alter_config(kafka, "brokers", "1", "leader.replication.throttled.rate=123456,log.cleaner.backoff.ms=10000")
        wait_until(lambda: configs_in(journal) == (ORDERS, BROKER_1), "both are recorded")
        controller.process.kill()
        with segments(journal)[-1].open("ab") as last:
            last.write(b'{"v":1,"cluster_id":"torn')
        assert len(fold(read(journal)).findings) == 1

        controller.restart_whole()
        kafka.broker(3).start()
        wait_until_served(znodes, "orders", [0, 1, 2])  # so that the brokers' own controller has nothing to do
        controller.process.stop()
        assert configs_in(journal) == (ORDERS, BROKER_1), "the next term knows them, too"
        folded = fold(read(journal))
        assert folded.findings == []
        assert folded.gaps == []
        assert folded.proven > 0
        assert_comes_to(folded, znodes, ["orders"])


def wait_for_end(consumer: Consumer, partition: TopicPartition) -> int:
    """Return the end of a partition, as soon as its brokers answer, which have another controller by now."""
    ends: list[int] = []

    def is_told() -> bool:
        with suppress(KafkaException):
            ends.append(consumer.get_watermark_offsets(partition, timeout=5)[1])
        return bool(ends)

    wait_until(is_told, "a broker tells the end of the topic")
    return ends[-1]


def messages(bootstrap: str, topic: str) -> list[bytes]:
    """Return all messages of partition 0 of a topic, in order."""
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": "test", "log_level": 0})) as consumer:
        partition = TopicPartition(topic, PARTITION, 0)
        end = wait_for_end(consumer, partition)
        consumer.assign([partition])
        found: list[bytes] = []
        while not found or consumer.position([partition])[0].offset < end:
            found += [message.value() or b"" for message in consumer.consume(500, timeout=1) if not message.error()]
    return found


def number_lines(lines: Iterable[bytes]) -> dict[tuple[int, int], bytes]:
    records = [(json.loads(line), line) for line in lines]
    return {(record["controller_epoch"], record["seq"]): line for record, line in records}


@of_each_release
def test_the_topic_has_what_the_files_have_though_its_brokers_die_under_the_same_controller(
    servers_folder: RunFolder, zookeeper: ZooKeeper, tmp_path: Path, release: str
) -> None:
    journal, topic = tmp_path / "journal", "controller-journal"
    with (
        KafkaCluster(servers_folder, zookeeper, brokers=3, chroot=f"/published-{release}", version=release) as kafka,
        open_client(kafka.zookeeper_connect) as client,
        ControllerProcess(
            servers_folder,
            kafka.zookeeper_connect,
            name="published",
            settings={
                "journal_directory": str(journal),
                "journal_topic": topic,
                "journal_bootstrap_server": kafka.bootstrap_servers,
                "journal_alive_interval_seconds": 1,
            },
        ) as controller,
    ):
        znodes = ClusterZnodes(client)
        serve_topic(znodes, topic, [[1, 2, 3]])
        kafka.broker(1).kill()
        wait_until_led(znodes, topic, 2, 3)
        for broker in (2, 3):
            kafka.broker(broker).kill()
        wait_until_led(znodes, topic, -1)
        kafka.start()
        serve_topic(znodes, "orders", [[1, 2], [2, 3]])
        writing = [f"kontroller_journal{kind}_records_written_total" for kind in ("", "_topic")]

        def has_caught_up() -> bool:
            files, messages = (controller.metric(name) for name in writing)
            return files == messages

        wait_until(has_caught_up, "the topic has what waited")
        assert controller.metric("kontroller_journal_topic_records_dropped_total") == 0
        controller.process.stop()
        in_files = number_lines(line for path in segments(journal) for line in path.read_bytes().splitlines())
        assert number_lines(messages(kafka.bootstrap_servers, topic)) == in_files
        assert any(b'"controller_resigned"' in line for line in in_files.values())


def test_a_topic_that_is_out_of_reach_holds_up_neither_the_controller_nor_its_end(
    servers_folder: RunFolder, zookeeper: ZooKeeper, zookeeper_connect: str
) -> None:
    port = reserve_port()
    settings = {"journal_topic": "journal", "journal_bootstrap_server": f"127.0.0.1:{port}"}
    with ControllerProcess(servers_folder, zookeeper_connect, name="unpublished", settings=settings) as controller:
        wait_until_metric(controller, "kontroller_journal_topic_failing", 1)
        controller.process.send_signal(signal.SIGTERM)
        wait_until_ended(controller.process)
    release_port(port)

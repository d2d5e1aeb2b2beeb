"""A stock broker's log directory is used by ours, and handed back: after a clean end of either, and after none."""

import json

import pytest

from controller_core.model.ids import BrokerId, LeaderEpoch, PartitionId, TopicName, TopicPartition
from devcluster.clients.tools import CONSOLE_CONSUMER, CONSOLE_PRODUCER, TOPICS, run_tool
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.zookeeper import connected_client
from replica_broker.disk.disk import DirectoryInUse
from replica_broker.disk.local_disk import LocalDisk
from replica_broker.log.config import LogConfig
from replica_broker.log.directories import LogDirectories
from replica_broker.log.record_batches import batches_in
from tests.real.conftest import StartKafka
from tests.unit.replica_broker.log.batches import batch

ORDERS_0 = TopicPartition(TopicName("orders"), PartitionId(0))
SEGMENT = LogConfig(segment_bytes=4_000, index_interval_bytes=200)


def command(cluster: KafkaCluster, main_class: str, *arguments: str, stdin: str | None = None) -> str:
    tool = run_tool(main_class, "--bootstrap-server", cluster.bootstrap_servers, *arguments, stdin=stdin)
    assert tool.returncode == 0, tool.stderr
    return tool.stdout


def produced(cluster: KafkaCluster, values: list[str]) -> None:
    settings = ("--producer-property", "batch.size=100", "--producer-property", "enable.idempotence=true")
    command(cluster, CONSOLE_PRODUCER, "--topic", "orders", *settings, stdin="".join(f"{value}\n" for value in values))


def consumed(cluster: KafkaCluster, count: int) -> list[str]:
    limits = ("--from-beginning", "--max-messages", str(count), "--timeout-ms", "30000")
    return command(cluster, CONSOLE_CONSUMER, "--topic", "orders", *limits).splitlines()


def taken_over(cluster: KafkaCluster) -> LogDirectories:
    with connected_client(cluster.zookeeper_connect) as client:
        cluster_id = json.loads(client.get("/cluster/id")[0])["id"]
    return LogDirectories.opened(
        LocalDisk(),
        [cluster.broker(1).log_folder],
        broker_id=BrokerId(1),
        cluster_id=cluster_id,
        config_of=lambda _: SEGMENT,
    )


def read_by_us(directories: LogDirectories) -> int:
    """How many records the log has, all of its batches whole."""
    log = directories.logs[ORDERS_0]
    count, offset = 0, log.log_start_offset
    while data := log.read(offset, 1000, below=log.log_end_offset):
        for it in batches_in(data):
            count += it.records_count
            offset = it.next_offset
    assert offset == log.log_end_offset
    return count


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_directory_goes_from_a_stock_broker_to_ours_and_back(start_kafka: StartKafka, is_clean: bool) -> None:
    cluster = start_kafka(brokers=1, properties={"log.segment.bytes": 4_000, "log.index.interval.bytes": 200})
    broker = cluster.broker(1)
    command(cluster, TOPICS, "--create", "--topic", "orders", "--partitions", "1")
    values = [f"stock-{number}" for number in range(200)]
    produced(cluster, values)
    with pytest.raises(DirectoryInUse):
        taken_over(cluster)
    broker.stop() if is_clean else broker.kill()
    directories = taken_over(cluster)
    assert directories.topic_id_of(ORDERS_0) is not None
    assert directories.offline == frozenset()
    assert read_by_us(directories) == 200
    log = directories.logs[ORDERS_0]
    epoch = log.latest_epoch
    assert epoch is not None
    for number in range(100):
        appended = log.append_as_leader(batch(f"ours-{number}".encode()), LeaderEpoch(epoch), 0)
        assert appended.first_offset == 200 + number
        values.append(f"ours-{number}")
    if is_clean:
        directories.close({ORDERS_0: log.log_end_offset})
    else:
        directories.checkpoint_high_watermarks({ORDERS_0: log.log_end_offset})
        directories.abandon()
    broker.start()
    produced(cluster, ["last"])
    assert consumed(cluster, 301) == [*values, "last"]
    broker.stop()
    assert read_by_us(taken_over(cluster)) == 301

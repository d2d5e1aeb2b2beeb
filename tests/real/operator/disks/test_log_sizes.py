"""A real broker's description of its log directories is read correctly, while a log moves between them and one is lost."""

import asyncio
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kio.schema.alter_replica_log_dirs.v2 import AlterReplicaLogDirsRequest
from kio.schema.alter_replica_log_dirs.v2.request import AlterReplicaLogDir, AlterReplicaLogDirTopic
from kio.schema.describe_log_dirs.v2 import DescribeLogDirsRequest
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32

from controller_core.client.log_dirs.log_sizes import LogSizes, ask_log_sizes
from controller_core.client.transport.request_client import Address, RequestClient
from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from devcluster.clients.requests import send_request
from devcluster.clients.tools import CONFIGS, run_tool
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster, lose_directory
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import serve_topic

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

MOVED, ABSENT = (TopicPartition(TopicName(name), PartitionId(0)) for name in ("moved", "absent"))
RECORD_BYTES, RECORDS = 100_000, 30
SLOW = "replica.alter.log.dirs.io.max.bytes.per.second=1000"


def test_a_log_that_moves_within_its_broker_counts_once_and_a_lost_directory_is_noticed(
    servers_folder: RunFolder, zookeeper: ZooKeeper, zookeeper_chroot: str
) -> None:
    disks = [servers_folder.data(f"sizes-disk-{number}") for number in (1, 2)]
    properties = {"log.dirs": ",".join(map(str, disks)), "log.flush.offset.checkpoint.interval.ms": 500}
    with (
        KafkaCluster(servers_folder, zookeeper, brokers=1, chroot=zookeeper_chroot, properties=properties) as kafka,
        open_client(kafka.zookeeper_connect) as client,
    ):
        znodes = ClusterZnodes(client)
        serve_topic(znodes, MOVED.topic, [[1]])
        _fill(kafka)
        full = _sizes(kafka)
        assert full.are_all_seen
        assert full.bytes_of.keys() == {MOVED}
        assert full.bytes_of[MOVED] >= RECORDS * RECORD_BYTES

        target = next(disk for disk in disks if not (disk / f"{MOVED.topic}-0").exists())
        _move_slowly(kafka, target)
        wait_until(lambda: _is_on_its_way(kafka), "there is a second log of it")
        assert _sizes(kafka).bytes_of == full.bytes_of
        assert _sizes(kafka).futures[MOVED].directory == str(target)

        lose_directory(target)
        wait_until(lambda: not _sizes(kafka).are_all_seen, "the broker has noticed")
        assert _sizes(kafka).bytes_of == full.bytes_of


def _sizes(kafka: KafkaCluster) -> LogSizes:
    client = RequestClient((Address("127.0.0.1", kafka.broker(1).port),))
    return asyncio.run(ask_log_sizes([MOVED, ABSENT], client))


def _is_on_its_way(kafka: KafkaCluster) -> bool:
    found = send_request(("127.0.0.1", kafka.broker(1).port), DescribeLogDirsRequest(topics=None))
    logs = [each for directory in found.results for topic in directory.topics for each in topic.partitions]
    return any(each.is_future_key for each in logs)


def _move_slowly(kafka: KafkaCluster, target: Path) -> None:
    broker = ("--alter", "--entity-type", "brokers", "--entity-name", "1")
    slowed = run_tool(CONFIGS, "--bootstrap-server", kafka.bootstrap_servers, *broker, "--add-config", SLOW)
    assert slowed.returncode == 0, slowed.stdout + slowed.stderr
    topic = AlterReplicaLogDirTopic(name=WireTopicName(MOVED.topic), partitions=(i32(0),))
    request = AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path=str(target), topics=(topic,)),))
    send_request(("127.0.0.1", kafka.broker(1).port), request)


def _fill(kafka: KafkaCluster) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "acks": "all"})
    for number in range(RECORDS):
        producer.produce(MOVED.topic, number.to_bytes(4, "big") * (RECORD_BYTES // 4), partition=0)
        producer.poll(0)
    assert producer.flush(60) == 0

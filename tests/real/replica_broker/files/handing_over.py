"""A stock broker's log directory, and its takeover by our broker."""

import json
from typing import Final

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from devcluster.clients.tools import CONSOLE_CONSUMER, CONSOLE_PRODUCER, run_tool
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.zookeeper import open_client
from replica_broker.disk.local_disk import LocalDisk
from replica_broker.log.config import LogConfig
from replica_broker.log.directories import LogDirectories

ORDERS_0: Final = TopicPartition(TopicName("orders"), PartitionId(0))
SEGMENT: Final = LogConfig(segment_bytes=4_000, index_interval_bytes=200)


def command(cluster: KafkaCluster, main_class: str, *arguments: str, stdin: str | None = None) -> str:
    tool = run_tool(main_class, "--bootstrap-server", cluster.bootstrap_servers, *arguments, stdin=stdin)
    assert tool.returncode == 0, tool.stderr
    return tool.stdout


def produce(cluster: KafkaCluster, values: list[str]) -> None:
    settings = ("--producer-property", "batch.size=100", "--producer-property", "enable.idempotence=true")
    command(cluster, CONSOLE_PRODUCER, "--topic", "orders", *settings, stdin="".join(f"{value}\n" for value in values))


def consume(cluster: KafkaCluster, count: int) -> list[str]:
    limits = ("--from-beginning", "--max-messages", str(count), "--timeout-ms", "30000")
    return command(cluster, CONSOLE_CONSUMER, "--topic", "orders", *limits).splitlines()


def take_over(cluster: KafkaCluster) -> LogDirectories:
    with open_client(cluster.zookeeper_connect) as client:
        cluster_id = json.loads(client.get("/cluster/id")[0])["id"]
    return LogDirectories.open(
        LocalDisk(),
        [cluster.broker(1).log_folder],
        broker_id=BrokerId(1),
        cluster_id=cluster_id,
        config_of=lambda _: SEGMENT,
    )

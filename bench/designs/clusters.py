"""The two clusters: the same three Python brokers, which race for leaders (v2) or have our controller (v3)."""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Self

import confluent_kafka.admin
from kio.schema.metadata.v12.request import MetadataRequest

from bench.designs.counting.leaderships import Design
from bench.designs.counting.message_counts import read_received
from controller_core.model.ids import BrokerId, PartitionId, TopicName
from controller_core.zk.kazoo.session import KazooSession
from devcluster.clients.requests import send_request
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from replica_broker.v2.admin.topics import Admin

BROKERS: Final = (1, 2, 3)
SETTINGS: Final[Mapping[str, object]] = {
    "zookeeper_session_timeout_ms": 10_000,
    "keep_in_sync_time_ms": 30_000,
    "max_time_lag_ms": 300_000,
    "fetch_wait_max_ms": 2_000,
}
"""Longer than the defaults, because all servers share two processors, and nobody should leave an ISR for that."""
_TIMEOUT_MS: Final = 120_000
_LIBRDKAFKA: Final[Any] = confluent_kafka.admin  # the module does not declare its exports
_QUEUE_BOUND: Final = 1_000

Topics = Mapping[str, Sequence[tuple[int, ...]]]
"""The replicas of each partition."""


def topics_of(partitions: int, *, in_topic: int, replication_factor: int) -> dict[str, list[tuple[int, ...]]]:
    """Return topics with this number of partitions, their leaders and replicas spread evenly over the brokers."""

    def replicas(number: int) -> tuple[int, ...]:
        return tuple(BROKERS[(number + nth) % len(BROKERS)] for nth in range(replication_factor))

    return {
        f"topic-{first // in_topic:05}": [replicas(n) for n in range(first, min(first + in_topic, partitions))]
        for first in range(0, partitions, in_topic)
    }


class DesignCluster:
    """A cluster of one design. Entering the context starts the servers, the controller first; leaving it kills them."""

    def __init__(self, folder: RunFolder, zookeeper: ZooKeeper, design: Design) -> None:
        self.design: Final = design
        self.connect: Final = f"{zookeeper.connect}/{design}"
        self._stack = ExitStack()
        self._counts: list[Path] = []
        self.controller: ControllerProcess | None = None
        if design == "v3":
            settings = {"zookeeper_session_timeout_ms": SETTINGS["zookeeper_session_timeout_ms"]}
            self.controller = ControllerProcess(folder, self.connect, settings=settings)
            self._count(folder, self.controller, "controller")
        self.brokers = {
            broker: PythonBroker(folder, self.connect, broker, settings={**SETTINGS, "design": design})
            for broker in BROKERS
        }
        for python_broker in self.brokers.values():
            self._count(folder, python_broker, "broker")

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for server in (*([self.controller] if self.controller else []), *self.brokers.values()):
                stack.enter_context(server)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def pids(self) -> list[int]:
        """The running processes."""
        servers = [*([self.controller] if self.controller else []), *self.brokers.values()]
        return [server.process.pid for server in servers if server.process.is_running]

    def count_received(self) -> Counter[str]:
        """Return the requests that all servers have received so far, by API."""
        return sum(map(read_received, self._counts), Counter())

    def leaders_as_told(self) -> Iterator[dict[str, int]]:
        """Yield the leader of each partition in each live broker's metadata."""
        everything = MetadataRequest(
            topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False
        )
        for broker in self.brokers.values():
            if broker.process.is_running:
                told = send_request(("127.0.0.1", broker.port), everything, timeout_s=_TIMEOUT_MS / 1000)
                yield {
                    f"{topic.name}-{partition.partition_index}": int(partition.leader_id)
                    for topic in told.topics
                    for partition in topic.partitions
                }

    def create(self, topics: Topics) -> None:
        """Create topics sequentially, by the command of v2, or by requests to the controller."""
        if self.controller is None:
            asyncio.run(_create_by_znodes(self.connect, topics))
            return
        client = _LIBRDKAFKA.AdminClient({"bootstrap.servers": self.controller.address})
        for topic, assignment in topics.items():
            new = _LIBRDKAFKA.NewTopic(
                topic, len(assignment), replica_assignment=[list(replicas) for replicas in assignment]
            )
            created = client.create_topics(
                [new], operation_timeout=_TIMEOUT_MS / 1000, request_timeout=_TIMEOUT_MS / 1000
            )
            created[topic].result(_TIMEOUT_MS / 1000)

    def _count(self, folder: RunFolder, server: ControllerProcess | PythonBroker, role: str) -> None:
        """Make the server count its requests."""
        data = folder.data(server.process.name)
        counts = data / "received"
        self._counts.append(counts)
        module = ("-m", "bench.designs.counting.counted_server", str(counts))
        command = [sys.executable, *module, role, "run", "--settings", str(data / "settings.yaml")]
        server.process = server.process.copy_with_command(command)


async def _create_by_znodes(connect: str, topics: Topics) -> None:
    zk = await KazooSession.connect(connect, session_timeout_ms=30_000, connect_timeout_ms=30_000)
    try:
        by_command = Admin(zk, timeout_ms=_TIMEOUT_MS, bound=_QUEUE_BOUND)
        for topic, assignment in topics.items():
            replicas = {PartitionId(number): tuple(map(BrokerId, brokers)) for number, brokers in enumerate(assignment)}
            await by_command.create_topic(TopicName(topic), assignment=replicas)
    finally:
        await zk.close()

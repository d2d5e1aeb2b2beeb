"""A Kafka cluster without ZooKeeper with many topics, and the operator's view of it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from bench.setup.processor import cpu_s
from controller_core.client.transport.kept_client import KeptClient
from controller_core.client.transport.request_client import RequestClient, parse_addresses
from controller_core.model.ids import BrokerId, PartitionId, TopicName
from controller_core.model.metadata import ReplicaAssignment, TopicAssignment
from controller_core.model.snapshot import Snapshot
from controller_core.polling.pace import Pace
from controller_operator.kafka.actions import CreateTopic
from controller_operator.kafka.requests.topics import ask_for_topic
from controller_operator.observation.observation import Observation
from controller_operator.observation.poller import ClusterPoller
from devcluster.clusters.kraft import KRaftCluster

_SEEN_WITHIN_S: Final = 120.0
_CREATED_AT_ONCE: Final = 20
WITHOUT_A_PAUSE: Final = Pace(while_moving_s=0.0, usual_s=0.0, longest_quiet_s=0.0, share=1.0)
"""For warming up, because a new JVM takes many times as long for an answer, and for measuring the cost of answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Processor time that was used while nothing changed, in seconds per second."""

    brokers: Sequence[float]
    """The use of each broker, the busiest first."""
    poller: float
    answers: float
    """The number of answers per second."""
    waited: float
    """The time spent waiting for answers, in seconds per second."""


class Watched:
    """The poller's view of the cluster."""

    def __init__(self, cluster: KRaftCluster, poller: ClusterPoller, clients: list[KeptClient]) -> None:
        self._cluster = cluster
        self._poller = poller
        self._clients = clients
        self._told = asyncio.Event()
        poller.add_listener(self._hear)

    @property
    def view(self) -> Snapshot:
        view = self._poller.observation.view
        assert view is not None
        return view

    async def wait_until(self, is_seen: Callable[[Snapshot], bool]) -> None:
        """Wait until a view satisfies the condition."""
        async with asyncio.timeout(_SEEN_WITHIN_S):
            while self._poller.observation.view is None or not is_seen(self.view):
                self._told.clear()
                await self._told.wait()

    async def use(self, seconds: float) -> Used:
        """Measure the use in this time, while nobody changes anything."""
        before, own, answers, waited_s = used_by(self._cluster), time.process_time(), *self._count_requests()
        await asyncio.sleep(seconds)
        spent = [(after - was) / seconds for was, after in zip(before, used_by(self._cluster), strict=True)]
        after, waited_after_s = self._count_requests()
        return Used(
            brokers=sorted(spent, reverse=True),
            poller=(time.process_time() - own) / seconds,
            answers=(after - answers) / seconds,
            waited=(waited_after_s - waited_s) / seconds,
        )

    def _count_requests(self) -> tuple[int, float]:
        return sum(each.answers for each in self._clients), sum(each.waited_s for each in self._clients)

    def _hear(self, _: Observation) -> None:
        self._told.set()


def used_by(cluster: KRaftCluster) -> list[float]:
    """Return the processor seconds of each broker so far."""
    return [cpu_s(each.process.pid) for each in cluster.brokers.values()]


def client_of(cluster: KRaftCluster) -> RequestClient:
    """Return another client."""
    return RequestClient(parse_addresses(cluster.bootstrap_servers))


async def create_topics(cluster: KRaftCluster, topics: int, partitions: int) -> None:
    """Create topics `topic-00000` and so on, each partition with two replicas, spread over all brokers."""
    client, brokers, gate = client_of(cluster), [*map(BrokerId, cluster.brokers)], asyncio.Semaphore(_CREATED_AT_ONCE)

    async def create(number: int) -> None:
        async with gate:
            await ask_for_topic(creation(topic_name(number), partitions, brokers[number % 3 :] + brokers), client)

    await asyncio.gather(*map(create, range(topics)))


def topic_name(number: int) -> TopicName:
    return TopicName(f"topic-{number:05}")


def creation(name: TopicName, partitions: int, brokers: Sequence[BrokerId]) -> CreateTopic:
    """Return a creation of a topic whose partitions have two replicas, on the first two brokers."""
    replicas = ReplicaAssignment(replicas=(brokers[0], brokers[1]))
    assignment = TopicAssignment(topic_id=None, partitions=dict.fromkeys(_numbers(partitions), replicas))
    return CreateTopic(topic=name, assignment=assignment, config={})


def _numbers(partitions: int) -> Iterator[PartitionId]:
    return map(PartitionId, range(partitions))


@asynccontextmanager
async def watch(cluster: KRaftCluster, pace: Pace | None = None) -> AsyncIterator[Watched]:
    """Run the poller, at the operator's pace unless `pace` sets another."""
    clients: list[KeptClient] = []

    def open_client() -> tuple[KeptClient, str]:
        clients.append(KeptClient(parse_addresses(cluster.bootstrap_servers)))
        return clients[-1], "PLAINTEXT"

    poller = ClusterPoller(open_client, pace=pace)
    found = Watched(cluster, poller, clients)
    poller.start()
    try:
        await found.wait_until(lambda _: True)
        yield found
    finally:
        await poller.stop()


async def warm_up(cluster: KRaftCluster, seconds: float) -> None:
    """Poll the brokers until their code is compiled."""
    async with watch(cluster, WITHOUT_A_PAUSE):
        await asyncio.sleep(seconds)

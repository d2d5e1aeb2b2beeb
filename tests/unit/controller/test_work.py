"""Twice the partitions of one topic are twice the work.

All of them are in one znode and in one plan, so code that reads either for each of them is quadratic. The tests count
work: calls of functions, and bytes to and from ZooKeeper. So other processes do not disturb them.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any, Final

import pytest

from controller_core.controller.loop.events import BalanceDue
from controller_core.model.ids import TopicName, TopicPartition
from controller_core.model.metadata import TopicAssignment
from controller_core.wire.messages import AlterPartitionRequest
from controller_core.zk import codecs, paths
from controller_core.zk.session import SessionId, WriteOp, ZkNode
from simulation.checks import simulate_cluster
from simulation.cluster import Cluster, alter_partition, alter_reassignments, tp
from simulation.zookeeper_tree import ZnodeTree

FEW: Final = 300
AT_MOST: Final = 2.6
"""The highest factor of the work for twice the partitions. Work that is done once makes it less than two, the longer
numbers of partitions make it more."""


@dataclass(slots=True)
class Work:
    """The work that an act took."""

    calls: int = 0
    zookeeper_bytes: int = 0


class CountingTree(ZnodeTree):
    """Counts the bytes of data that are read and written."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def read(self, path: str) -> ZkNode | None:
        node = super().read(path)
        self._work.zookeeper_bytes += len(node.data) if node else 0
        return node

    def apply(self, ops: Sequence[WriteOp], session_id: SessionId) -> Any:
        self._work.zookeeper_bytes += sum(len(getattr(op, "data", b"")) for op in ops)
        return super().apply(ops, session_id)


async def work_of(act: Awaitable[object], cluster: Cluster) -> Work:
    tree = cluster.zk.tree
    assert isinstance(tree, CountingTree)
    work = tree._work
    work.calls = work.zookeeper_bytes = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        work.calls += event == "call"

    sys.setprofile(count)
    try:
        await act
    finally:
        sys.setprofile(None)
    return Work(calls=work.calls, zookeeper_bytes=work.zookeeper_bytes)


Step = Callable[[Cluster, list[TopicPartition]], Awaitable[Awaitable[object]]]
"""Brings a cluster with a topic to the state before the act; returns the act."""


async def work(count: int, step: Step) -> Work:
    async with simulate_cluster() as cluster:
        cluster.zk.tree, kept = CountingTree(Work()), cluster.zk.tree
        cluster.zk.tree._entries, cluster.zk.tree.zxid = kept._entries, kept.zxid
        cluster.start_brokers(1, 2, 3, 4)
        await cluster.serve()
        cluster.create_topic("large", *replicas(count))
        await cluster.settle()
        partitions = [tp("large", number) for number in range(count)]
        return await work_of(await step(cluster, partitions), cluster)


def replicas(count: int) -> list[list[int]]:
    return [[1 + number % 3, 1 + (number + 1) % 3] for number in range(count)]


async def creation(cluster: Cluster, partitions: list[TopicPartition]) -> Awaitable[object]:
    cluster.create_topic("another", *replicas(len(partitions)))
    return cluster.settle()


async def growth(cluster: Cluster, partitions: list[TopicPartition]) -> Awaitable[object]:
    cluster.add_partitions("large", *replicas(len(partitions)))
    return cluster.settle()


async def deletion(cluster: Cluster, _: list[TopicPartition]) -> Awaitable[object]:
    cluster.request_deletion("large")
    return cluster.settle()


async def death_during_deletion(cluster: Cluster, _: list[TopicPartition]) -> Awaitable[object]:
    cluster.create_topic("moving", [2, 3])
    await cluster.settle()
    cluster.broker(2).hang()
    await cluster.request(alter_reassignments({tp("moving"): [2, 4]}))
    cluster.request_deletion("large")
    await cluster.settle()
    cluster.kill_broker(1)
    return cluster.settle()


async def death(cluster: Cluster, _: list[TopicPartition]) -> Awaitable[object]:
    cluster.kill_broker(1)
    return cluster.settle()


async def death_of_all(cluster: Cluster, _: list[TopicPartition]) -> Awaitable[object]:
    for number in (1, 2, 3):
        cluster.kill_broker(number)
    return cluster.settle()


async def return_(cluster: Cluster, _: list[TopicPartition]) -> Awaitable[object]:
    cluster.kill_broker(1)
    await cluster.settle()
    cluster.start_broker(1)
    return cluster.settle()


async def failure_of_a_log_directory(cluster: Cluster, partitions: list[TopicPartition]) -> Awaitable[object]:
    cluster.fail_log_dir(1, *partitions)
    return cluster.settle()


async def takeover(cluster: Cluster, _: list[TopicPartition]) -> Awaitable[object]:
    await cluster.active.kill()
    cluster.start_controller()
    return cluster.settle()


async def shut_down(cluster: Cluster, _: list[TopicPartition]) -> Awaitable[object]:
    return cluster.shut_down(1)


async def unclean_elections(cluster: Cluster, _: list[TopicPartition]) -> Awaitable[object]:
    for number in (1, 2, 3):
        cluster.kill_broker(number)
        await cluster.settle()
    cluster.start_brokers(1, 2)
    await cluster.settle()
    cluster.alter_config("topics/large", {"unclean.leader.election.enable": "true"})
    return cluster.settle()


async def return_broker(cluster: Cluster, partitions: list[TopicPartition]) -> None:
    """A broker died and is back in sync, and leads nothing."""
    cluster.kill_broker(1)
    await cluster.settle()
    cluster.start_broker(1)
    await cluster.settle()
    await cluster_in_sync(cluster, partitions, at_once=len(partitions))
    assert not any(cluster.broker(1).leads(partition) for partition in partitions)


async def elect_preferred(cluster: Cluster, partitions: list[TopicPartition]) -> Awaitable[object]:
    await return_broker(cluster, partitions)
    cluster.request_election(*partitions)
    return cluster.settle()


async def balance(cluster: Cluster, partitions: list[TopicPartition]) -> Awaitable[object]:
    await return_broker(cluster, partitions)
    cluster.active.term.enqueue(BalanceDue())
    return cluster.settle()


async def alter_partition_requests(cluster: Cluster, partitions: list[TopicPartition]) -> Awaitable[object]:
    cluster.kill_broker(1)
    await cluster.settle()
    cluster.start_broker(1)
    await cluster.settle()
    return cluster_in_sync(cluster, partitions, at_once=len(partitions))


def elsewhere(partitions: Iterable[TopicPartition]) -> dict[TopicPartition, list[int]]:
    return {partition: [4, 1 + (partition.partition + 1) % 3] for partition in partitions}


async def reassignment_by_request(cluster: Cluster, partitions: list[TopicPartition]) -> Awaitable[object]:
    return cluster.request(alter_reassignments(elsewhere(partitions)))


async def reassignment_by_plan(cluster: Cluster, partitions: list[TopicPartition]) -> Awaitable[object]:
    cluster.request_reassignment(elsewhere(partitions))
    return cluster.settle()


async def cancellation(cluster: Cluster, partitions: list[TopicPartition]) -> Awaitable[object]:
    await cluster.request(alter_reassignments(elsewhere(partitions)))
    return cluster.request(alter_reassignments(dict.fromkeys(partitions)))


async def another_target(cluster: Cluster, partitions: list[TopicPartition]) -> Awaitable[object]:
    await cluster.request(alter_reassignments(elsewhere(partitions)))
    return cluster.request(alter_reassignments({p: [1, 2, 3] for p in partitions}))


async def completion_in_many_requests(cluster: Cluster, partitions: list[TopicPartition]) -> Awaitable[object]:
    cluster.request_reassignment(elsewhere(partitions))
    await cluster.settle()
    return cluster_in_sync(cluster, partitions, at_once=5)


async def completion_without_deletions_in_many_requests(
    cluster: Cluster, partitions: list[TopicPartition]
) -> Awaitable[object]:
    await cluster.request(alter_reassignments({p: [1, 2, 3] for p in partitions}))
    return cluster_in_sync(cluster, partitions, at_once=5)


async def death_of_who_is_added(cluster: Cluster, partitions: list[TopicPartition]) -> Awaitable[object]:
    cluster.request_reassignment(elsewhere(partitions))
    await cluster.settle()
    cluster.kill_broker(4)
    return cluster.settle()


async def deletion_during_a_reassignment(cluster: Cluster, partitions: list[TopicPartition]) -> Awaitable[object]:
    cluster.request_reassignment(elsewhere(partitions))
    await cluster.settle()
    cluster.request_deletion("large")
    return cluster.settle()


async def cluster_in_sync(cluster: Cluster, partitions: list[TopicPartition], *, at_once: int) -> None:
    """Let every leader report all replicas of its partitions, so many in one request, without waiting for answers."""
    answers = []
    for number in (1, 2, 3, 4):
        led = [partition for partition in partitions if cluster.broker(number).leads(partition)]
        for start in range(0, len(led), at_once):
            request = all_in_sync(cluster, number, led[start : start + at_once])
            answers.append(asyncio.create_task(cluster.active.answer(request)))
    await cluster.settle()
    assert all(answer.done() for answer in answers)
    assert not cluster.active.term.state.reassignments


def all_in_sync(cluster: Cluster, leader: int, partitions: Sequence[TopicPartition]) -> AlterPartitionRequest:
    broker = cluster.broker(leader)
    topic_id = broker.metadata.topic_ids[partitions[0].topic]
    requests = [
        alter_partition(broker, topic_id, partition, broker.replicas[partition], broker.replicas[partition].replicas)
        for partition in partitions
    ]
    states = tuple(request.topics[0].partitions[0] for request in requests)
    return replace(requests[0], topics=(requests[0].topics[0]._replace(partitions=states),))


STEPS: Final[list[Step]] = [
    creation, growth, deletion, death_during_deletion, death, death_of_all, return_, failure_of_a_log_directory, takeover,
    shut_down, unclean_elections, elect_preferred, balance, alter_partition_requests,
    reassignment_by_request, reassignment_by_plan, cancellation, another_target, completion_in_many_requests,
    completion_without_deletions_in_many_requests, death_of_who_is_added, deletion_during_a_reassignment,
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
async def test_twice_the_partitions_of_a_topic_are_twice_the_work(step: Step) -> None:
    few, many = await work(FEW, step), await work(2 * FEW, step)
    assert few.calls > FEW, "the step does nothing"
    assert many.calls < AT_MOST * few.calls
    assert many.zookeeper_bytes <= AT_MOST * few.zookeeper_bytes


async def test_a_topic_is_decoded_once_while_its_partitions_are_reassigned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller does not read back its own writes, however often it rewrites the topic."""
    decoded: list[TopicName] = []
    decode = codecs.decode_topic

    def count_decoded(topic: TopicName, data: bytes) -> TopicAssignment:
        decoded.append(topic)
        return decode(topic, data)

    monkeypatch.setattr(codecs, "decode_topic", count_decoded)
    async with simulate_cluster() as cluster:
        cluster.start_brokers(1, 2, 3, 4)
        await cluster.serve()
        cluster.create_topic("large", *replicas(120))
        await cluster.settle()
        partitions = [tp("large", number) for number in range(120)]
        await cluster.request(alter_reassignments(elsewhere(partitions)))
        decoded.clear()
        version = cluster.zk.tree.read(paths.topic(partitions[0].topic))
        await cluster_in_sync(cluster, partitions, at_once=5)
        written = cluster.zk.tree.read(paths.topic(partitions[0].topic))
        assert version is not None
        assert written is not None
        assert written.version > version.version + 1
        assert decoded == []

"""`waitTillStateChangeRequestConsumed`, and a wait for the leader's changes."""

import asyncio
from collections.abc import Callable, Iterable

from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.zk.session import ZkSession
from replica_broker.v2.znodes import paths
from replica_broker.v2.znodes.partitions import PartitionZnodes, read_partition
from replica_broker.v2.znodes.state_change_queue import StateChangeQueue


async def wait_till_state_change_request_consumed(
    zk: ZkSession, replicas: Iterable[BrokerId], topic_partition: TopicPartition, timeout_ms: int
) -> bool:
    """Wait until these brokers' queues have no request for the partition. Return False after the timeout.

    Raises the errors of ZooKeeper.
    """
    brokers = tuple(replicas)
    changed = asyncio.Event()
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            while True:
                changed.clear()
                for broker in brokers:
                    await zk.children_watched(paths.state(broker), lambda _: changed.set())
                if not await _is_left(zk, brokers, topic_partition):
                    return True
                await changed.wait()
    except TimeoutError:
        return False


async def wait_until(
    zk: ZkSession, where: TopicPartition, is_so: Callable[[PartitionZnodes], bool], timeout_ms: int
) -> bool:
    """Wait until a partition's assignment or reassignment fulfils a condition. Return False after the timeout.

    Raises the errors of ZooKeeper.
    """
    changed = asyncio.Event()
    watched = (paths.replicas(where), paths.reassignment(where))
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            while True:
                changed.clear()
                await zk.read_watched(watched, lambda _: lambda _: changed.set())
                if is_so(await read_partition(zk, where)):
                    return True
                await changed.wait()
    except TimeoutError:
        return False


async def _is_left(zk: ZkSession, brokers: tuple[BrokerId, ...], topic_partition: TopicPartition) -> bool:
    for broker in brokers:
        requests = await StateChangeQueue(zk, broker, bound=0).requests()
        if any(request.topic_partition == topic_partition for _, request in requests):
            return True
    return False

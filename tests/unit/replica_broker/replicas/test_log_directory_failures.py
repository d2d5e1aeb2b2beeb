"""A log directory fails: its replicas go offline, all others live on, and the controller can learn of it."""

import asyncio

import pytest

from controller_core.model.ids import TopicPartition
from controller_core.wire.messages import ErrorCode
from replica_broker.replicas.errors import StorageFailed
from simulation.fast_loop import run_fast
from tests.unit.replica_broker.replicas.cluster import ORDERS, ORDERS_1, A, B, Cluster, play


def break_directory(cluster: Cluster, topic_partition: TopicPartition = ORDERS) -> None:
    """Break the directory of A that has the partition. A's two partitions are in two directories."""
    path = str(cluster.directories[A].find_path(topic_partition))
    cluster.disks[A].broken = lambda each: each.startswith(path)


async def two_partitions(cluster: Cluster, *replicas: int) -> None:
    for topic_partition in (ORDERS, ORDERS_1):
        await cluster.create(*replicas, topic_partition=topic_partition)  # type: ignore[arg-type]
        await cluster.produce(replicas[0], "one", to=topic_partition)  # type: ignore[arg-type]
    assert cluster.directories[A].find_path(ORDERS) != cluster.directories[A].find_path(ORDERS_1)


def test_a_leader_whose_directory_fails_answers_so_and_the_others_lead_on() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await two_partitions(cluster, A, B)
        waiting = asyncio.create_task(cluster.consume(A, 1, max_wait_ms=10**9))
        await asyncio.sleep(1)
        break_directory(cluster)
        with pytest.raises(StorageFailed):
            await cluster.produce(A, "two")
        assert cluster.directory_failures == [A]
        assert (await waiting).error_code is ErrorCode.kafka_storage_error
        assert (await cluster.consume(A, 0)).error_code is ErrorCode.kafka_storage_error
        await cluster.produce(A, "two", to=ORDERS_1)
        assert cluster.values(B, ORDERS_1) == ["one", "two"]
        await asyncio.sleep(60)  # checkpoints, retention, ISRs: none of it minds
        assert cluster.directory_failures == [A]

    run_fast(play(scenario, Cluster()))


def test_the_controller_that_asks_is_told_which_replicas_are_offline() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await two_partitions(cluster, A, B)
        break_directory(cluster)
        with pytest.raises(StorageFailed):
            await cluster.produce(A, "two")
        assert (await cluster.tell(ORDERS))[A] is ErrorCode.kafka_storage_error
        assert (await cluster.tell(ORDERS_1))[A] is ErrorCode.stale_controller_epoch
        assert await cluster.stop_replica(A, leader_epoch=-2, delete=True) is ErrorCode.kafka_storage_error

    run_fast(play(scenario, Cluster()))


def test_a_follower_whose_directory_fails_follows_the_others_on() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await two_partitions(cluster, B, A)
        break_directory(cluster)
        await cluster.produce(B, "two", timeout_ms=60_000)
        assert cluster.partition(B).isr == (B,)
        assert cluster.directory_failures == [A]
        await cluster.produce(B, "two", to=ORDERS_1)
        assert cluster.values(A, ORDERS_1) == ["one", "two"]

    run_fast(play(scenario, Cluster()))


def test_a_directory_that_fails_in_a_checkpoint_takes_its_replicas_offline() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await two_partitions(cluster, A)
        break_directory(cluster)
        await cluster.wait_until(lambda: cluster.partition(A).is_offline)
        assert cluster.directory_failures == [A]
        assert not cluster.partition(A, ORDERS_1).is_offline

    run_fast(play(scenario, Cluster()))


def test_a_new_partition_is_created_beside_a_failed_directory_only_where_it_is_new() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await two_partitions(cluster, A)
        break_directory(cluster)
        await cluster.wait_until(lambda: cluster.partition(A).is_offline)
        later = ORDERS._replace(partition=2)  # type: ignore[arg-type]
        await cluster.create(A, topic_partition=later)
        assert later not in cluster.running[A].hosted
        assert (await cluster.tell(later, is_new=True))[A] is ErrorCode.none
        assert cluster.partition(A, later).is_leader

    run_fast(play(scenario, Cluster()))

"""Deleted records: the leader deletes committed records, and all live replicas follow."""

import asyncio
from dataclasses import replace

import pytest

from controller_core.model.ids import NO_EPOCH, PartitionId, TopicName, TopicPartition
from controller_core.wire.messages import ErrorCode
from replica_broker.log.config import LogConfig
from replica_broker.replicas.requests import EARLIEST, TO_HIGH_WATERMARK, Deleted
from simulation.fast_loop import run_fast
from tests.unit.replica_broker.replicas.cluster import ORDERS, ORDERS_1, A, B, C, Cluster, play

SMALL = LogConfig(segment_bytes=200)


async def delete_records(cluster: Cluster, offset: int, *, timeout_ms: int = 10_000) -> Deleted:
    answers = await cluster.running[A].delete_records({ORDERS: offset}, timeout_ms=timeout_ms)
    return answers[ORDERS]


async def start_replicas(cluster: Cluster, count: int = 6) -> None:
    """Three replicas with so many messages, one a batch."""
    cluster.configs.config = SMALL
    cluster.start(A, B, C)
    await cluster.create(A, B, C)
    for number in range(count):
        await cluster.produce(A, f"{number}" * 40)


def starts(cluster: Cluster) -> list[int]:
    return [cluster.partition(broker).log.log_start_offset for broker in (A, B, C)]


def test_what_is_deleted_is_deleted_on_all_replicas_when_that_is_answered() -> None:
    async def scenario(cluster: Cluster) -> None:
        await start_replicas(cluster)
        segments = cluster.partition(A).log.segments_count
        assert await delete_records(cluster, 4) == Deleted(low_watermark=4)
        assert starts(cluster) == [4, 4, 4]
        assert [cluster.partition(broker).log.segments_count for broker in (A, B, C)] < [segments] * 3
        earliest = cluster.running[A].list_offset(ORDERS, EARLIEST, current_leader_epoch=NO_EPOCH)
        assert earliest.offset == 4
        assert (await cluster.consume(A, 3)).error_code is ErrorCode.offset_out_of_range
        assert (await cluster.consume(A, 4)).error_code is ErrorCode.none

    run_fast(play(scenario, Cluster()))


def test_a_new_replica_catches_up_with_a_log_that_starts_within_a_batch() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B, C, isr=[A, B])
        await cluster.produce(A, *"0123456789")
        assert await delete_records(cluster, 5) == Deleted(low_watermark=5)
        cluster.start(C)
        await cluster.tell()
        await cluster.wait_until_in_sync(A, A, B, C)
        await cluster.produce(A, "ten")
        assert starts(cluster) == [5, 5, 5]
        assert cluster.log_bytes(C) == cluster.log_bytes(A)

    run_fast(play(scenario, Cluster()))


def test_all_that_is_committed_can_be_deleted_and_the_log_goes_on() -> None:
    async def scenario(cluster: Cluster) -> None:
        await start_replicas(cluster)
        assert await delete_records(cluster, TO_HIGH_WATERMARK) == Deleted(low_watermark=6)
        assert await cluster.produce(A, "more") == 6
        assert {offset for offset in cluster.messages(B) if offset >= 6} == {6}

    run_fast(play(scenario, Cluster()))


def test_what_was_deleted_before_is_no_error() -> None:
    async def scenario(cluster: Cluster) -> None:
        await start_replicas(cluster)
        await delete_records(cluster, 4)
        assert await delete_records(cluster, 2) == Deleted(low_watermark=4)

    run_fast(play(scenario, Cluster()))


@pytest.mark.parametrize("offset", [7, 2**63 - 1, -2, -(2**63)])
def test_what_is_not_committed_is_not_deleted(offset: int) -> None:
    async def scenario(cluster: Cluster) -> None:
        await start_replicas(cluster)
        await cluster.crash(B)
        await cluster.produce(A, "not committed", acks=1)
        assert (await delete_records(cluster, offset)).error_code is ErrorCode.offset_out_of_range
        assert cluster.partition(A).log.log_start_offset == 0

    run_fast(play(scenario, Cluster()))


def test_each_partition_is_judged_for_itself() -> None:
    unknown = TopicPartition(TopicName("unknown"), PartitionId(0))

    async def scenario(cluster: Cluster) -> None:
        await start_replicas(cluster)
        await cluster.create(B, A, topic_partition=ORDERS_1)
        answers = await cluster.running[A].delete_records({unknown: 1, ORDERS_1: 0, ORDERS: 3}, timeout_ms=10_000)
        assert answers == {
            unknown: Deleted(error_code=ErrorCode.unknown_topic_or_partition),
            ORDERS_1: Deleted(error_code=ErrorCode.not_leader_or_follower),
            ORDERS: Deleted(low_watermark=3),
        }

    run_fast(play(scenario, Cluster()))


def test_a_topic_that_is_only_compacted_is_not_to_be_deleted_from() -> None:
    async def scenario(cluster: Cluster) -> None:
        await start_replicas(cluster)
        cluster.configs.config = replace(SMALL, is_deleted=False)
        await cluster.running[A].on_topic_configs_changed(ORDERS.topic)
        assert (await delete_records(cluster, 3)).error_code is ErrorCode.policy_violation
        assert starts(cluster) == [0, 0, 0]

    run_fast(play(scenario, Cluster()))


def test_a_follower_that_hangs_is_waited_for_until_the_time_is_over_and_deletes_later() -> None:
    async def scenario(cluster: Cluster) -> None:
        await start_replicas(cluster)
        cluster.network.cut(A, C)
        answer = await delete_records(cluster, 4, timeout_ms=3_000)
        assert answer == Deleted(low_watermark=0, error_code=ErrorCode.request_timed_out)
        assert starts(cluster) == [4, 4, 0]
        cluster.network.mend()
        await cluster.wait_until(lambda: starts(cluster) == [4, 4, 4])
        assert await delete_records(cluster, 4) == Deleted(low_watermark=4)

    run_fast(play(scenario, Cluster()))


def test_a_follower_that_dies_meanwhile_is_not_waited_for() -> None:
    async def scenario(cluster: Cluster) -> None:
        await start_replicas(cluster)
        cluster.network.cut(A, C)
        waiting = asyncio.create_task(delete_records(cluster, 4, timeout_ms=600_000))
        await cluster.wait_until(lambda: starts(cluster)[:2] == [4, 4])
        assert not waiting.done()
        await cluster.crash(C)
        cluster.running[A].on_brokers_changed()
        assert await waiting == Deleted(low_watermark=4)

    run_fast(play(scenario, Cluster()))


def test_who_waits_for_a_leader_that_is_none_any_more_is_told_so() -> None:
    async def scenario(cluster: Cluster) -> None:
        await start_replicas(cluster)
        cluster.network.cut(A, C)
        waiting = asyncio.create_task(delete_records(cluster, 4, timeout_ms=600_000))
        await cluster.wait_until(lambda: starts(cluster)[:2] == [4, 4])
        await cluster.elect(B, [A, B, C])
        assert (await waiting).error_code is ErrorCode.not_leader_or_follower

    run_fast(play(scenario, Cluster()))


def test_what_was_answered_for_does_not_come_back_after_a_crash() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await cluster.create(A)
        for number in range(6):
            await cluster.produce(A, f"{number}")
        assert await delete_records(cluster, 4) == Deleted(low_watermark=4)
        await cluster.crash(A)
        cluster.start(A)
        await cluster.tell(brokers=[A])
        await cluster.elect(A, [A])
        assert cluster.partition(A).log.log_start_offset == 4
        assert cluster.partition(A).high_watermark >= 4

    run_fast(play(scenario, Cluster()))


def test_a_directory_that_fails_is_told_and_harms_no_other_partition() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.configs.config = SMALL
        cluster.start(A)
        await cluster.create(A)
        await cluster.create(A, topic_partition=ORDERS_1)
        for number in range(6):
            await cluster.produce(A, f"{number}" * 40)
            await cluster.produce(A, f"{number}" * 40, to=ORDERS_1)
        failing = cluster.partition(A).log.folder
        cluster.disks[A].broken = lambda path: path.startswith(str(failing))
        answers = await cluster.running[A].delete_records({ORDERS: 5, ORDERS_1: 5}, timeout_ms=10_000)
        assert answers == {
            ORDERS: Deleted(error_code=ErrorCode.kafka_storage_error),
            ORDERS_1: Deleted(low_watermark=5),
        }

    run_fast(play(scenario, Cluster()))

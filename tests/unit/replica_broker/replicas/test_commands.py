"""The controller's commands: judged partition by partition, and obeyed if the epoch is larger."""

import asyncio
from dataclasses import replace
from uuid import UUID

import pytest

from controller_core.model.ids import BrokerId, LeaderEpoch, PartitionEpoch, TopicId
from controller_core.wire.messages import ErrorCode
from replica_broker.replicas.errors import NotLeader, UnknownPartition
from replica_broker.replicas.settings import ReplicaSettings
from simulation.fast_loop import run_fast
from tests.unit.replica_broker.replicas.cluster import (
    ORDERS,
    ORDERS_1,
    ORDERS_ID,
    A,
    B,
    C,
    Cluster,
    State,
    command,
    play,
)

LED_BY_A = State(replicas=(A, B), isr=(A, B), leader=A, leader_epoch=LeaderEpoch(5), partition_epoch=PartitionEpoch(8))
OTHER_ID = TopicId(UUID(int=0xDEAD))


async def send_state(cluster: Cluster, state: State, topic_id: TopicId | None = ORDERS_ID) -> ErrorCode:
    request = command(ORDERS, state, cluster.running, topic_id=topic_id)
    response = await cluster.running[A].on_leader_and_isr_command(request)
    assert response.error_code is ErrorCode.none
    assert response.topics[0].topic_id == topic_id
    return response.topics[0].partition_errors[0].error_code


def test_only_a_larger_leader_epoch_is_obeyed() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        assert await send_state(cluster, LED_BY_A) is ErrorCode.none
        assert cluster.partition(A).is_leader
        for epoch in (4, 5):
            older = replace(LED_BY_A, leader=B, leader_epoch=LeaderEpoch(epoch))
            assert await send_state(cluster, older) is ErrorCode.stale_controller_epoch
        assert cluster.partition(A).is_leader
        assert await send_state(cluster, replace(LED_BY_A, leader=B, leader_epoch=LeaderEpoch(6))) is ErrorCode.none
        assert not cluster.partition(A).is_leader

    run_fast(play(scenario, Cluster()))


def test_a_leader_ignores_a_state_that_is_older_than_the_one_it_knows() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await send_state(cluster, LED_BY_A)
        older = replace(LED_BY_A, leader_epoch=LeaderEpoch(6), partition_epoch=PartitionEpoch(7))
        assert await send_state(cluster, older) is ErrorCode.none
        assert cluster.partition(A).leader_epoch == 5

    run_fast(play(scenario, Cluster()))


def test_a_replica_of_another_topic_of_the_same_name_is_left_alone() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await send_state(cluster, LED_BY_A)
        await cluster.produce(A, "one", acks=1)
        later = replace(LED_BY_A, leader_epoch=LeaderEpoch(6))
        assert await send_state(cluster, later, OTHER_ID) is ErrorCode.inconsistent_topic_id
        assert cluster.values(A) == ["one"]
        await cluster.crash(A)
        cluster.start(A)
        assert await send_state(cluster, later, OTHER_ID) is ErrorCode.inconsistent_topic_id
        assert await send_state(cluster, later) is ErrorCode.none
        assert cluster.values(A) == ["one"]

    run_fast(play(scenario, Cluster()))


def test_a_topic_id_is_learned_without_a_larger_epoch() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        assert await send_state(cluster, LED_BY_A, None) is ErrorCode.none
        assert await send_state(cluster, LED_BY_A, None) is ErrorCode.stale_controller_epoch
        assert await send_state(cluster, LED_BY_A) is ErrorCode.none
        assert cluster.partition(A).topic_id == ORDERS_ID
        assert cluster.directories[A].find_topic_id(ORDERS) == ORDERS_ID
        assert await send_state(cluster, LED_BY_A) is ErrorCode.stale_controller_epoch

    run_fast(play(scenario, Cluster()))


def test_a_broker_that_is_no_replica_refuses() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        elsewhere = replace(LED_BY_A, replicas=(B, C), isr=(B, C), leader=B)
        assert await send_state(cluster, elsewhere) is ErrorCode.unknown_topic_or_partition
        assert ORDERS not in cluster.running[A].hosted

    run_fast(play(scenario, Cluster()))


def test_what_a_command_does_not_list_stays() -> None:
    """The seed's INIT would delete it; no controller sends that."""

    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await cluster.create(A, topic_partition=ORDERS_1)
        await send_state(cluster, LED_BY_A)
        assert set(cluster.running[A].hosted) == {ORDERS, ORDERS_1}

    run_fast(play(scenario, Cluster()))


@pytest.mark.parametrize("epoch", [-2, -1, 5, 6])
def test_a_replica_is_stopped_and_deleted_by_an_epoch_that_is_not_smaller_or_by_none(epoch: int) -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await send_state(cluster, LED_BY_A)
        await cluster.produce(A, "one", acks=1)
        assert await cluster.stop_replica(A, leader_epoch=epoch, delete=True) is ErrorCode.none
        assert ORDERS not in cluster.running[A].hosted
        assert cluster.directories[A].find_log(ORDERS) is None
        with pytest.raises(UnknownPartition):
            await cluster.produce(A, "two")
        assert await cluster.stop_replica(A, leader_epoch=epoch, delete=True) is ErrorCode.none
        assert await send_state(cluster, LED_BY_A, OTHER_ID) is ErrorCode.none
        assert cluster.values(A) == []

    run_fast(play(scenario, Cluster()))


def test_an_older_epoch_stops_nothing() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await send_state(cluster, LED_BY_A)
        assert await cluster.stop_replica(A, leader_epoch=4, delete=True) is ErrorCode.fenced_leader_epoch
        assert cluster.partition(A).is_leader

    run_fast(play(scenario, Cluster()))


def test_a_log_that_nobody_asked_for_is_deleted_when_that_is_said() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await send_state(cluster, LED_BY_A)
        await cluster.crash(A)
        cluster.start(A)
        assert cluster.directories[A].find_log(ORDERS) is not None
        assert await cluster.stop_replica(A, leader_epoch=-2, delete=False) is ErrorCode.none
        assert cluster.directories[A].find_log(ORDERS) is not None
        assert await cluster.stop_replica(A, leader_epoch=-2, delete=True) is ErrorCode.none
        assert cluster.directories[A].find_log(ORDERS) is None

    run_fast(play(scenario, Cluster()))


def test_a_replica_that_is_stopped_and_kept_follows_nobody_until_the_next_command() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.produce(A, "one")
        assert await cluster.stop_replica(B, leader_epoch=0, delete=False) is ErrorCode.none
        await cluster.produce(A, "two", timeout_ms=60_000)
        assert cluster.values(B) == ["one"]
        assert cluster.partition(A).isr == (A,)
        await cluster.elect(A, [A])
        await cluster.wait_until_in_sync(A, A, B)
        assert cluster.values(B) == ["one", "two"]

    run_fast(play(scenario, Cluster()))


def test_who_waits_at_a_leader_that_is_deleted_is_told() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await cluster.create(A, B)
        producing = asyncio.create_task(cluster.produce(A, "one"))
        consuming = asyncio.create_task(cluster.consume(A, 0, max_wait_ms=10**9))
        await asyncio.sleep(1)
        await cluster.stop_replica(A, leader_epoch=-2, delete=True)
        with pytest.raises(NotLeader):
            await producing
        assert (await consuming).error_code in (
            ErrorCode.unknown_topic_or_partition,
            ErrorCode.not_leader_or_follower,
        )

    run_fast(play(scenario, Cluster()))


def test_truncated_to_the_high_watermark_as_the_seed_has_it_a_follower_cuts_what_it_does_not_know_to_be_committed() -> (
    None
):
    def make_settings(broker: BrokerId) -> ReplicaSettings:
        return ReplicaSettings(broker_id=broker, truncate_to="high watermark", flush_interval_ms=None)

    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.produce(A, "one")
        await cluster.wait_until(lambda: cluster.partition(B).high_watermark == 1)
        await cluster.produce(A, "two")
        assert cluster.partition(B).high_watermark == 1
        cluster.network.stop(A)
        await cluster.elect(A, [A, B], tells=[B])
        assert cluster.values(B) == ["one"]

    run_fast(play(scenario, Cluster(settings=make_settings)))


def test_what_only_the_old_leader_has_is_cut_by_leader_epochs_and_nothing_else() -> None:
    """KIP-101: the records that B has above its high watermark were committed by A, and stay. The records that only A
    has are removed."""

    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.produce(A, "one")
        await cluster.produce(A, "two")
        await cluster.crash(B)
        await cluster.produce(A, "only on A", acks=1)
        cluster.start(B)
        cluster.network.cut(A, B)
        await cluster.tell(brokers=[B])
        await cluster.crash(A)
        await cluster.elect(B, [B])
        await cluster.produce(B, "of B")
        cluster.network.mend()
        cluster.start(A)
        await cluster.tell()
        await cluster.wait_until_in_sync(B, A, B)
        assert cluster.values(A) == cluster.values(B) == ["one", "two", "of B"]

    run_fast(play(scenario, Cluster()))


def test_a_replica_that_led_for_a_moment_and_wrote_nothing_follows_again() -> None:
    """Its last epoch has no messages, and no other replica has that epoch."""

    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B, C)
        await cluster.create(A, B, C)
        await cluster.produce(A, "one")
        await cluster.elect(B, [A, B, C], tells=[B])
        await cluster.elect(A, [A, B, C])
        began_ms = cluster.clock.monotonic_ms()
        await cluster.produce(A, "two")
        assert cluster.values(B) == ["one", "two"]
        assert cluster.clock.monotonic_ms() - began_ms < 900

    run_fast(play(scenario, Cluster()))

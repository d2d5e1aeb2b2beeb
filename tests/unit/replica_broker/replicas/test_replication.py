"""Leaders and followers together: records are appended, fetched, committed, and acknowledged."""

import asyncio
import gc
from uuid import UUID

import pytest

from controller_core.model.ids import NO_EPOCH, NO_LEADER, BrokerId, LeaderEpoch, PartitionId, TopicId, TopicPartition
from controller_core.model.metadata import LeaderRecoveryState
from controller_core.wire.messages import ErrorCode
from replica_broker.log.config import LogConfig
from replica_broker.log.producers.markers import EndOfTransaction
from replica_broker.replicas.errors import (
    FencedLeaderEpoch,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeader,
    OffsetNotAvailable,
    ReplicationTimedOut,
    UnknownLeaderEpoch,
    UnknownPartition,
)
from replica_broker.replicas.following.applying import Applying
from replica_broker.replicas.requests import CONSUMER, EARLIEST, LATEST, MAX_TIMESTAMP, Asked, EpochEnd, Fetch, Fetched
from replica_broker.replicas.settings import ReplicaSettings
from simulation.fast_loop import run_fast
from tests.unit.replica_broker.replicas.cluster import ORDERS, A, B, C, Cluster, play
from tests.unit.replica_broker.replicas.messages import batch


def test_what_is_acknowledged_is_on_all_replicas() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B, C)
        await cluster.create(A, B, C)
        await cluster.produce(A, "one", "two")
        await cluster.produce(A, "three")
        for broker in (A, B, C):
            assert cluster.values(broker) == ["one", "two", "three"]
        assert cluster.partition(A).high_watermark == 3
        await cluster.wait_until(lambda: cluster.partition(B).high_watermark == 3)

    run_fast(play(scenario, Cluster()))


def test_without_acks_nothing_is_waited_for() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await cluster.create(A, B)
        assert await cluster.produce(A, "one", acks=1) == 0
        assert await cluster.produce(A, "two", acks=0) == 1
        assert cluster.partition(A).high_watermark == 0
        with pytest.raises(ReplicationTimedOut):
            await cluster.produce(A, "three")

    run_fast(play(scenario, Cluster()))


def test_a_follower_that_is_gone_leaves_the_isr_without_anybody_fetching_and_what_waits_is_committed() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await cluster.create(A, B)
        await cluster.produce(A, "one", timeout_ms=60_000)
        assert cluster.partition(A).isr == (A,)
        assert cluster.controller.states[ORDERS].isr == (A,)

    run_fast(play(scenario, Cluster()))


def test_a_follower_that_comes_back_joins_the_isr_again() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await cluster.create(A, B, isr=[A])
        await cluster.produce(A, "one")
        cluster.start(B)
        await cluster.tell()
        await cluster.wait_until_in_sync(A, A, B)
        assert cluster.values(B) == ["one"]

    run_fast(play(scenario, Cluster()))


def test_a_follower_joins_the_isr_of_a_partition_that_is_written_to_all_the_time() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await cluster.create(A, B, isr=[A])
        for number in range(20):
            await cluster.produce(A, f"before {number}")
        cluster.start(B)
        await cluster.tell()

        async def keep_writing() -> None:
            while True:
                await cluster.produce(A, "now", acks=1)
                await asyncio.sleep(0.001)

        writing = asyncio.create_task(keep_writing())
        await cluster.wait_until_in_sync(A, A, B)
        writing.cancel()

    run_fast(play(scenario, Cluster()))


def test_too_few_in_sync_refuse_what_asks_for_all_of_them_and_nothing_else() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.configs.min_insync = 2
        cluster.start(A)
        await cluster.create(A, B, isr=[A])
        with pytest.raises(NotEnoughReplicas):
            await cluster.produce(A, "one")
        assert cluster.values(A) == []
        await cluster.produce(A, "two", acks=1)
        assert cluster.partition(A).high_watermark == 0
        cluster.start(B)
        await cluster.tell()
        await cluster.wait_until(lambda: cluster.partition(A).high_watermark == 1)

    run_fast(play(scenario, Cluster()))


def test_who_waits_learns_that_too_few_are_in_sync_now() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        waiting = asyncio.create_task(cluster.produce(A, "one"))
        await asyncio.sleep(0)
        partition = cluster.partition(A)
        partition.replica.high_watermark = 1
        cluster.configs.min_insync, partition.isr = 2, (A,)
        partition.notify()
        with pytest.raises(NotEnoughReplicasAfterAppend):
            await waiting

    run_fast(play(scenario, Cluster()))


def test_a_topic_that_asks_for_more_replicas_than_it_has_asks_for_all_of_them() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.configs.min_insync = 3
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.produce(A, "one")

    run_fast(play(scenario, Cluster()))


def test_another_minimum_holds_at_once() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.configs.min_insync = 2
        cluster.start(A)
        await cluster.create(A, B, isr=[A])
        await cluster.produce(A, "one", acks=1)
        cluster.configs.min_insync = 1
        await cluster.running[A].on_topic_configs_changed(ORDERS.topic)
        assert cluster.partition(A).high_watermark == 1

    run_fast(play(scenario, Cluster()))


def test_a_stale_leader_commits_nothing() -> None:
    """Seed 004, discussion 3: A sleeps, B is elected with {B, C}; A wakes and still takes itself for the leader."""

    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B, C)
        await cluster.create(A, B, C)
        await cluster.produce(A, "committed")
        await cluster.elect(B, [B, C], tells=[B, C])
        stale = asyncio.create_task(cluster.produce(A, "stale", timeout_ms=300_000))
        await cluster.produce(B, "of B")
        await cluster.wait_until(lambda: any(isr.leader == A for isr in cluster.controller.writes))
        await asyncio.sleep(100)
        assert not stale.done()
        assert cluster.partition(A).high_watermark == 1
        assert (await cluster.consume(A, 1)).records == b""
        assert cluster.controller.states[ORDERS].isr == (B, C)
        await cluster.tell(brokers=[A])
        with pytest.raises(NotLeader):
            await stale
        await cluster.wait_until_in_sync(B, A, B, C)
        assert cluster.values(A) == cluster.values(B) == ["committed", "of B"]

    run_fast(play(scenario, Cluster()))


def test_an_isr_is_certain_only_when_its_answer_came_and_both_count_until_then() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await cluster.create(A, B)
        cluster.controller.answers_to_lose = 3
        await cluster.produce(A, "one", timeout_ms=60_000)
        assert [isr.isr for isr in cluster.controller.writes] == [(A,)] * 4
        cluster.controller.deaf_to.add(A)
        cluster.start(B)
        await cluster.tell()
        partition = cluster.partition(A)
        await cluster.wait_until(lambda: partition.proposed is not None)
        assert partition.maximal_isr == {A, B}
        assert partition.isr == (A,)
        await cluster.crash(B)
        with pytest.raises(ReplicationTimedOut):
            await cluster.produce(A, "two")
        cluster.controller.deaf_to.clear()
        await cluster.wait_until(lambda: partition.high_watermark == 2)

    run_fast(play(scenario, Cluster()))


def test_nothing_is_committed_without_a_member_while_it_is_uncertain_whether_it_has_left_the_isr() -> None:
    """Seed 004, discussion 3: B may still be elected by the ISR that is written."""

    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.produce(A, "committed")
        cluster.controller.deaf_to.add(A)
        await cluster.crash(B)
        partition = cluster.partition(A)
        await cluster.produce(A, "only on A", acks=1)
        await cluster.wait_until(lambda: partition.proposed is not None)
        assert partition.proposed is not None
        assert partition.proposed.isr == (A,)
        await cluster.produce(A, "this, too", acks=1)
        await asyncio.sleep(100)
        assert partition.maximal_isr == {A, B}
        assert partition.high_watermark == 1
        cluster.controller.deaf_to.clear()
        await cluster.wait_until(lambda: partition.high_watermark == 3)

    run_fast(play(scenario, Cluster()))


def test_who_may_not_join_is_not_waited_for() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        cluster.controller.ineligible.add(B)
        await cluster.create(A, B, isr=[A])
        await cluster.produce(A, "one")
        await cluster.wait_until(lambda: len(cluster.controller.writes) > 1)
        assert cluster.partition(A).isr == (A,)
        cluster.controller.ineligible.clear()
        await cluster.wait_until_in_sync(A, A, B)

    run_fast(play(scenario, Cluster()))


def test_a_leader_that_was_elected_uncleanly_reports_that_it_recovered() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.elect(B, [B], is_clean=False)
        await cluster.wait_until(
            lambda: cluster.controller.states[ORDERS].recovery_state is LeaderRecoveryState.RECOVERED
        )
        await cluster.wait_until_in_sync(B, A, B)

    run_fast(play(scenario, Cluster()))


def test_consumers_see_what_is_committed_and_nothing_yet_behind_it() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.produce(A, "committed")
        await cluster.crash(B)
        await cluster.produce(A, "only on A", "this, too", acks=1)
        seen = await cluster.consume(A, 0)
        assert seen.high_watermark == 1
        assert len(seen.records) == len(cluster.log_bytes(A)[: len(seen.records)]) > 0
        for offset in (1, 2, 3):
            between = await cluster.consume(A, offset)
            assert (between.error_code, between.records) == (ErrorCode.none, b"")
        assert (await cluster.consume(A, 4)).error_code is ErrorCode.offset_out_of_range

    run_fast(play(scenario, Cluster()))


def test_a_consumer_waits_for_what_is_committed_next() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        waiting = asyncio.create_task(cluster.consume(A, 0, max_wait_ms=60_000))
        await asyncio.sleep(5)
        assert not waiting.done()
        await cluster.produce(A, "one")
        assert (await waiting).records
        began_ms = cluster.clock.monotonic_ms()
        assert not (await cluster.consume(A, 1, max_wait_ms=1_000)).records
        assert cluster.clock.monotonic_ms() - began_ms == pytest.approx(1_000, abs=10)

    run_fast(play(scenario, Cluster()))


def test_who_waits_at_several_partitions_gets_what_came_to_any_of_them_within_the_bound_of_all() -> None:
    others = [TopicPartition(ORDERS.topic, PartitionId(number)) for number in (1, 2)]

    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        for partition in (ORDERS, *others):
            await cluster.create(A, topic_partition=partition)

        def start_waiting(min_bytes: int, max_bytes: int) -> "asyncio.Task[dict[TopicPartition, Fetched]]":
            asked = {partition: Asked(offset=0, max_bytes=1 << 20) for partition in (ORDERS, *others)}
            fetch = Fetch(partitions=asked, max_wait_ms=10**6, min_bytes=min_bytes, max_bytes=max_bytes)
            return asyncio.create_task(cluster.running[A].fetch(fetch))

        size = len(batch("x" * 100))
        all_of_it, a_part_of_it = start_waiting(2 * size, 1 << 20), start_waiting(size + 1, size + 1)
        await asyncio.sleep(1)
        await cluster.produce(A, "x" * 100, to=others[0])
        await asyncio.sleep(1)
        assert not all_of_it.done()
        await cluster.produce(A, "y" * 100, to=others[1])
        answers = await all_of_it
        assert {partition: len(answer.records) for partition, answer in answers.items()} == {
            ORDERS: 0, others[0]: size, others[1]: size
        }  # fmt: skip
        assert [answers[partition].high_watermark for partition in (ORDERS, *others)] == [0, 1, 1]
        bounded = await a_part_of_it
        assert sorted(len(answer.records) for answer in bounded.values()) == [0, 0, size]

    run_fast(play(scenario, Cluster()))


def test_a_fetch_that_waits_holds_no_records_and_reads_them_at_its_end() -> None:
    value = "held by nobody" * 10
    other = TopicPartition(ORDERS.topic, PartitionId(1))

    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.create(A, topic_partition=other)
        size = len(batch(value))
        for topic_partition in (ORDERS, other):
            await cluster.produce(A, value, to=topic_partition)

        def start_waiting(min_bytes: int, max_wait_ms: int = 10**9) -> "asyncio.Task[dict[TopicPartition, Fetched]]":
            asked = {each: Asked(offset=0, max_bytes=1 << 20) for each in (ORDERS, other)}
            fetch = Fetch(partitions=asked, max_wait_ms=max_wait_ms, min_bytes=min_bytes)
            return asyncio.create_task(cluster.running[A].fetch(fetch))

        started = [start_waiting(3 * size), start_waiting(10 * size), start_waiting(10 * size, max_wait_ms=5_000)]
        await asyncio.sleep(1)
        assert not any(isinstance(each, Fetched) and value.encode() in each.records for each in gc.get_objects())
        enough, refused, too_late = started
        await cluster.produce(A, value, to=other)
        assert [len(answer.records) for answer in (await enough).values()] == [size, 2 * size]
        cluster.partition(A, other).log.raise_log_start(1)
        late = await too_late
        assert [len(late[ORDERS].records), late[other].error_code] == [size, ErrorCode.offset_out_of_range]
        assert not refused.done()
        await cluster.elect(B, [A, B])
        answers = await refused
        assert [answer.error_code for answer in answers.values()] == [
            ErrorCode.not_leader_or_follower, ErrorCode.offset_out_of_range
        ]  # fmt: skip

    run_fast(play(scenario, Cluster()))


def test_who_waits_at_a_leader_that_is_replaced_is_told_at_once() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        waiting = asyncio.create_task(cluster.consume(A, 0, max_wait_ms=10**9))
        await asyncio.sleep(5)
        await cluster.elect(B, [A, B])
        answer = await waiting
        assert (answer.error_code, answer.leader, answer.leader_epoch) == (ErrorCode.not_leader_or_follower, B, 1)

    run_fast(play(scenario, Cluster()))


def test_epochs_of_another_leader_are_refused() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.elect(A, [A, B])

        async def error_of(asked: Asked, replica_id: BrokerId = B) -> ErrorCode:
            fetch = Fetch(partitions={ORDERS: asked}, replica_id=replica_id)
            return (await cluster.running[A].fetch(fetch))[ORDERS].error_code

        now = Asked(offset=0, max_bytes=100, current_leader_epoch=LeaderEpoch(1))
        assert await error_of(now) is ErrorCode.none
        assert await error_of(now._replace(current_leader_epoch=LeaderEpoch(0))) is ErrorCode.fenced_leader_epoch
        assert await error_of(now._replace(current_leader_epoch=LeaderEpoch(2))) is ErrorCode.unknown_leader_epoch
        assert await error_of(now, C) is ErrorCode.unknown_leader_epoch
        assert await error_of(now._replace(current_leader_epoch=NO_EPOCH), C) is ErrorCode.not_leader_or_follower
        other_id = TopicId(UUID(int=5))
        assert await error_of(now._replace(topic_id=other_id)) is ErrorCode.inconsistent_topic_id
        with pytest.raises(FencedLeaderEpoch):
            cluster.running[A].find_epoch_end(ORDERS, current_leader_epoch=LeaderEpoch(0), asked_epoch=LeaderEpoch(0))
        with pytest.raises(UnknownLeaderEpoch):
            cluster.running[A].list_offset(ORDERS, LATEST, current_leader_epoch=LeaderEpoch(2))
        with pytest.raises(NotLeader):
            await cluster.produce(B, "one")

    run_fast(play(scenario, Cluster()))


def test_a_partition_that_is_elsewhere_is_told_from_one_that_nobody_knows() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        with pytest.raises(UnknownPartition):
            await cluster.produce(A, "one")
        cluster.running[A]._is_known = lambda topic_partition: topic_partition == ORDERS
        with pytest.raises(NotLeader):
            await cluster.produce(A, "one")

    run_fast(play(scenario, Cluster()))


def test_offsets_are_listed_to_consumers_up_to_what_is_committed() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.produce(A, "one", "two")
        await cluster.crash(B)
        await cluster.produce(A, "three", acks=1)
        leader = cluster.running[A]

        def list_offset(timestamp: int, replica_id: BrokerId = CONSUMER) -> int:
            return leader.list_offset(ORDERS, timestamp, current_leader_epoch=NO_EPOCH, replica_id=replica_id).offset

        assert (list_offset(EARLIEST), list_offset(LATEST), list_offset(LATEST, B)) == (0, 2, 3)
        assert list_offset(0) == 0
        assert list_offset(2**62) == -1
        assert list_offset(MAX_TIMESTAMP) == 0
        assert leader.find_epoch_end(ORDERS, current_leader_epoch=LeaderEpoch(0), asked_epoch=LeaderEpoch(0)) == (0, 3)

    run_fast(play(scenario, Cluster()))


def test_a_new_leader_does_not_say_what_is_committed_before_it_knows() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B, C)
        await cluster.create(A, B, C)
        await cluster.produce(A, "one")
        cluster.partition(B).replica.high_watermark = 0
        await cluster.crash(A)
        await cluster.elect(B, [B, C], tells=[B])
        with pytest.raises(OffsetNotAvailable):
            cluster.running[B].list_offset(ORDERS, LATEST, current_leader_epoch=NO_EPOCH)
        await cluster.tell(brokers=[C])
        await cluster.wait_until(lambda: cluster.partition(B).high_watermark == 1)

    run_fast(play(scenario, Cluster()))


@pytest.mark.parametrize("fetchers", [1, 3])
def test_several_partitions_of_a_leader_are_fetched_together(fetchers: int) -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        partitions = [ORDERS._replace(partition=PartitionId(number)) for number in range(12)]
        for each in partitions:
            await cluster.create(A, B, topic_partition=each)
        for each in partitions:
            await cluster.produce(A, str(each), to=each)
        for each in partitions:
            assert cluster.values(B, each) == [str(each)]
        assert cluster.network.connections == {(B, A): fetchers}

    def settings(broker: BrokerId) -> ReplicaSettings:
        return ReplicaSettings(broker_id=broker, fetchers_per_leader=fetchers, flush_interval_ms=None)

    run_fast(play(scenario, Cluster(settings=settings)))


def test_a_follower_of_nobody_waits_for_a_leader() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.produce(A, "one")
        await cluster.crash(A)
        await cluster.elect(NO_LEADER, [A])
        await asyncio.sleep(60)
        assert not cluster.partition(B).is_leader
        cluster.start(A)
        await cluster.elect(A, [A])
        await cluster.wait_until_in_sync(A, A, B)

    run_fast(play(scenario, Cluster()))


def test_followers_live_through_a_network_that_is_cut_and_mended() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.produce(A, "one")
        cluster.network.cut(A, B)
        await cluster.produce(A, "two", timeout_ms=60_000)
        assert cluster.partition(A).isr == (A,)
        cluster.network.mend()
        await cluster.wait_until_in_sync(A, A, B)
        assert cluster.values(B) == ["one", "two"]

    run_fast(play(scenario, Cluster()))


def test_a_follower_that_lacks_what_its_leader_has_deleted_begins_anew() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.produce(A, "one", "two")
        await cluster.crash(B)
        await cluster.produce(A, "three", timeout_ms=60_000)
        await cluster.produce(A, "four")
        cluster.partition(A).log.raise_log_start(3)
        cluster.start(B)
        await cluster.tell()
        await cluster.wait_until_in_sync(A, A, B)
        assert cluster.partition(B).log.log_start_offset == 3
        assert cluster.messages(B) == {3: "four"}

    run_fast(play(scenario, Cluster()))


def test_a_follower_that_starts_again_believes_its_checkpoint_and_no_more() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.produce(A, "one")
        await cluster.wait_until(lambda: cluster.partition(B).high_watermark == 1)
        await asyncio.sleep(6)
        await cluster.produce(A, "two")
        await cluster.crash(B)
        cluster.network.stop(A)
        cluster.start(B)
        await cluster.tell(brokers=[B])
        assert cluster.partition(B).high_watermark == 1
        assert cluster.values(B) == ["one", "two"]

    run_fast(play(scenario, Cluster()))


def test_a_log_that_parts_from_the_leader_s_is_told_where() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.produce(A, "one")
        await cluster.elect(A, [A, B])
        await cluster.elect(A, [A, B])
        asked = Asked(offset=5, max_bytes=100, current_leader_epoch=LeaderEpoch(2), last_fetched_epoch=LeaderEpoch(1))
        answer = (await cluster.running[A].fetch(Fetch(partitions={ORDERS: asked}, replica_id=B)))[ORDERS]
        assert answer.diverging_epoch == EpochEnd(LeaderEpoch(0), 1)  # no record was written in epoch 1
        assert answer.records == b""
        assert cluster.partition(A).followers[B].end_offset != 5

    run_fast(play(scenario, Cluster()))


def test_a_follower_says_where_its_log_ends_to_who_names_an_epoch() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.produce(A, "one")
        await cluster.elect(A, [A, B])
        await cluster.produce(A, "two")

        async def ask_about(epoch: int) -> Fetched:
            asked = Asked(offset=2**63 - 1, max_bytes=0, last_fetched_epoch=LeaderEpoch(epoch))
            return (await cluster.running[B].fetch(Fetch(partitions={ORDERS: asked})))[ORDERS]

        assert (await ask_about(1)).diverging_epoch == EpochEnd(LeaderEpoch(1), 2)
        assert (await ask_about(0)).diverging_epoch == EpochEnd(LeaderEpoch(0), 1)
        assert (await ask_about(2)).error_code is ErrorCode.offset_out_of_range
        assert (await cluster.consume(B, 0)).error_code is ErrorCode.not_leader_or_follower

    run_fast(play(scenario, Cluster()))


def test_the_end_of_a_transaction_is_written_by_its_leader_and_is_on_all_replicas_when_that_is_answered() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.produce(A, "one")
        end = EndOfTransaction(producer_id=7, producer_epoch=0, coordinator_epoch=1, is_commit=False)
        await cluster.running[A].append_marker(ORDERS, end, timeout_ms=10_000)
        assert cluster.partition(A).high_watermark == cluster.partition(B).replica.end_offset == 2
        with pytest.raises(NotLeader):
            await cluster.running[B].append_marker(ORDERS, end, timeout_ms=10_000)

    run_fast(play(scenario, Cluster()))


def test_a_new_leader_is_followed_at_once() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B, C)
        await cluster.create(A, B, C)
        await cluster.produce(A, "one")
        for leader in (B, C, A):
            await cluster.elect(leader, [A, B, C])
            began_ms = cluster.clock.monotonic_ms()
            await cluster.produce(leader, f"of {leader}")
            assert cluster.clock.monotonic_ms() - began_ms < 100

    run_fast(play(scenario, Cluster()))


def test_after_an_unclean_election_the_new_leader_s_log_is_the_partition() -> None:
    """The records that only the old leader had are lost, even committed ones, and all replicas agree again."""

    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.produce(A, "one")
        await cluster.crash(B)
        await cluster.produce(A, "two", timeout_ms=60_000)
        assert cluster.partition(A).high_watermark == 2
        await cluster.crash(A)
        cluster.start(B)
        await cluster.elect(B, [B], is_clean=False)
        await cluster.produce(B, "other two")
        cluster.start(A)
        await cluster.tell()
        await cluster.wait_until_in_sync(B, A, B)
        assert cluster.values(A) == cluster.values(B) == ["one", "other two"]
        assert cluster.log_bytes(A) == cluster.log_bytes(B)

    run_fast(play(scenario, Cluster()))


def test_who_is_too_many_bytes_behind_leaves_the_isr_where_that_is_limited() -> None:
    def make_settings(broker: BrokerId) -> ReplicaSettings:
        return ReplicaSettings(broker_id=broker, max_bytes_lag=1_000, max_time_lag_ms=10**6, flush_interval_ms=None)

    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B, C)
        await cluster.create(A, B, C)
        await cluster.produce(A, "one")
        await cluster.crash(C)
        for _ in range(20):
            await cluster.produce(A, "x" * 100, acks=1)
        await cluster.wait_until(lambda: cluster.partition(A).isr == (A, B))
        assert cluster.partition(A).high_watermark == 21

    run_fast(play(scenario, Cluster(settings=make_settings)))


def test_what_is_old_and_committed_is_deleted() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.configs.config = LogConfig(segment_bytes=200, retention_bytes=300)
        cluster.start(A, B)
        await cluster.create(A, B)
        for number in range(10):
            await cluster.produce(A, f"{number} " + "x" * 100)
        await cluster.wait_until(lambda: cluster.partition(A).log.log_start_offset > 0, within_ms=400_000)
        start = cluster.partition(A).log.log_start_offset
        assert (await cluster.consume(A, 0)).error_code is ErrorCode.offset_out_of_range
        await cluster.produce(A, "later")
        await cluster.wait_until(lambda: cluster.partition(B).log.log_start_offset == start)

    run_fast(play(scenario, Cluster()))


def test_no_partition_is_starved_by_those_that_have_much_to_fetch() -> None:
    def narrow(broker: BrokerId) -> ReplicaSettings:
        return ReplicaSettings(broker_id=broker, fetch_max_bytes=100, flush_interval_ms=None)

    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        partitions = [ORDERS._replace(partition=PartitionId(number)) for number in range(3)]
        for each in partitions:
            await cluster.create(A, B, topic_partition=each, isr=[A])
            for _ in range(20):
                await cluster.produce(A, "x" * 50, acks=1, to=each)
        cluster.start(B)
        for each in partitions:
            await cluster.tell(each)
        replicas = [cluster.partition(B, each).replica for each in partitions]
        while max(replica.end_offset for replica in replicas) < 20:
            ends = [replica.end_offset for replica in replicas]
            assert max(ends) - min(ends) <= 2
            assert all(replica.high_watermark <= replica.end_offset for replica in replicas)
            await asyncio.sleep(0)

    run_fast(play(scenario, Cluster(settings=narrow)))


def test_a_leader_that_leaves_a_partition_out_is_asked_again_after_a_pause() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        fetch, requests = cluster.running[A].fetch, 0

        async def forgetful(asked: Fetch) -> dict[TopicPartition, Fetched]:
            nonlocal requests
            requests += 1
            return {}

        cluster.running[A].fetch = forgetful  # type: ignore[method-assign]
        await asyncio.sleep(10)
        assert 5 < requests < 30
        cluster.running[A].fetch = fetch  # type: ignore[method-assign]
        await cluster.produce(A, "one")

    run_fast(play(scenario, Cluster()))


def test_a_fetch_brings_no_more_than_it_asks_for_but_one_batch_at_least() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        partitions = [ORDERS._replace(partition=PartitionId(number)) for number in range(3)]
        for each in partitions:
            await cluster.create(A, topic_partition=each)
            for _ in range(4):
                await cluster.produce(A, "x" * 50, to=each)
        one = len(batch("x" * 50))

        async def sizes(max_bytes: int, max_bytes_each: int) -> list[int]:
            asked = {each: Asked(offset=0, max_bytes=max_bytes_each) for each in partitions}
            answers = await cluster.running[A].fetch(Fetch(partitions=asked, max_bytes=max_bytes))
            return [len(answers[each].records) // one for each in partitions]

        assert await sizes(10**6, 10**6) == [4, 4, 4]
        assert await sizes(10**6, 2 * one) == [2, 2, 2]
        assert await sizes(10**6, 1) == [1, 1, 1]
        assert await sizes(3 * one, 2 * one) == [2, 1, 0]
        assert await sizes(1, 10**6) == [1, 0, 0]

    run_fast(play(scenario, Cluster()))


def test_what_was_deleted_is_out_of_range_and_does_not_part_from_the_leader_s_log() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await cluster.create(A, B, isr=[A])
        await cluster.produce(A, "one", "two", acks=1)
        await cluster.produce(A, "three", acks=1)
        await cluster.elect(A, [A])
        await cluster.elect(A, [A])
        cluster.partition(A).log.raise_log_start(2)
        asked = Asked(offset=1, max_bytes=100, current_leader_epoch=LeaderEpoch(2), last_fetched_epoch=LeaderEpoch(1))
        answer = (await cluster.running[A].fetch(Fetch(partitions={ORDERS: asked}, replica_id=B)))[ORDERS]
        assert (answer.error_code, answer.diverging_epoch) == (ErrorCode.offset_out_of_range, None)

    run_fast(play(scenario, Cluster()))


def test_what_waits_is_not_acknowledged_by_a_later_reign() -> None:
    """Between two reigns the log may have been cut, so the offset may be another message's."""

    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await cluster.create(A, B)
        waiting = asyncio.create_task(cluster.produce(A, "one"))
        await asyncio.sleep(1)
        await cluster.elect(B, [A, B])
        await cluster.elect(A, [A])
        assert cluster.partition(A).high_watermark == 1
        with pytest.raises(NotLeader):
            await waiting

    run_fast(play(scenario, Cluster()))


def test_a_replica_without_a_checkpoint_believes_nothing_to_be_committed() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.produce(A, "one")
        await cluster.crash(B)
        cluster.network.stop(A)
        cluster.start(B)
        await cluster.tell(brokers=[B])
        assert (cluster.values(B), cluster.partition(B).high_watermark) == (["one"], 0)

    run_fast(play(scenario, Cluster()))


def test_a_replica_whose_log_ends_before_its_checkpoint_believes_its_log() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.produce(A, "one")
        await asyncio.sleep(6)
        await cluster.crash(B, loses_power=True)
        cluster.network.stop(A)
        cluster.start(B)
        assert cluster.directories[B].find_high_watermark(ORDERS) == 1
        await cluster.tell(brokers=[B])
        assert (cluster.values(B), cluster.partition(B).high_watermark) == ([], 0)

    run_fast(play(scenario, Cluster()))


def test_a_replica_that_begins_anew_has_nothing_committed_before_its_log() -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.produce(A, "one")
        cluster.network.cut(A, B)
        applying = Applying(cluster.running[B]._storage, cluster.counters[B])
        partition = cluster.partition(B)
        assert applying.fit(partition, leader_start=5, leader_end=9)
        assert (partition.log.log_start_offset, partition.replica.end_offset, partition.high_watermark) == (5, 5, 5)
        assert not applying.fit(partition, leader_start=5, leader_end=9)

    run_fast(play(scenario, Cluster()))

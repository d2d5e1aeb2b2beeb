"""Design v2: the leader, the followers, and the committed records."""

import pytest

from controller_core.wire.messages import ErrorCode
from replica_broker.replicas.errors import NotLeader
from replica_broker.replicas.partition import ProposedIsr
from replica_broker.v2.settings import V2Settings
from replica_broker.v2.znodes import paths
from simulation.fast_loop import run_fast
from tests.unit.replica_broker.v2.cluster import ORDERS, A, B, C, Cluster, play


def test_the_preferred_replica_leads_a_new_partition_and_all_are_in_sync() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B, C)
        await cluster.create(B, A, C)
        assert await cluster.leader() == B
        znodes = await cluster.znodes()
        assert (znodes.replicas, znodes.leader and znodes.leader.epoch) == ((B, A, C), 1)
        (leader, cur) = await cluster.zk.read_many([paths.leader(ORDERS), paths.cur(ORDERS)])
        assert leader is not None
        assert (leader.data, leader.ephemeral_owner) == (b"2,1", cluster.sessions[B].session_id)
        assert cur is not None
        assert cur.data == b""
        await cluster.produce(B, "one", "two")
        assert [cluster.values(broker) for broker in (A, B, C)] == [["one", "two"]] * 3

    run_fast(play(scenario))


def test_others_race_only_when_the_preferred_replica_had_its_time() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(B, C)
        began_ms = cluster.clock.monotonic_ms()
        cluster.admin._timeout_ms = 100
        with pytest.raises(Exception, match="not all of"):
            await cluster.admin.create_topic(ORDERS.topic, assignment={ORDERS.partition: (A, B, C)})
        leader = await cluster.wait_until_led()
        assert leader in (B, C)
        assert cluster.clock.monotonic_ms() - began_ms >= cluster.settings.preferred_replica_time_ms

    run_fast(play(scenario))


def test_nothing_acknowledged_is_lost_when_the_leader_is_killed() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B, C)
        await cluster.create(A, B, C)
        for number in range(5):
            await cluster.produce(A, f"before {number}")
        await cluster.kill(A)
        leader = await cluster.wait_until_led(not_by=A)
        await cluster.produce(leader, "after")
        expected = [f"before {number}" for number in range(5)] + ["after"]
        assert cluster.values(leader) == expected
        await cluster.start(A)
        await cluster.wait_until_isr(A, B, C)
        assert cluster.values(A) == expected
        znodes = await cluster.znodes()
        assert znodes.leader is not None
        assert znodes.leader.epoch == 2

    run_fast(play(scenario))


def test_a_new_leader_starts_the_replica_of_a_broker_that_has_closed_its_own() -> None:
    """The last lines of the seed's `becomeLeader`: start-replica to every other broker of AR."""

    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B, C)
        await cluster.create(A, B, C)
        await cluster.produce(A, "one")
        await cluster.brokers[C]._hosting.close_replica(ORDERS)
        assert not cluster.has_log(C)
        await cluster.kill(A)
        leader = await cluster.wait_until_led(not_by=A)
        await cluster.wait_until_isr(B, C)
        assert leader == B
        assert cluster.values(C) == ["one"]

    run_fast(play(scenario))


def test_who_is_not_in_the_isr_never_leads() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.kill(B)
        await cluster.produce(A, "only on one", acks=1)
        await cluster.wait_until_isr(A)
        await cluster.kill(A)
        await cluster.start(B)
        await cluster.clock.sleep_ms(60_000)
        assert (await cluster.znodes()).leader is None
        await cluster.start(A)
        assert await cluster.wait_until_led() == A
        await cluster.wait_until_isr(A, B)
        assert cluster.values(B) == ["only on one"]

    run_fast(play(scenario))


def test_a_leader_without_a_live_follower_opens_after_the_time_to_keep_in_sync_and_says_who_has_to_catch_up() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B, C)
        await cluster.create(A, B, C)
        cluster.network.cut(B, C)
        began_ms = cluster.clock.monotonic_ms()
        await cluster.kill(A)
        leader = await cluster.wait_until_led(not_by=A)
        assert cluster.clock.monotonic_ms() - began_ms >= cluster.settings.keep_in_sync_time_ms
        (cur,) = await cluster.zk.read_many([paths.cur(ORDERS)])
        assert cur is not None
        other = B if leader == C else C
        assert cur.data == f"1,{other}".encode()

    run_fast(play(scenario))


def test_clients_wait_while_a_leader_waits_for_its_followers() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B, C)
        await cluster.create(A, B, C)
        cluster.network.cut(B, C)
        await cluster.kill(A)
        await cluster.wait_until(lambda: any(cluster.partition(broker).is_leader for broker in (B, C)))
        leader = next(broker for broker in (B, C) if cluster.partition(broker).is_leader)
        assert ORDERS not in cluster.running[leader].opened
        with pytest.raises(NotLeader):
            await cluster.produce(leader, "too early")
        assert (await cluster.consume(leader)).error_code is ErrorCode.not_leader_or_follower

    run_fast(play(scenario))


def test_a_leader_that_is_replaced_while_it_waits_to_write_the_isr_takes_part_in_the_next_election() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B, C)
        await cluster.create(A, B, C)
        cluster.network.cut(B, C)
        await cluster.kill(A)
        await cluster.wait_until(lambda: any(cluster.partition(broker).is_leader for broker in (B, C)))
        leader = next(broker for broker in (B, C) if cluster.partition(broker).is_leader)
        cluster.partition(leader).proposed = ProposedIsr((leader,))  # one that is refused, because it is too late
        cluster.zookeeper.expire(cluster.sessions[leader])
        cluster.network.mend()
        await cluster.wait_until(lambda: {cluster.partition(broker).leader_epoch for broker in (B, C)} == {3})
        await cluster.wait_until_isr(B, C)

    run_fast(play(scenario))


@pytest.mark.parametrize(("high_watermark", "visible"), [("checkpoint", 1), ("end", 2)])
def test_only_with_hw_at_the_end_messages_become_visible_that_nobody_else_has(
    high_watermark: str, visible: int
) -> None:
    settings = V2Settings(becoming_leader_high_watermark="end" if high_watermark == "end" else "checkpoint")

    async def scenario(cluster: Cluster) -> None:
        cluster.configs.min_insync = 2
        await cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.produce(A, "replicated")
        await cluster.wait_until(lambda: cluster.partition(B).high_watermark == 1)
        await cluster.kill(B)
        await cluster.produce(A, "on the leader alone", acks=1)
        cluster.zookeeper.expire(cluster.sessions[A])
        await cluster.wait_until(lambda: cluster.partition(A).leader_epoch == 2)
        await cluster.wait_until_led()
        assert cluster.partition(A).high_watermark == visible

    run_fast(play(scenario, Cluster(settings)))


def test_a_leader_whose_session_ended_can_write_nothing_any_more() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B, C)
        await cluster.create(A, B, C)
        cluster.zookeeper.disconnect(cluster.sessions[A])
        cluster.zookeeper.expire(cluster.sessions[A])
        leader = await cluster.wait_until_led(not_by=A)
        await cluster.produce(leader, "by the new one")
        assert (await cluster.znodes()).epoch == 2
        cluster.zookeeper.reconnect(cluster.sessions[A])
        await cluster.wait_until(
            lambda: cluster.partition(A).leader_epoch == 2 and cluster.values(A) == ["by the new one"]
        )

    run_fast(play(scenario))

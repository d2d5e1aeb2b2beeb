"""The queue of state changes, and a broker's handling of its entries."""

from uuid import UUID

import pytest

from controller_core.model.ids import NO_EPOCH, BrokerId, LeaderEpoch, PartitionId, TopicId, TopicName, TopicPartition
from controller_core.zk.session import Create, SetData
from replica_broker.v2.admin.topics import AdminFailed
from replica_broker.v2.broker.broker import ClusterHasController, ensure_parents
from replica_broker.v2.broker.hosting import NotReplicaForPartition
from replica_broker.v2.settings import V2Settings
from replica_broker.v2.znodes import paths
from replica_broker.v2.znodes.codecs import StateChange, encode_brokers, encode_topic_id
from replica_broker.v2.znodes.state_change_queue import FollowerStateChangeQueueFull, send_state_change
from simulation.fast_loop import run_fast
from tests.unit.replica_broker.v2.cluster import BOUND, ORDERS, TOPIC, A, B, C, Cluster, play

START: StateChange = "start-replica"
CLOSE: StateChange = "close-replica"
OTHER = TopicPartition(TopicName("other"), PartitionId(7))


async def send(
    cluster: Cluster, change: StateChange, to: BrokerId, epoch: int, where: TopicPartition = ORDERS, bound: int = BOUND
) -> None:
    await send_state_change(cluster.zk, change, where, to, LeaderEpoch(epoch), bound=bound)


async def list_queued(cluster: Cluster, broker: BrokerId) -> list[tuple[str, str, int]]:
    return [
        (request.change, str(request.topic_partition), request.epoch)
        for _, request in await cluster.queue(broker).requests()
    ]


def test_a_full_queue_keeps_the_latest_close_of_each_partition_and_no_start() -> None:
    async def scenario(cluster: Cluster) -> None:
        await ensure_parents(cluster.zk)
        for change, epoch, where in ((CLOSE, 1, ORDERS), (START, 2, ORDERS), (CLOSE, 3, ORDERS), (START, 1, OTHER)):
            await send(cluster, change, C, epoch, where, bound=4)
        assert await cluster.queue(C, bound=4).is_full()
        await send(cluster, CLOSE, C, 5, OTHER, bound=4)
        assert await list_queued(cluster, C) == [(CLOSE, "orders-0", 3), (CLOSE, "other-7", 5)]

    run_fast(play(scenario))


def test_a_queue_that_is_full_of_closes_takes_no_more() -> None:
    async def scenario(cluster: Cluster) -> None:
        await ensure_parents(cluster.zk)
        await send(cluster, CLOSE, C, 1, ORDERS, bound=2)
        await send(cluster, CLOSE, C, 1, OTHER, bound=2)
        with pytest.raises(FollowerStateChangeQueueFull, match="the queue of broker 3 has 2 requests"):
            await send(cluster, START, C, 1, bound=2)
        assert len(await list_queued(cluster, C)) == 2

    run_fast(play(scenario))


def test_closes_that_were_sent_to_a_broker_that_was_down_are_honoured_when_it_starts() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B, C)
        await cluster.create(A, B, C)
        await cluster.produce(A, "one")
        await cluster.kill(C)
        for epoch in range(BOUND):
            await send(cluster, START, C, epoch)
        await cluster.admin.delete_topic(TOPIC)
        assert await list_queued(cluster, C) == [(CLOSE, "orders-0", 1)]
        assert cluster.has_log(C)
        await cluster.start(C)
        assert not cluster.has_log(C)
        assert await list_queued(cluster, C) == []

    run_fast(play(scenario))


def test_a_start_of_an_earlier_epoch_is_ignored_and_one_of_the_present_starts_the_replica() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.kill(A)
        await cluster.wait_until_led(not_by=A)
        hosting = cluster.brokers[B]._hosting
        started: list[TopicPartition] = []
        start_replica = hosting.start_replica

        async def note_start(where: TopicPartition) -> None:
            started.append(where)
            await start_replica(where)

        hosting.start_replica = note_start  # type: ignore[method-assign]
        await send(cluster, START, B, 1)
        await cluster.wait_until(lambda: is_consumed(cluster, B))
        assert started == []
        await send(cluster, START, B, 2)
        await cluster.wait_until(lambda: is_consumed(cluster, B))
        assert started == [ORDERS]

    run_fast(play(scenario))


def test_who_reads_the_start_of_a_new_partition_when_it_has_a_leader_already_starts_at_once() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B)
        await cluster.zk.transact([Create(path=paths.topic(TOPIC), data=encode_topic_id(TopicId(UUID(int=7))))])
        await cluster.zk.transact([Create(path=paths.topic_reassignment(TOPIC))])
        await cluster.zk.transact([Create(path=paths.reassignment(ORDERS), data=encode_brokers((A, B)))])
        await send(cluster, START, A, NO_EPOCH)

        async def is_led() -> bool:
            return (await cluster.znodes()).leader is not None

        await cluster.wait_until(is_led)
        began_ms = cluster.clock.monotonic_ms()
        await send(cluster, START, B, NO_EPOCH)
        await cluster.wait_until_isr(A, B)
        assert cluster.clock.monotonic_ms() - began_ms < V2Settings().keep_in_sync_time_ms / 2

    run_fast(play(scenario))


async def is_consumed(cluster: Cluster, broker: BrokerId) -> bool:
    return await list_queued(cluster, broker) == []


def test_what_makes_no_sense_and_what_is_not_hosted_here_is_thrown_away() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A)
        await cluster.zk.transact([Create(path=f"{paths.state(A)}/request-x", data=b"nonsense")])
        await send(cluster, START, A, 1, OTHER)
        await send(cluster, CLOSE, A, 1, OTHER)
        await cluster.wait_until(lambda: is_consumed(cluster, A))
        with pytest.raises(NotReplicaForPartition, match="not on broker 1"):
            await cluster.brokers[A]._hosting.start_replica(OTHER)

    run_fast(play(scenario))


def test_a_close_of_an_old_epoch_counts_and_an_assigned_replica_begins_anew() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.produce(A, "one")
        before = cluster.partition(B)
        await send(cluster, CLOSE, B, 0)
        await cluster.wait_until(lambda: is_consumed(cluster, B))
        await cluster.wait_until(lambda: ORDERS in cluster.running[B].hosted and cluster.partition(B) is not before)
        await cluster.wait_until(lambda: cluster.values(B) == ["one"])

    run_fast(play(scenario))


def test_a_broker_registers_last() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A)
        await cluster.create(A)
        await cluster.kill(A)
        await send(cluster, CLOSE, A, 1, OTHER)
        at_registration: list[tuple[bool, int]] = []
        await cluster.spawn(A)
        registration = cluster.brokers[A]._registration
        register = registration.register

        async def register_and_check() -> None:
            assert not await cluster.exists(f"{paths.IDS}/{A}")
            at_registration.append((ORDERS in cluster.brokers[A]._hosting.started, len(await list_queued(cluster, A))))
            await register()

        registration.register = register_and_check  # type: ignore[method-assign]
        await cluster.wait_until(lambda: bool(at_registration))
        assert at_registration == [(True, 0)]

    run_fast(play(scenario))


def test_a_cluster_with_a_controller_is_no_place_for_it() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.zk.transact([Create(path="/controller_epoch", data=b"1")])
        with pytest.raises(ClusterHasController, match="needs its own chroot"):
            await ensure_parents(cluster.zk)

    run_fast(play(scenario))


def test_a_topic_that_is_not_there_cannot_be_changed() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A)
        for command in (
            cluster.admin.delete_topic(TOPIC),
            cluster.admin.delete_partition(ORDERS),
            cluster.admin.add_partition(ORDERS, (A,)),
            cluster.admin.reassign(ORDERS, (A,)),
        ):
            with pytest.raises(AdminFailed, match="does not exist"):
                await command

    run_fast(play(scenario))


def test_znodes_that_make_no_sense_stop_their_partition_alone_and_only_until_they_are_mended() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.admin.create_topic(OTHER.topic, assignment={OTHER.partition: (B, A)})
        await cluster.wait_until_isr(A, B, where=OTHER)
        await cluster.zk.transact([SetData(path=paths.replicas(OTHER), data=b"B and A")])
        await cluster.zk.transact([Create(path=paths.topic_reassignment(TOPIC))])
        await cluster.zk.transact([Create(path=paths.reassignment(ORDERS), data=b"to the other one")])
        await send(cluster, START, A, 1, OTHER)
        await cluster.wait_until(lambda: is_consumed(cluster, A))
        await cluster.kill(B)
        await cluster.clock.sleep_ms(40_000)
        await cluster.produce(A, "one")
        await cluster.zk.transact([SetData(path=paths.replicas(OTHER), data=b"2,1")])
        await cluster.wait_until(lambda: OTHER in cluster.running[A].opened)
        await cluster.zk.transact([SetData(path=paths.reassignment(ORDERS), data=b"1")])
        await cluster.wait_until_isr(A)

    run_fast(play(scenario))


def test_a_broker_whose_session_ended_starts_up_again_and_registers_anew() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B)
        await cluster.create(A, B)
        before = cluster.nodes[B].epoch
        await send(cluster, CLOSE, B, 0, OTHER)
        cluster.zookeeper.expire(cluster.sessions[B])
        await cluster.wait_until(lambda: cluster.nodes[B].epoch > before)
        assert await list_queued(cluster, B) == []
        await cluster.produce(A, "one")
        await cluster.wait_until(lambda: cluster.values(B) == ["one"])

    run_fast(play(scenario))


def test_losing_the_connection_for_a_moment_changes_nothing() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B)
        await cluster.create(A, B)
        cluster.zookeeper.disconnect(cluster.sessions[B])
        await send(cluster, CLOSE, B, 0, OTHER)
        await cluster.clock.sleep_ms(2_000)
        assert await list_queued(cluster, B) != []
        cluster.zookeeper.reconnect(cluster.sessions[B])
        await cluster.wait_until(lambda: is_consumed(cluster, B))
        assert (await cluster.znodes()).epoch == 1

    run_fast(play(scenario))

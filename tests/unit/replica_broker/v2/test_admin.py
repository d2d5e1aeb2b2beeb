"""The admin commands of design v2, as brokers carry them out."""

from collections.abc import Iterable, Sequence

import pytest

from controller_core.model.ids import NO_EPOCH, BrokerId, PartitionId, TopicPartition
from controller_core.zk.session import Create, SetData, WriteOp
from replica_broker.v2.admin.assigning import TooFewBrokers, assign_replicas
from replica_broker.v2.admin.topics import AdminFailed
from replica_broker.v2.broker.producer_id_counter import allocate_producer_ids
from replica_broker.v2.znodes import paths
from replica_broker.v2.znodes.state_change_queue import send_state_change
from simulation.fast_loop import run_fast
from tests.unit.replica_broker.v2.cluster import BOUND, ORDERS, TOPIC, A, B, C, Cluster, D, play


def test_partitions_are_assigned_to_brokers_that_are_online() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B, C)
        await cluster.kill(B)
        await cluster.admin.create_topic(TOPIC, num_partitions=2, replication_factor=2)
        assert [(await cluster.znodes(TopicPartition(TOPIC, PartitionId(n)))).replicas for n in (0, 1)] == [
            (A, C),
            (C, A),
        ]
        assert await cluster.zk.children_many([paths.REASSIGNED]) == [()]
        with pytest.raises(TooFewBrokers, match="3 replicas need as many online brokers, but 2"):
            assign_replicas([A, C], 1, 3)

    run_fast(play(scenario))


def test_clients_are_told_what_is_created_and_that_there_is_no_controller() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B)
        await cluster.create(A, B)
        metadata = cluster.nodes[B].metadata

        def is_told() -> bool:
            state = metadata.partition(ORDERS)
            return state is not None and (state.leader, set(state.isr)) == (A, {A, B})

        await cluster.wait_until(is_told)
        assert metadata.controller is None
        assert set(metadata.brokers) == {A, B}
        await cluster.admin.delete_topic(TOPIC)
        await cluster.wait_until(lambda: ORDERS not in metadata)

    run_fast(play(scenario))


def test_of_a_topic_that_changes_in_one_partition_no_other_is_read_again() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B)
        await cluster.admin.create_topic(TOPIC, num_partitions=3, replication_factor=2)
        await cluster.wait_until_isr(A, B)
        await cluster.clock.sleep_ms(10_000)
        view = cluster.brokers[A]._view
        looked_at: list[TopicPartition] = []
        read_changed = view.read_changed

        async def note_looks(changed: Iterable[TopicPartition]) -> None:
            await read_changed(partitions := list(changed))
            looked_at.extend(partitions)

        view.read_changed = note_looks  # type: ignore[method-assign]
        await cluster.zk.transact([SetData(path=paths.isr(ORDERS), data=b"1")])
        await cluster.wait_until(lambda: bool(looked_at))
        said = cluster.nodes[A].metadata.partition(ORDERS)
        assert (looked_at, said and said.isr) == ([ORDERS], (A,))

    run_fast(play(scenario))


def test_a_topic_that_exists_is_not_created_again() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A)
        await cluster.create(A)
        with pytest.raises(AdminFailed, match="exists with live partitions"):
            await cluster.admin.create_topic(TOPIC, assignment={ORDERS.partition: (A,)})
        with pytest.raises(AdminFailed, match="orders-0 exists"):
            await cluster.admin.add_partition(ORDERS, (A,))

    run_fast(play(scenario))


def test_a_partition_is_added_to_a_topic_and_deleted_again() -> None:
    added = TopicPartition(TOPIC, PartitionId(1))

    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.admin.add_partition(added, (B, A))
        await cluster.wait_until(lambda: added in cluster.running[B].opened)
        await cluster.admin.delete_partition(added)
        assert not await cluster.exists(paths.partition(added))
        assert not cluster.has_log(A, added)
        assert cluster.has_log(A)

    run_fast(play(scenario))


def test_a_failed_creation_is_cleaned_up_and_the_topic_can_be_created() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B)
        await cluster.kill(B)
        cluster.admin._timeout_ms = 3_000
        with pytest.raises(AdminFailed, match=r"cannot create partition orders-0: .* within 3000 ms"):
            await cluster.admin.create_topic(TOPIC, assignment={ORDERS.partition: (A, B)})
        await cluster.wait_until(lambda: cluster.has_log(A))
        assert await cluster.admin.clean_failed_topic_creation_attempts() == [TOPIC]
        await cluster.wait_until(lambda: not cluster.has_log(A))
        assert not await cluster.exists(paths.topic(TOPIC))
        assert not await cluster.exists(paths.topic_reassignment(TOPIC))
        await cluster.start(B)
        assert not cluster.has_log(B)
        await cluster.create(A, B)
        await cluster.produce(A, "one")
        assert await cluster.admin.clean_failed_topic_creation_attempts() == []

    run_fast(play(scenario))


def test_a_partition_that_failed_to_be_added_is_cleaned_up_by_its_deletion() -> None:
    added = TopicPartition(TOPIC, PartitionId(1))

    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A)
        await cluster.create(A)
        cluster.admin._timeout_ms = 2_000
        with pytest.raises(AdminFailed, match="not all of"):
            await cluster.admin.add_partition(added, (A, B))
        await cluster.wait_until(lambda: cluster.has_log(A, added))
        await cluster.admin.delete_partition(added)
        await cluster.wait_until(lambda: not cluster.has_log(A, added))
        assert not await cluster.exists(paths.partition(added))
        assert cluster.has_log(A)

    run_fast(play(scenario))


def test_a_topic_without_partitions_does_not_hinder_its_creation() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A)
        await cluster.zk.transact([Create(path=paths.topic(TOPIC))])
        await cluster.create(A)
        await cluster.produce(A, "one")

    run_fast(play(scenario))


def test_a_start_for_a_topic_that_is_gone_leads_nobody_in_circles() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A)
        await cluster.admin._write_reassigned(ORDERS, (A,))
        await send_state_change(cluster.zk, "start-replica", ORDERS, A, NO_EPOCH, bound=BOUND)
        await cluster.wait_until(lambda: ORDERS in cluster.brokers[A]._hosting.started)
        await cluster.clock.sleep_ms(1_000)
        assert await cluster.admin.clean_failed_topic_creation_attempts() == [TOPIC]
        await cluster.create(A)

    run_fast(play(scenario))


def test_what_is_live_is_not_cleaned_up() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A)
        await cluster.create(A)
        await cluster.admin._write_reassigned(TopicPartition(TOPIC, PartitionId(1)), (A,))
        assert await cluster.admin.clean_failed_topic_creation_attempts() == []
        assert (await cluster.znodes()).replicas == (A,)

    run_fast(play(scenario))


@pytest.mark.parametrize("target", [(C, D), (B, C), (A, B, C), (A,)])
def test_a_reassignment_goes_to_its_end(target: tuple[BrokerId, ...]) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B, C, D)
        await cluster.create(A, B)
        await cluster.produce(A, "one")
        await cluster.admin.reassign(ORDERS, target)
        leader = await cluster.wait_until_led()
        assert leader in target
        await cluster.wait_until_isr(*target)
        await cluster.produce(leader, "two")
        znodes = await cluster.znodes()
        assert (znodes.replicas, znodes.reassigned) == (target, None)
        for broker in (A, B, C, D):
            await cluster.wait_until(lambda broker=broker: cluster.has_log(broker) == (broker in target))  # type: ignore[misc]
        assert [cluster.values(broker) for broker in target] == [["one", "two"]] * len(target)
        assert not await cluster.exists(paths.topic_reassignment(TOPIC))

    run_fast(play(scenario))


def test_a_reassignment_outlives_its_leader() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B)
        await cluster.create(A, B)
        await cluster.produce(A, "one")
        await cluster.admin.reassign(ORDERS, (B, C), waits=False)
        await cluster.clock.sleep_ms(1_000)
        await cluster.kill(A)
        await cluster.wait_until_led(not_by=A)
        await cluster.start(C)

        async def is_over() -> bool:
            return (await cluster.znodes()).replicas == (B, C)

        await cluster.wait_until(is_over)
        assert cluster.values(C) == ["one"]
        await cluster.start(A)
        assert not cluster.has_log(A)

    run_fast(play(scenario))


@pytest.mark.parametrize("target", [(B, C), ()])
def test_a_request_that_is_written_while_a_new_leader_opens_is_carried_out(target: tuple[BrokerId, ...]) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B, C)
        await cluster.create(A, B)
        session = cluster.sessions[B]
        transact = session.transact

        async def request_before(ops: Sequence[WriteOp]) -> tuple[str, ...]:
            if any(op.path == paths.cur(ORDERS) for op in ops):
                session.transact = transact  # type: ignore[method-assign]
                assert ORDERS not in cluster.running[B].opened
                await cluster.admin._write_reassigned(ORDERS, target)
                await cluster.clock.sleep_ms(50)
            return await transact(ops)

        session.transact = request_before  # type: ignore[method-assign]
        await cluster.kill(A)

        async def is_carried_out() -> bool:
            return (await cluster.znodes()).replicas == target

        await cluster.wait_until(is_carried_out)
        for broker in (B, C):
            await cluster.wait_until(lambda broker=broker: cluster.has_log(broker) == (broker in target))  # type: ignore[misc]

    run_fast(play(scenario))


def test_a_deletion_leaves_no_log_and_no_znode() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A, B, C)
        await cluster.create(A, B, C)
        await cluster.produce(A, "one")
        await cluster.admin.delete_topic(TOPIC)
        assert [cluster.has_log(broker) for broker in (A, B, C)] == [False] * 3
        assert not await cluster.exists(paths.topic(TOPIC))
        assert await cluster.zk.children_many([paths.REASSIGNED]) == [()]
        await cluster.create(B, C)
        assert await cluster.produce(B, "anew") == 0

    run_fast(play(scenario))


def test_a_deletion_without_a_leader_fails_and_happens_when_there_is_one() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A)
        await cluster.create(A)
        await cluster.kill(A)
        cluster.admin._timeout_ms = 1_000
        with pytest.raises(AdminFailed, match="cannot delete orders-0 within 1000 ms"):
            await cluster.admin.delete_topic(TOPIC)
        await cluster.start(A)
        await cluster.wait_until(lambda: not cluster.has_log(A))
        await cluster.admin.delete_topic(TOPIC)
        assert not await cluster.exists(paths.topic(TOPIC))

    run_fast(play(scenario))


def test_each_producer_id_is_given_once() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.start(A)
        blocks = [await allocate_producer_ids(cluster.zk) for _ in range(3)]
        assert [block.start for block in blocks] == [0, 1000, 2000]

    run_fast(play(scenario))

"""AlterPartitionReassignments: the requests of Kafka's tools and client libraries, and the answers (KIP-455)."""

import asyncio
from collections.abc import Sequence

import pytest

from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.wire.messages import (
    ErrorCode,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from controller_core.zk import paths
from simulation.checks import assert_no_log_is_nobodys, assert_sound
from simulation.cluster import Cluster, alter_reassignments, tp

ORDERS = tp("orders")


@pytest.fixture
async def served(cluster: Cluster) -> Cluster:
    """Seven brokers; `orders` on 1, 2 and 3."""
    cluster.start_brokers(1, 2, 3, 4, 5, 6, 7)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2, 3], [2, 3, 1])
    await cluster.settle()
    return cluster


Answers = dict[TopicPartition, tuple[ErrorCode, str | None]]


async def ask(cluster: Cluster, targets: dict[TopicPartition, Sequence[int] | None]) -> Answers:
    response = await cluster.request(alter_reassignments(targets))
    assert (response.error_code, response.error_message) == (ErrorCode.none, None)
    return {
        tp(topic.name, partition.partition_index): (partition.error_code, partition.error_message)
        for topic in response.responses
        for partition in topic.partitions
    }


async def list_reassignments(cluster: Cluster) -> dict[TopicPartition, tuple[list[int], list[int], list[int]]]:
    response = await cluster.request(ListPartitionReassignmentsRequest(topics=None))
    assert isinstance(response, ListPartitionReassignmentsResponse)
    return {
        tp(topic.name, entry.partition_index): (
            list(entry.replicas), list(entry.adding_replicas), list(entry.removing_replicas),
        )
        for topic in response.topics
        for entry in topic.partitions
    }  # fmt: skip


BEGUN = (ErrorCode.none, None)


async def test_a_partition_moves_and_is_listed_while_it_does(served: Cluster) -> None:
    assert await ask(served, {ORDERS: [4, 5, 6]}) == {ORDERS: BEGUN}
    assert await list_reassignments(served) == {ORDERS: ([4, 5, 6, 1, 2, 3], [4, 5, 6], [1, 2, 3])}
    await served.replicate()
    assert served.list_replicas(ORDERS) == [4, 5, 6]
    assert await list_reassignments(served) == {}
    assert_no_log_is_nobodys(served)
    assert_sound(served)


async def test_it_moves_on_under_the_next_controller(served: Cluster) -> None:
    await ask(served, {ORDERS: [4, 5, 6]})
    await served.active.kill()
    await served.serve()
    await served.replicate()
    assert served.list_replicas(ORDERS) == [4, 5, 6]
    assert_sound(served)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ([], "Empty replica list"),
        ([4, 4], "Duplicate replica ids"),
        ([4, -1], "Invalid broker id"),
        ([4, 9], "not alive. Replica list: [9], live broker list: [1, 2, 3, 4, 5, 6, 7]"),
        ([1000], "1000 is the controller, which holds no replicas: name a broker"),
    ],
)
async def test_an_impossible_target_is_refused_and_the_others_are_served(
    served: Cluster, target: list[int], message: str
) -> None:
    answers = await ask(served, {ORDERS: target, tp("orders", 1): [4, 5]})
    assert answers[ORDERS][0] is ErrorCode.invalid_replica_assignment
    assert message in str(answers[ORDERS][1])
    assert answers[tp("orders", 1)] == BEGUN
    await served.replicate()
    assert (served.list_replicas(ORDERS), served.list_replicas(tp("orders", 1))) == ([1, 2, 3], [4, 5])


async def test_a_dead_broker_is_no_target_though_it_is_being_added_already(served: Cluster) -> None:
    await ask(served, {ORDERS: [1, 4]})
    served.kill_broker(4)
    await served.settle()
    answers = await ask(served, {ORDERS: [1, 4, 5]})
    assert answers[ORDERS][0] is ErrorCode.invalid_replica_assignment
    assert "not alive. Replica list: [4]" in str(answers[ORDERS][1])
    assert await ask(served, {ORDERS: [1, 5]}) == {ORDERS: BEGUN}
    await served.replicate()
    assert served.list_replicas(ORDERS) == [1, 5]


@pytest.mark.parametrize("partition", [tp("unknown"), tp("orders", 9), tp("", -1)])
async def test_what_is_not_there_cannot_move(served: Cluster, partition: TopicPartition) -> None:
    assert await ask(served, {partition: [1, 2]}) == {
        partition: (ErrorCode.unknown_topic_or_partition, "The partition does not exist.")
    }
    assert (await ask(served, {partition: None}))[partition][0] is ErrorCode.no_reassignment_in_progress
    assert (await ask(served, {partition: [9]}))[partition][0] is ErrorCode.invalid_replica_assignment


async def test_what_is_being_deleted_cannot_move(served: Cluster) -> None:
    served.kill_broker(3)
    served.request_deletion("orders")
    await served.settle()
    assert (await ask(served, {ORDERS: [1, 2]}))[ORDERS][0] is ErrorCode.unknown_topic_or_partition


async def test_a_topic_and_a_partition_created_a_moment_ago_are_known(served: Cluster) -> None:
    """The request is handled before the events of their creation."""
    answer = asyncio.create_task(served.active.answer(alter_reassignments({tp("fresh"): [4], tp("orders", 2): [5]})))
    await asyncio.sleep(0)
    served.create_topic("fresh", [1, 2])
    served.add_partitions("orders", [1, 2])
    await served.replicate()
    codes = [entry.error_code for topic in (await answer).responses for entry in topic.partitions]
    assert codes == [ErrorCode.none, ErrorCode.none]
    assert (served.list_replicas(tp("fresh")), served.list_replicas(tp("orders", 2))) == ([4], [5])
    assert_sound(served)


async def test_nothing_happens_where_a_partition_is_there_already_or_on_its_way(served: Cluster) -> None:
    before = served.state(ORDERS)
    assert await ask(served, {ORDERS: [1, 2, 3]}) == {ORDERS: BEGUN}
    assert served.state(ORDERS) == before
    await ask(served, {ORDERS: [4, 5, 6]})
    before = served.state(ORDERS)
    assert await ask(served, {ORDERS: [4, 5, 6]}) == {ORDERS: BEGUN}
    assert served.state(ORDERS) == before


async def test_a_running_target_is_replaced(served: Cluster) -> None:
    await ask(served, {ORDERS: [4, 5, 6]})
    await served.join_isr(ORDERS, 4, 5)
    assert await ask(served, {ORDERS: [4, 7]}) == {ORDERS: BEGUN}
    assert await list_reassignments(served) == {ORDERS: ([4, 7, 1, 2, 3], [4, 7], [1, 2, 3])}
    assert served.leadership(ORDERS) == (1, [1, 2, 3, 4])
    await served.replicate()
    assert served.list_replicas(ORDERS) == [4, 7]
    assert_no_log_is_nobodys(served)
    assert_sound(served)


# Taking back


async def test_a_reassignment_is_cancelled_and_its_new_replicas_are_deleted(served: Cluster) -> None:
    await ask(served, {ORDERS: [4, 5, 6]})
    await served.join_isr(ORDERS, 4, 5)
    assert await ask(served, {ORDERS: None, tp("orders", 1): None}) == {
        ORDERS: BEGUN,
        tp("orders", 1): (ErrorCode.no_reassignment_in_progress, "No partition reassignment is in progress."),
    }
    assert served.list_replicas(ORDERS) == [1, 2, 3]
    assert served.leadership(ORDERS) == (1, [1, 2, 3])
    assert await list_reassignments(served) == {}
    assert_no_log_is_nobodys(served)
    assert_sound(served)


@pytest.mark.parametrize("restarts", [False, True])
async def test_what_is_cancelled_has_its_order_again(served: Cluster, restarts: bool) -> None:
    await ask(served, {ORDERS: [3, 4, 2]})
    if restarts:
        await served.active.kill()
        await served.serve()
    await ask(served, {ORDERS: [2, 5]})
    assert await ask(served, {ORDERS: None}) == {ORDERS: BEGUN}
    assert served.list_replicas(ORDERS) == [1, 2, 3]
    assert b"kontroller" not in (served.data(paths.topic(ORDERS.topic)) or b"")
    assert_sound(served)


async def test_a_new_replica_that_leads_hands_over_first(served: Cluster) -> None:
    """4 came to lead because the old replicas were away. The partition always has a leader, and 4 is never in the ISR
    alone."""
    await ask(served, {ORDERS: [4, 5, 6]})
    await served.join_isr(ORDERS, 4)
    for number in (1, 2, 3):
        served.bounce_broker(number)
        await served.settle()
    await served.join_isr(ORDERS, 1)
    assert served.leadership(ORDERS)[0] == 4
    rows: list[tuple[int, list[int]]] = []
    served.zk.observers.append(lambda: rows.append(served.leadership(ORDERS)))
    assert await ask(served, {ORDERS: None}) == {ORDERS: BEGUN}
    assert {leader for leader, _ in rows} == {4, 1}
    assert served.leadership(ORDERS)[0] == 1
    assert_sound(served)


async def test_the_last_replica_in_sync_is_not_deleted_by_taking_back(served: Cluster) -> None:
    await ask(served, {ORDERS: [4, 5, 6]})
    await served.join_isr(ORDERS, 4)
    for number in (1, 2, 3):
        served.kill_broker(number)
    await served.settle()
    assert served.leadership(ORDERS) == (4, [4])
    (error, message) = (await ask(served, {ORDERS: None}))[ORDERS]
    assert error is ErrorCode.invalid_replica_assignment
    assert message == "Refused, because it would delete all in-sync replicas, [4]: include one of them."
    assert ORDERS in served.broker(4).logs
    served.start_brokers(1, 2, 3)
    await served.settle()
    await served.join_isr(ORDERS, 1)
    assert await ask(served, {ORDERS: None}) == {ORDERS: BEGUN}
    assert served.list_replicas(ORDERS) == [1, 2, 3]


async def test_taking_back_waits_for_nobody_who_is_down(served: Cluster) -> None:
    await ask(served, {ORDERS: [4, 5, 6]})
    served.kill_broker(2)
    served.kill_broker(5)
    await served.settle()
    assert await ask(served, {ORDERS: None}) == {ORDERS: BEGUN}
    assert served.list_replicas(ORDERS) == [1, 2, 3]
    served.start_brokers(2, 5)
    await served.replicate()
    assert_no_log_is_nobodys(served)
    assert_sound(served)


# The last steps


async def reach_last_steps(cluster: Cluster) -> None:
    """`orders` is on 4, 5 and 6, but for 2, which has not answered that its replica is deleted."""
    await ask(cluster, {ORDERS: [4, 5, 6]})
    cluster.broker(2).hang()
    await cluster.join_isr(ORDERS, 4, 5, 6)
    assert await list_reassignments(cluster) == {ORDERS: ([4, 5, 6, 1, 2, 3], [4, 5, 6], [1, 2, 3])}


async def test_another_target_in_the_last_steps_begins_from_where_the_former_led(served: Cluster) -> None:
    await reach_last_steps(served)
    assert await ask(served, {ORDERS: [2, 7]}) == {ORDERS: BEGUN}
    assert await list_reassignments(served) == {ORDERS: ([2, 7, 4, 5, 6], [2, 7], [4, 5, 6])}
    served.broker(2).resume()
    await served.replicate()
    assert served.list_replicas(ORDERS) == [2, 7]
    assert_no_log_is_nobodys(served)
    assert_sound(served)


async def test_in_the_last_steps_there_is_nothing_left_to_cancel(served: Cluster) -> None:
    await reach_last_steps(served)
    assert (await ask(served, {ORDERS: None}))[ORDERS][0] is ErrorCode.no_reassignment_in_progress
    assert await list_reassignments(served) == {}
    assert served.list_replicas(ORDERS) == [4, 5, 6]
    served.broker(2).resume()
    await served.settle()
    assert_no_log_is_nobodys(served)
    assert_sound(served)


# Requests and the znode together


async def test_a_request_supplants_what_the_znode_asks_for_the_same_partition(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6], tp("orders", 1): [4, 5]})
    await served.settle()
    assert await ask(served, {ORDERS: [7]}) == {ORDERS: BEGUN}
    left = served.data(paths.REASSIGN_PARTITIONS)
    assert left is not None
    assert b'"partition":0' not in left
    assert b'"partition":1' in left
    await served.active.kill()
    await served.serve()
    await served.replicate()
    assert (served.list_replicas(ORDERS), served.list_replicas(tp("orders", 1))) == ([7], [4, 5])
    assert not served.exists(paths.REASSIGN_PARTITIONS)


async def test_taking_back_takes_the_request_out_of_the_znode(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    assert await ask(served, {ORDERS: None}) == {ORDERS: BEGUN}
    assert not served.exists(paths.REASSIGN_PARTITIONS)
    await served.active.kill()
    await served.serve()
    await served.replicate()
    assert served.list_replicas(ORDERS) == [1, 2, 3]
    assert_sound(served)


async def test_a_refused_request_leaves_the_znode_alone(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    await ask(served, {ORDERS: [9]})
    await served.replicate()
    assert served.list_replicas(ORDERS) == [4, 5, 6]


async def test_who_is_not_the_controller_says_so(served: Cluster) -> None:
    await served.active.stop()
    response = await served.processes[-1].answer(alter_reassignments({ORDERS: [4]}))
    assert response.error_code is ErrorCode.not_controller


async def test_many_partitions_move_by_one_request(served: Cluster) -> None:
    served.create_topic("many", *([1, 2] for _ in range(30)))
    await served.settle()
    answers = await ask(served, {tp("many", number): [4 + number % 3, 7] for number in range(30)})
    assert set(answers.values()) == {BEGUN}
    await served.replicate()
    assert [served.list_replicas(tp("many", number)) for number in range(30)] == [[4 + n % 3, 7] for n in range(30)]
    assert BrokerId(7) in served.live
    assert_sound(served)

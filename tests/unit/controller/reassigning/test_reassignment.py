"""`on_partition_reassignment` of seed 000: from OAR through OAR + RAR to RAR, and the events that may interrupt it."""

from collections.abc import Sequence

import pytest

from controller_core.model.ids import BrokerId, PartitionReplica, TopicName
from controller_core.model.transitions import ReplicaStatus
from controller_core.wire.messages import (
    ControlRequest,
    ErrorCode,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from controller_core.zk import paths
from controller_core.zk.session import WriteOp
from simulation.checks import assert_no_log_is_nobodys, assert_sound
from simulation.cluster import Cluster, ids, tp

ORDERS = tp("orders")


@pytest.fixture
async def served(cluster: Cluster) -> Cluster:
    """Seven brokers; `orders` on 1, 2 and 3."""
    cluster.start_brokers(1, 2, 3, 4, 5, 6, 7)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2, 3])
    await cluster.settle()
    return cluster


def assert_moved(cluster: Cluster, target: Sequence[int], *, gone: Sequence[int] = ()) -> None:
    """Assert that `orders` is on its target, and nothing is left on the old brokers."""
    assert cluster.list_replicas(ORDERS) == list(target)
    assert not cluster.assignment(ORDERS).is_being_reassigned
    leader, isr = cluster.leadership(ORDERS)
    assert leader in target
    assert sorted(isr) == sorted(target)
    assert not cluster.exists(paths.REASSIGN_PARTITIONS)
    for number in gone:
        assert ORDERS not in cluster.broker(number).replicas
        assert ORDERS not in cluster.broker(number).logs
    assert_sound(cluster)


def observe_rows(cluster: Cluster) -> list[tuple[set[int], int, set[int]]]:
    """The values that AR, leader and ISR go through in ZooKeeper: the rows of the specification's table."""
    rows: list[tuple[set[int], int, set[int]]] = []

    def note() -> None:
        leader, isr = cluster.leadership(ORDERS)
        row = (set(cluster.list_replicas(ORDERS)), leader, set(isr))
        if not rows or rows[-1] != row:
            rows.append(row)

    note()
    cluster.zk.observers.append(note)
    return rows


async def test_the_partition_passes_through_the_rows_of_the_specification(served: Cluster) -> None:
    rows = observe_rows(served)
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    await served.join_isr(ORDERS, 4, 5, 6)
    await served.settle()
    old, new = {1, 2, 3}, {4, 5, 6}
    assert rows == [
        (old, 1, old),
        (old | new, 1, old),
        (old | new, 1, old | new),
        (old | new, 4, old | new),
        (old | new, 4, new),
        (new, 4, new),
    ]
    assert_moved(served, [4, 5, 6], gone=[1, 2, 3])


async def test_the_new_replicas_are_started_with_all_six_and_the_old_ones_learn_of_them(served: Cluster) -> None:
    before = served.state(ORDERS).leader_and_isr.leader_epoch
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    for number in range(1, 7):
        replica = served.broker(number).replicas[ORDERS]
        assert replica.leader_epoch == before + 1
        assert replica.replicas == ids([4, 5, 6, 1, 2, 3])
        assert replica.adding_replicas == ids([4, 5, 6])
        assert replica.removing_replicas == ids([1, 2, 3])
    assert served.exists(paths.REASSIGN_PARTITIONS), "it is removed last"
    assert_sound(served)


async def test_every_broker_is_sent_it_again_after_the_new_assignment_is_written(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    served.broker(2).hang()
    await served.join_isr(ORDERS, 4, 5, 6)
    await served.settle()
    assert served.assignment(ORDERS).is_being_reassigned, "2 has not deleted its replica"
    for number in range(1, 8):
        served.broker(number).requests.clear()
    served.broker(2).resume()
    await served.settle()
    assert served.list_replicas(ORDERS) == [4, 5, 6]
    for number in range(1, 8):
        last = served.broker(number).requests_of(UpdateMetadataRequest)[-1]
        (state,) = last.topic_states[0].partition_states
        assert (state.leader, state.isr, state.replicas) == (4, (4, 5, 6), (4, 5, 6))


class NotedStops(list[ControlRequest]):
    """The requests to a broker. For each request that stops a replica, the ISR in ZooKeeper is noted."""

    def __init__(self, cluster: Cluster) -> None:
        self.isrs: list[list[int]] = []
        self._cluster = cluster

    def append(self, request: ControlRequest) -> None:
        if isinstance(request, StopReplicaRequest):
            self.isrs.append(self._cluster.leadership(ORDERS)[1])
        super().append(request)


async def test_an_old_replica_is_out_of_the_isr_before_it_is_stopped(served: Cluster) -> None:
    """The specification stops it first; then its leader could commit nothing until the ISR is written."""
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    stops = {number: NotedStops(served) for number in (1, 2, 3)}
    for number, noted in stops.items():
        served.broker(number).requests = noted
    await served.join_isr(ORDERS, 4, 5, 6)
    await served.settle()
    for noted in stops.values():
        assert noted.isrs
        assert all(isr == [4, 5, 6] for isr in noted.isrs)


async def test_nothing_moves_before_all_of_the_target_is_in_sync(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    await served.join_isr(ORDERS, 4, 5)
    assert served.leadership(ORDERS) == (1, [1, 2, 3, 4, 5])
    assert served.assignment(ORDERS).is_being_reassigned
    assert_sound(served)
    await served.join_isr(ORDERS, 6)
    assert_moved(served, [4, 5, 6], gone=[1, 2, 3])


@pytest.mark.parametrize(
    ("target", "leader"),
    [([1, 2, 3, 4], 1), ([2, 3, 4], 2), ([3, 2], 3), ([2, 1, 3], 1), ([4], 4), ([1], 1), ([3, 1, 2], 1)],
    ids=["grow", "one for another", "shrink", "order only", "to one", "stay on one", "rotate"],
)
async def test_a_partition_moves_wherever_it_is_asked_to(served: Cluster, target: list[int], leader: int) -> None:
    served.request_reassignment({ORDERS: target})
    await served.replicate()
    assert_moved(served, target, gone=[number for number in (1, 2, 3) if number not in target])
    assert served.leadership(ORDERS)[0] == leader


async def test_many_partitions_move_together_and_each_finishes_by_itself(served: Cluster) -> None:
    served.create_topic("many", *([1, 2] for _ in range(30)))
    await served.settle()
    served.request_reassignment({tp("many", number): [4 + number % 3, 7] for number in range(30)})
    await served.settle()
    await served.join_isr(tp("many", 3), 4, 7)
    assert served.list_replicas(tp("many", 3)) == [4, 7]
    assert served.assignment(tp("many", 4)).is_being_reassigned
    await served.replicate()
    assert [served.list_replicas(tp("many", number)) for number in range(30)] == [[4 + n % 3, 7] for n in range(30)]
    assert not served.exists(paths.REASSIGN_PARTITIONS)
    assert_sound(served)


async def test_a_second_request_is_taken_up_while_the_first_runs(served: Cluster) -> None:
    served.create_topic("other", [1, 2])
    await served.settle()
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    served.request_reassignment({ORDERS: [4, 5, 6], tp("other"): [3, 4]})
    await served.replicate()
    assert served.list_replicas(tp("other")) == [3, 4]
    assert_moved(served, [4, 5, 6], gone=[1, 2, 3])


# Bad requests


@pytest.mark.parametrize(
    "data", [b"", b"{not json", b"[]", b'{"version":1}', b'{"version":1,"partitions":[]}', b"null"]
)
async def test_an_unreadable_request_is_removed_and_blocks_nothing(served: Cluster, data: bytes) -> None:
    served.put(paths.REASSIGN_PARTITIONS, data)
    await served.settle()
    assert not served.exists(paths.REASSIGN_PARTITIONS)
    served.request_reassignment({ORDERS: [2, 3]})
    await served.replicate()
    assert_moved(served, [2, 3], gone=[1])


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ('{"topic":"unknown","partition":0,"replicas":[1]}', "there is no such partition"),
        ('{"topic":"orders","partition":9,"replicas":[1]}', "there is no such partition"),
        ('{"topic":"orders","partition":0,"replicas":[4,9]}', "broker 9 is not live"),
        ('{"topic":"orders","partition":0,"replicas":[4,4]}', "names a broker twice"),
        ('{"topic":"orders","partition":0,"replicas":[]}', "replicas"),
        ('{"topic":"orders","partition":0,"replicas":[-1]}', "replicas"),
        ('{"topic":"orders","partition":0,"replicas":["4"]}', "replicas"),
        ('{"topic":"orders","partition":"x","replicas":[4]}', "partition"),
    ],
)
async def test_a_bad_entry_is_reported_and_taken_out_and_the_good_one_is_served(
    served: Cluster, entry: str, reason: str
) -> None:
    served.create_topic("good", [1])
    await served.settle()
    good = '{"topic":"good","partition":0,"replicas":[2]}'
    served.put(paths.REASSIGN_PARTITIONS, f'{{"version":1,"partitions":[{entry},{good}]}}'.encode())
    await served.replicate()
    assert served.list_replicas(tp("good")) == [2]
    assert served.list_replicas(ORDERS) == [1, 2, 3]
    assert not served.exists(paths.REASSIGN_PARTITIONS)
    refusals = [entry for entry in served.logs if entry["event"].endswith(("refused", "skipped"))]
    assert any(reason in str(refusal.get("reason")) for refusal in refusals), refusals
    assert_sound(served)


async def test_a_served_request_is_removed_with_the_children_that_a_stranger_created(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [1, 2, 3]})
    served.put(f"{paths.REASSIGN_PARTITIONS}/foo", b"")
    await served.settle()
    assert not served.exists(paths.REASSIGN_PARTITIONS)


async def test_a_request_for_what_is_so_already_is_simply_removed(served: Cluster) -> None:
    before = served.state(ORDERS)
    served.request_reassignment({ORDERS: [1, 2, 3]})
    await served.settle()
    assert not served.exists(paths.REASSIGN_PARTITIONS)
    assert served.state(ORDERS) == before


async def test_a_request_for_a_topic_that_is_created_at_the_same_moment_is_served(served: Cluster) -> None:
    """The request is looked at first."""
    served.request_reassignment({tp("fresh"): [4], tp("orders", 1): [5]})
    served.create_topic("fresh", [1, 2])
    served.add_partitions("orders", [1, 2])
    await served.replicate()
    assert (served.list_replicas(tp("fresh")), served.list_replicas(tp("orders", 1))) == ([4], [5])
    assert not served.exists(paths.REASSIGN_PARTITIONS)
    assert_sound(served)


async def test_a_reassignment_that_nobody_can_lead_is_known_to_all_brokers(served: Cluster) -> None:
    """All replicas are in sync and none is live: nothing changes but AR."""
    for number in (1, 2, 3):
        served.kill_broker(number)
    await served.settle()
    served.request_reassignment({ORDERS: [3, 2]})
    await served.settle()
    assert served.list_replicas(ORDERS) == [3, 2, 1]
    assert_sound(served)
    served.start_brokers(1, 2, 3)
    await served.replicate()
    assert_moved(served, [3, 2], gone=[1])


# Another target on the way


async def test_a_replaced_target_drops_the_replicas_that_only_the_former_needed(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    await served.join_isr(ORDERS, 4, 5)
    served.request_reassignment({ORDERS: [4, 7]})
    await served.settle()
    assert set(served.list_replicas(ORDERS)) == {1, 2, 3, 4, 7}
    assert served.leadership(ORDERS) == (1, [1, 2, 3, 4])
    await served.replicate()
    assert_moved(served, [4, 7], gone=[1, 2, 3, 5, 6])


async def test_going_back_to_the_origin_takes_everything_back(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    await served.join_isr(ORDERS, 4, 5)
    served.request_reassignment({ORDERS: [1, 2, 3]})
    await served.settle()
    assert_moved(served, [1, 2, 3], gone=[4, 5, 6])


async def test_a_target_that_is_replaced_while_old_replicas_are_deleted_is_taken_up_afterwards(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    served.broker(2).hang()
    await served.join_isr(ORDERS, 4, 5, 6)
    assert served.assignment(ORDERS).is_being_reassigned, "2 has not answered yet that it deleted its replica"
    served.request_reassignment({ORDERS: [2, 7]})
    await served.settle()
    served.broker(2).resume()
    await served.replicate()
    assert_moved(served, [2, 7], gone=[1, 3, 4, 5, 6])


async def test_a_replaced_target_may_drop_the_leader_while_others_are_in_sync(served: Cluster) -> None:
    """4 came to lead because the old replicas died, and is then no longer wanted; 5 is in sync, too."""
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    await served.join_isr(ORDERS, 4, 5)
    for number in (1, 2, 3):
        served.kill_broker(number)
    await served.settle()
    assert served.leadership(ORDERS) == (4, [4, 5])
    served.request_reassignment({ORDERS: [5, 7]})
    await served.replicate()
    assert_moved(served, [5, 7], gone=[4, 6])


async def test_a_target_that_would_delete_every_replica_in_sync_is_refused(served: Cluster) -> None:
    """The records that only these replicas have would be lost: 1, 2 and 3 are dead and behind."""
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    await served.join_isr(ORDERS, 4)
    for number in (1, 2, 3):
        served.kill_broker(number)
    await served.settle()
    assert served.leadership(ORDERS) == (4, [4])
    served.request_reassignment({ORDERS: [1, 7]})
    await served.settle()
    assert served.leadership(ORDERS) == (4, [4])
    assert ORDERS in served.broker(4).logs
    assert any("in-sync" in str(entry.get("reason")) for entry in served.logs)
    await served.replicate()
    assert_moved(served, [4, 5, 6])


# Brokers that die on the way


async def test_a_target_that_dies_and_returns_is_waited_for(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    await served.join_isr(ORDERS, 4, 5)
    served.kill_broker(6)
    await served.replicate()
    assert served.assignment(ORDERS).is_being_reassigned
    assert_sound(served)
    served.start_broker(6)
    await served.replicate()
    assert_moved(served, [4, 5, 6], gone=[1, 2, 3])


async def test_a_move_to_the_last_replica_in_sync_ends_when_its_broker_starts(served: Cluster) -> None:
    """Before the start no broker can lead it, and afterwards no ISR changes. So only the start can continue the
    move."""
    for broker in (1, 3, 2):
        served.kill_broker(broker)
        await served.settle()
    assert served.leadership(ORDERS) == (-1, [2])
    served.request_reassignment({ORDERS: [2]})
    await served.settle()
    assert served.list_replicas(ORDERS) == [2, 1, 3]
    served.start_broker(2)
    await served.settle()
    assert served.leadership(ORDERS) == (2, [2])
    assert served.list_replicas(ORDERS) == [2]
    assert not served.exists(paths.REASSIGN_PARTITIONS)


async def test_the_new_replicas_are_online_before_the_old_ones_are_gone(served: Cluster) -> None:
    served.broker(2).hang()
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    status = served.active.term.state.replica_status
    new = [PartitionReplica(ORDERS, broker) for broker in ids([4, 5, 6])]
    assert {status[replica] for replica in new} == {ReplicaStatus.NEW}
    await served.join_isr(ORDERS, 4, 5, 6)
    await served.settle()
    assert served.assignment(ORDERS).is_being_reassigned, "2 has not deleted its replica"
    assert {status[replica] for replica in new} == {ReplicaStatus.ONLINE}


async def test_a_target_that_dies_before_it_was_sent_anything_is_started_when_it_returns(served: Cluster) -> None:
    served.broker(6).hang()
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    served.kill_broker(6)
    await served.settle()
    served.start_broker(6)
    await served.replicate()
    assert_moved(served, [4, 5, 6], gone=[1, 2, 3])


async def test_the_leader_dies_on_the_way(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    served.kill_broker(1)
    await served.replicate()
    assert_moved(served, [4, 5, 6], gone=[2, 3])


async def test_an_old_replica_on_a_dead_broker_is_not_waited_for(served: Cluster) -> None:
    served.kill_broker(3)
    await served.settle()
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.replicate()
    assert_moved(served, [4, 5, 6], gone=[1, 2])
    served.start_broker(3)
    await served.settle()
    assert ORDERS not in served.broker(3).replicas
    assert_sound(served)


async def test_an_old_replica_whose_broker_dies_while_deleting_is_not_waited_for(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    served.broker(3).hang()
    await served.join_isr(ORDERS, 4, 5, 6)
    assert served.assignment(ORDERS).is_being_reassigned
    served.kill_broker(3)
    await served.settle()
    assert_moved(served, [4, 5, 6], gone=[1, 2])


async def test_an_old_replica_whose_broker_returns_in_the_last_steps_is_deleted_there(served: Cluster) -> None:
    served.kill_broker(3)
    await served.settle()
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    served.broker(2).hang()
    await served.join_isr(ORDERS, 4, 5, 6)
    assert served.assignment(ORDERS).is_being_reassigned
    served.start_broker(3)
    await served.settle()
    served.broker(2).resume()
    await served.settle()
    assert_moved(served, [4, 5, 6], gone=[1, 2, 3])
    assert_no_log_is_nobodys(served)


@pytest.mark.parametrize("error", [ErrorCode.unknown_server_error, ErrorCode.cluster_authorization_failed])
async def test_an_old_replica_that_cannot_be_deleted_holds_up_nothing(served: Cluster, error: ErrorCode) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    served.broker(3).offline.add(ORDERS)
    for number in (1, 2):
        for _ in range(10):
            served.broker(number).answer_next_with(error)
    await served.join_isr(ORDERS, 4, 5, 6)
    await served.settle()
    assert served.list_replicas(ORDERS) == [4, 5, 6]
    assert not served.exists(paths.REASSIGN_PARTITIONS)


async def test_an_old_replica_whose_broker_changes_its_port_meanwhile_is_deleted_there(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    served.broker(3).hang()
    await served.join_isr(ORDERS, 4, 5, 6)
    served.move_broker(3, port=7777)
    await served.settle()
    served.broker(3).resume()
    await served.settle()
    assert_moved(served, [4, 5, 6], gone=[1, 2, 3])


async def test_all_brokers_restart_one_by_one_on_the_way(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    for number in range(1, 8):
        served.bounce_broker(number)
        await served.replicate()
    assert_moved(served, [4, 5, 6])


async def test_a_partition_that_never_had_a_leader_moves_to_live_brokers(served: Cluster) -> None:
    served.create_topic("stuck", [8, 9])
    await served.settle()
    served.request_reassignment({tp("stuck"): [4, 5]})
    await served.replicate()
    assert served.list_replicas(tp("stuck")) == [4, 5]
    assert sorted(served.leadership(tp("stuck"))[1]) == [4, 5]
    assert_sound(served)
    served.kill_broker(4)
    await served.settle()
    assert served.leadership(tp("stuck")) == (5, [5])
    assert_sound(served)


@pytest.mark.parametrize("number", [1, 3])
async def test_taking_a_reassignment_back_waits_for_nobody(served: Cluster, number: int) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    served.kill_broker(number)
    await served.settle()
    served.request_reassignment({ORDERS: [1, 2, 3]})
    await served.settle()
    assert served.list_replicas(ORDERS) == [1, 2, 3]
    assert not served.exists(paths.REASSIGN_PARTITIONS)
    assert served.active.term.state.reassignments == {}
    assert all(ORDERS not in served.broker(added).logs for added in (4, 5, 6))
    assert_sound(served)


async def test_another_order_of_the_replicas_waits_for_nobody_even_without_a_leader(served: Cluster) -> None:
    served.create_topic("stuck", [8, 9])
    for number in (1, 2, 3):
        served.kill_broker(number)
        await served.settle()
    served.request_reassignment({ORDERS: [2, 3, 1], tp("stuck"): [9, 8]})
    await served.settle()
    assert (served.list_replicas(ORDERS), served.list_replicas(tp("stuck"))) == ([2, 3, 1], [9, 8])
    assert not served.exists(paths.REASSIGN_PARTITIONS)
    assert served.active.term.state.reassignments == {}
    assert_sound(served)
    served.start_brokers(1, 2, 3)
    await served.replicate()
    assert sorted(served.leadership(ORDERS)[1]) == [1, 2, 3]
    assert_sound(served)


# Topics that vanish on the way


async def test_a_topic_that_vanishes_takes_its_reassignment_with_it(served: Cluster) -> None:
    served.create_topic("other", [1, 2])
    await served.settle()
    served.request_reassignment({ORDERS: [4, 5, 6], tp("other"): [3]})
    await served.settle()
    served.remove_topic("orders")
    await served.replicate()
    assert served.list_replicas(tp("other")) == [3]
    assert not served.exists(paths.REASSIGN_PARTITIONS)
    assert served.active.term.state.reassignments == {}
    assert_sound(served)


async def test_a_topic_that_vanishes_while_its_old_replicas_are_deleted(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    served.broker(3).hang()
    await served.join_isr(ORDERS, 4, 5, 6)
    served.remove_topic("orders")
    await served.settle()
    served.broker(3).resume()
    await served.settle()
    assert not served.exists(paths.topic(TopicName("orders")))
    assert not served.exists(paths.REASSIGN_PARTITIONS)
    assert_sound(served)


async def test_running_reassignments_are_listed(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    response = await served.ask(BrokerId(1), ListPartitionReassignmentsRequest(topics=None))
    assert isinstance(response, ListPartitionReassignmentsResponse)
    (partition,) = response.topics[0].partitions
    assert response.topics[0].name == "orders"
    assert (partition.replicas, partition.adding_replicas, partition.removing_replicas) == (
        (4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3),
    )  # fmt: skip
    await served.replicate()
    response = await served.ask(BrokerId(1), ListPartitionReassignmentsRequest(topics=None))
    assert isinstance(response, ListPartitionReassignmentsResponse)
    assert response.topics == ()


async def test_partitions_that_are_added_while_a_reassignment_rewrites_the_topic_are_served(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2, 3)
    cluster.create_topic("orders", [1, 2])
    await cluster.serve()

    def add_a_partition(ops: Sequence[WriteOp]) -> None:
        if any(op.path == paths.topic(TopicName("orders")) for op in ops):
            cluster.zk.interventions.clear()
            cluster.add_partitions("orders", [3, 1])

    cluster.zk.interventions.append(add_a_partition)
    cluster.request_reassignment({tp("orders"): [2, 3]})
    await cluster.settle()
    assert cluster.broker(3).leads(tp("orders", 1))
    await cluster.replicate()
    assert cluster.list_replicas(tp("orders")) == [2, 3]

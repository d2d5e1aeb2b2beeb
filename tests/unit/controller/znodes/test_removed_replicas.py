"""The list of removed replicas: no log without an owner is left, and no log with an owner is deleted."""

from collections.abc import Callable

import orjson
import pytest

from controller_core.controller.znodes import removed_replicas
from controller_core.controller.znodes.removed_replicas import RemovedReplicasChange
from controller_core.model.ids import BrokerId, PartitionId, PartitionReplica
from controller_core.model.metadata import ReplicaAssignment, TopicAssignment
from controller_core.wire.messages import ControlRequest, ErrorCode, StopReplicaRequest
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create
from simulation.brokers import SimulatedBroker
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


def entries(cluster: Cluster) -> list[str]:
    return list(cluster.zk.tree.children(paths.REMOVED_REPLICAS) or ())


class Requests(list[ControlRequest]):
    """Acts when the first StopReplica arrives, before the broker looks at it."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__()
        self._act: Callable[[], None] | None = act

    def append(self, request: ControlRequest) -> None:
        super().append(request)
        if isinstance(request, StopReplicaRequest) and self._act is not None:
            self._act()
            self._act = None


def act_at_first_stop(broker: SimulatedBroker, act: Callable[[], None]) -> None:
    broker.requests = Requests(act)


async def move_away_from_dead_3(cluster: Cluster) -> None:
    cluster.kill_broker(3)
    await cluster.settle()
    cluster.request_reassignment({ORDERS: [1, 2, 4]})
    await cluster.replicate()
    assert cluster.list_replicas(ORDERS) == [1, 2, 4]


async def delete_orders(cluster: Cluster) -> None:
    cluster.request_deletion("orders")
    await cluster.settle()
    assert not cluster.exists(paths.topic(ORDERS.topic))


def assert_clean(cluster: Cluster) -> None:
    assert entries(cluster) == []
    assert cluster.active.term.state.removed_replicas == {}
    assert_no_log_is_nobodys(cluster)
    assert_sound(cluster)


async def test_a_reassignment_whose_old_replicas_are_deleted_leaves_no_entry(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.replicate()
    assert_clean(served)


async def test_the_log_on_a_dead_broker_is_remembered_and_deleted_when_it_returns(served: Cluster) -> None:
    await move_away_from_dead_3(served)
    assert entries(served) == ["3,orders,0"]
    served.start_broker(3)
    await served.settle()
    assert ORDERS not in served.broker(3).logs
    assert_clean(served)


async def test_it_is_deleted_by_a_later_controller_too(served: Cluster) -> None:
    await move_away_from_dead_3(served)
    await served.active.kill()
    served.start_broker(3)
    await served.serve()
    assert ORDERS not in served.broker(3).logs
    assert_clean(served)


async def test_an_entry_outlives_its_topic_and_the_next_topic_of_that_name_is_served_there(served: Cluster) -> None:
    await move_away_from_dead_3(served)
    await delete_orders(served)
    assert entries(served) == ["3,orders,0"]
    served.create_topic("orders", [3, 1, 2])
    await served.settle()
    assert served.leadership(ORDERS) == (1, [1, 2])
    served.start_broker(3)
    await served.replicate()
    assert sorted(served.leadership(ORDERS)[1]) == [1, 2, 3]
    assert_clean(served)


async def test_the_next_topic_of_that_name_with_no_replica_there(served: Cluster) -> None:
    """The former topic had a larger leader epoch, which must not fence the request to delete its log."""
    for number in (1, 2, 1):
        served.bounce_broker(number)
        await served.replicate()
    await move_away_from_dead_3(served)
    await delete_orders(served)
    served.create_topic("orders", [1, 2])
    served.start_broker(3)
    await served.settle()
    assert ORDERS not in served.broker(3).logs
    assert_clean(served)


async def test_a_good_log_is_kept_where_only_the_answer_to_a_former_deletion_was_lost(served: Cluster) -> None:
    """Another controller in between does not know the list, and lets the next topic be served beside the entry."""
    await move_away_from_dead_3(served)
    await delete_orders(served)
    former = entries(served)
    data = served.data(f"{paths.REMOVED_REPLICAS}/{former[0]}")
    assert data is not None
    served.start_broker(3)
    await served.settle()
    topic_id = served.create_topic("orders", [3])
    await served.settle()
    assert served.broker(3).logs[ORDERS] == topic_id
    await served.active.kill()
    served.write(Create(path=f"{paths.REMOVED_REPLICAS}/{former[0]}", data=data))
    sent = len(served.broker(3).requests_of(StopReplicaRequest))
    served.bounce_broker(3)
    await served.serve()
    assert served.broker(3).logs[ORDERS] == topic_id
    assert len(served.broker(3).requests_of(StopReplicaRequest)) == sent, "it was sent a request to delete a good log"
    assert_clean(served)


async def test_a_topic_that_lost_its_id_loses_no_log(served: Cluster) -> None:
    """The brokers refuse it until the id is restored, but no entry of the list names their logs."""
    await served.active.kill()
    content = served.topic("orders")
    served.remove_topic("orders")
    served.create_topic("orders", [1, 2, 3], has_id=False)
    for number in (1, 2, 3):
        served.bounce_broker(number)
    await served.serve()
    assert [served.broker(number).logs[ORDERS] for number in (1, 2, 3)] == [content.topic_id] * 3


async def test_a_replica_that_is_added_again_is_struck_out_with_the_same_write(served: Cluster) -> None:
    await move_away_from_dead_3(served)
    served.broker(3).hang()
    served.start_broker(3)
    served.broker(3).hang()
    await served.settle()
    served.request_reassignment({ORDERS: [1, 2, 3]})
    written: list[bool] = []
    served.zk.observers.append(lambda: written.append((3 in served.list_replicas(ORDERS)) != bool(entries(served))))
    await served.settle()
    assert written
    assert all(written), "3 is in AR or listed as removed, never in both and never in neither"
    served.broker(3).resume()
    await served.replicate()
    assert served.list_replicas(ORDERS) == [1, 2, 3]
    assert_clean(served)


async def test_dropped_replicas_of_a_replaced_target_are_entered_until_they_answer(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    served.broker(5).hang()
    served.request_reassignment({ORDERS: [4, 7]})
    await served.settle()
    assert entries(served) == ["5,orders,0"]
    await served.active.kill()
    served.broker(5).resume()
    await served.serve()
    assert ORDERS not in served.broker(5).logs
    await served.replicate()
    assert_clean(served)


async def test_an_answer_about_a_former_removal_does_not_strike_out_a_later_one(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    served.broker(6).hang()
    for target in ([1, 2, 3], [4, 5, 6], [1, 2, 3]):
        served.request_reassignment({ORDERS: target})
        await served.settle()
    assert entries(served) == ["6,orders,0"]
    act_at_first_stop(served.broker(6), served.broker(6).hang)
    served.broker(6).resume()
    await served.settle()
    assert entries(served) == ["6,orders,0"], "the answer is about the first time, and the second is still to come"
    served.broker(6).resume()
    await served.settle()
    assert len(served.broker(6).requests_of(StopReplicaRequest)) == 2
    assert_clean(served)


async def test_a_broker_that_cannot_delete_is_asked_again_when_it_starts(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    served.broker(3).offline.add(ORDERS)
    await served.join_isr(ORDERS, 4, 5, 6)
    await served.settle()
    assert served.list_replicas(ORDERS) == [4, 5, 6]
    assert entries(served) == ["3,orders,0"]
    served.broker(3).offline.clear()
    served.bounce_broker(3)
    await served.settle()
    assert ORDERS not in served.broker(3).logs
    assert_clean(served)


async def test_a_broker_that_refuses_the_deletion_for_the_next_topic_is_not_asked_without_end(served: Cluster) -> None:
    await move_away_from_dead_3(served)
    await delete_orders(served)
    served.create_topic("orders", [3, 1])
    await served.settle()
    act_at_first_stop(served.broker(3), lambda: served.broker(3).answer_next_with(ErrorCode.unknown_server_error))
    served.start_broker(3)
    await served.settle()
    assert len(served.broker(3).requests_of(StopReplicaRequest)) == 1
    assert entries(served) == ["3,orders,0"]
    served.bounce_broker(3)
    await served.replicate()
    assert sorted(served.leadership(ORDERS)[1]) == [1, 3]
    assert_clean(served)


async def test_what_a_broker_that_dies_while_it_deletes_still_has_is_listed(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    served.broker(3).hang()
    await served.join_isr(ORDERS, 4, 5, 6)
    served.kill_broker(3)
    await served.settle()
    assert served.list_replicas(ORDERS) == [4, 5, 6]
    assert entries(served) == ["3,orders,0"]
    served.start_broker(3)
    await served.settle()
    assert_clean(served)


async def test_the_last_replica_in_sync_is_kept_though_it_is_listed_as_removed(served: Cluster) -> None:
    """Another program took 1 out of AR while no other replica was in sync."""
    for number in (3, 2):
        served.kill_broker(number)
        await served.settle()
    await served.active.kill()
    topic_id = served.topic("orders").topic_id
    served.remove_topic("orders")
    served.create_topic("orders", [2, 3])
    content = served.topic("orders")
    assert topic_id != content.topic_id
    served.put(
        paths.topic(ORDERS.topic), codecs.encode_topic(type(content)(topic_id=topic_id, partitions=content.partitions))
    )
    served.write(Create(path=paths.partitions(ORDERS.topic)), Create(path=paths.partition(ORDERS)))
    state = b'{"version":1,"leader":-1,"leader_epoch":9,"controller_epoch":1,"isr":[1]}'
    served.write(Create(path=paths.partition_state(ORDERS), data=state))
    served.write(
        Create(
            path=paths.replica_removal(PartitionReplica(ORDERS, BrokerId(1))),
            data=codecs.encode_removed_replica(topic_id),
        )
    )
    await served.serve()
    assert ORDERS in served.broker(1).logs
    assert entries(served) == ["1,orders,0"]


async def test_entries_that_a_person_removed_or_scribbled_on_block_nothing(served: Cluster) -> None:
    await move_away_from_dead_3(served)
    served.remove(paths.KONTROLLER)
    served.start_broker(3)
    await served.settle()
    served.request_reassignment({ORDERS: [3]})
    await served.replicate()
    served.kill_broker(2)
    served.request_reassignment({ORDERS: [2, 1]})
    served.start_broker(2)
    await served.replicate()
    assert served.list_replicas(ORDERS) == [2, 1]
    await served.active.kill()
    for name in ("x", "1,orders", "1,orders,0,0", "a,orders,0"):
        served.write(Create(path=f"{paths.REMOVED_REPLICAS}/{name}"))
    served.write(Create(path=f"{paths.REMOVED_REPLICAS}/6,orders,0", data=b"{no json"))
    await served.serve()
    assert len([entry for entry in served.logs if "unreadable entry among the removed" in entry["event"]]) == 5
    assert_sound(served)


async def test_a_broker_hears_that_it_must_delete_before_it_is_given_the_replica_again(served: Cluster) -> None:
    """Both are decided by a new controller at once: it finds 1 to be removed, and a request that brings 1 back."""
    life = served.active.life
    life.last_write = life.writes + 1
    served.request_reassignment({ORDERS: [2, 3]})
    await served.settle()
    assert served.assignment(ORDERS).removing == (1,)
    await served.processes[-1].kill()
    served.request_reassignment({ORDERS: [1, 2]})
    await served.serve()
    await served.replicate()
    assert served.list_replicas(ORDERS) == [1, 2]
    assert_clean(served)


@pytest.mark.parametrize(("count", "at_most"), [(1, 500), (100, 500), (1000, 500), (10, 1)])
def test_a_rewrite_is_cut_to_what_fits_a_transaction_until_nothing_is_left(count: int, at_most: int) -> None:
    def make_topic(*replicas: int) -> TopicAssignment:
        assignment = ReplicaAssignment(replicas=ids(replicas))
        return TopicAssignment(topic_id=None, partitions={PartitionId(number): assignment for number in range(count)})

    def change(before: TopicAssignment, after: TopicAssignment) -> RemovedReplicasChange:
        moving = [n for n in range(count) if before.partitions[PartitionId(n)] != after.partitions[PartitionId(n)]]
        dropped = [PartitionReplica(tp("many", number), BrokerId(broker)) for number in moving for broker in (1, 2)]
        added = [PartitionReplica(tp("many", number), BrokerId(broker)) for number in moving for broker in (4, 5)]
        return RemovedReplicasChange(entered=dict.fromkeys(dropped), struck=set(added))

    content, after, written = make_topic(1, 2, 3), make_topic(3, 4, 5), []
    while content != after:
        before = content
        content, step = removed_replicas.limit_rewrite(before, after, change(before, after), at_most)
        assert step == change(before, content)
        written.append(step.size)
    assert sum(written) == 4 * count
    assert max(written) == max(4, min(at_most, 4 * count))
    assert removed_replicas.limit_rewrite(content, after, RemovedReplicasChange(), at_most)[0] is after


async def test_more_replicas_than_fit_one_write_are_dropped_together(served: Cluster) -> None:
    count = removed_replicas.CHANGES_PER_WRITE // 4 + 5
    served.create_topic("many", *([1, 2, 3] for _ in range(count)))
    await served.settle()
    served.request_reassignment({tp("many", number): [4, 5, 6, 7] for number in range(count)})
    await served.settle()
    served.broker(4).hang()
    served.request_reassignment({tp("many", number): [1, 2, 3] for number in range(count)})
    await served.settle()
    assert len(entries(served)) == count
    assert all(not assignment.is_being_reassigned for assignment in served.topic("many").partitions.values())
    served.broker(4).resume()
    await served.settle()
    assert entries(served) == []
    assert_no_log_is_nobodys(served)


async def test_a_controller_that_died_before_the_dropped_leader_left_is_followed_by_one_that_moves_it(
    served: Cluster,
) -> None:
    served.request_reassignment({ORDERS: [4, 5, 6]})
    await served.settle()
    await served.join_isr(ORDERS, 4)
    served.bounce_broker(1)
    for number in (2, 3):
        served.bounce_broker(number)
        await served.settle()
    await served.join_isr(ORDERS, 1)
    leader, isr = served.leadership(ORDERS)
    assert (leader, sorted(isr)) == (4, [1, 4])
    life = served.active.life
    life.last_write = life.writes + 1
    served.request_reassignment({ORDERS: [1, 2, 3]})
    await served.settle()
    assert served.list_replicas(ORDERS) == [1, 2, 3], "the first write of taking it back"
    assert served.leadership(ORDERS)[0] == 4
    await served.processes[-1].kill()
    await served.serve()
    await served.replicate()
    assert served.leadership(ORDERS)[0] == 1
    assert sorted(served.leadership(ORDERS)[1]) == [1, 2, 3]
    assert_clean(served)


@pytest.mark.parametrize("partitions", [{"0": [1, 2, 3, 1 << 31]}, "garbled"])
async def test_a_log_that_may_be_assigned_again_by_other_hands_is_kept(served: Cluster, partitions: object) -> None:
    """The topic's znode has an invalid value for the partition, so the owner of the log is unknown."""
    await move_away_from_dead_3(served)
    await served.active.kill()
    content = orjson.loads(served.data(paths.topic(ORDERS.topic)) or b"")
    served.put(paths.topic(ORDERS.topic), orjson.dumps(content | {"partitions": partitions}))
    served.start_broker(3)
    await served.serve()
    assert ORDERS in served.broker(3).logs
    assert entries(served) == ["3,orders,0"]
    served.put(paths.topic(ORDERS.topic), orjson.dumps(content))
    await served.settle()
    served.bounce_broker(3)
    await served.settle()
    assert_clean(served)

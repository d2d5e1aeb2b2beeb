"""The last partitions of topics are removed at `/admin/partitions_remove`, if all brokers are Kontroller's."""

import pytest

from controller_core.model.ids import EPOCH_DURING_DELETE, TopicName
from controller_core.wire.messages import ErrorCode, StopReplicaRequest
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create
from simulation.checks import assert_no_log_is_nobodys, assert_sound
from simulation.cluster import Cluster, tp
from simulation.process import ProcessSettings

REMOVE = paths.PARTITIONS_REMOVE
LAST = tp("orders", 2)


@pytest.fixture
async def ours(cluster: Cluster) -> Cluster:
    """Four brokers of ours; `orders` with three partitions, the last one on 3 and 1, and `staying`."""
    cluster.ours = {1, 2, 3, 4}
    cluster.start_brokers(1, 2, 3, 4)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2], [2, 3], [3, 1])
    cluster.create_topic("staying", [1, 2])
    await cluster.settle()
    assert cluster.leadership(LAST) == (3, [3, 1])
    return cluster


def reasons(cluster: Cluster) -> list[str]:
    """Return the logged reasons why partitions were not removed."""
    return [entry["reason"] for entry in cluster.logs if entry["event"] == "partitions are not removed"]


def assert_removed(cluster: Cluster, *numbers: int) -> None:
    for number in numbers:
        partition = tp("orders", number)
        assert number not in cluster.topic("orders").partitions
        assert not cluster.exists(paths.partition(partition))
        for broker in (cluster.brokers[live] for live in cluster.live):
            for known in (broker.replicas, broker.logs, broker.metadata.partitions):
                assert partition not in known, broker.id
    assert not cluster.zk.tree.children(REMOVE)
    assert not cluster.active.term.state.removals
    assert_no_log_is_nobodys(cluster)
    assert_sound(cluster)


async def test_the_last_partition_is_removed_everywhere(ours: Cluster) -> None:
    before, topic = ours.state(tp("orders", 1)), ours.topic("orders")
    ours.request_of_partition(REMOVE, LAST)
    await ours.settle()
    assert_removed(ours, 2)
    assert ours.state(tp("orders", 1)) == before
    assert ours.topic("orders").topic_id == topic.topic_id
    assert ours.broker(2).metadata.topic_ids[LAST.topic] == topic.topic_id
    assert reasons(ours) == []
    stops = [request for request in ours.broker(3).requests if isinstance(request, StopReplicaRequest)]
    (state,) = stops[-1].topic_states[0].partition_states
    assert (state.partition_index, state.delete_partition, state.leader_epoch) == (2, True, EPOCH_DURING_DELETE)


async def test_very_many_are_removed_together(ours: Cluster) -> None:
    ours.create_topic("large", *([1, 2] for _ in range(700)))
    for number in range(300):
        ours.create_topic(f"topic-{number}", [1], [2])
    await ours.settle()
    for number in range(100, 700):
        ours.request_of_partition(REMOVE, tp("large", number))
    for number in range(300):
        ours.request_of_partition(REMOVE, tp(f"topic-{number}", 1))
    await ours.settle()
    assert list(ours.topic("large").partitions) == list(range(100))
    assert {tuple(ours.topic(f"topic-{number}").partitions) for number in range(300)} == {(0,)}
    assert ours.zk.tree.children(REMOVE) == ()
    assert_no_log_is_nobodys(ours)
    assert_sound(ours)


async def test_a_stock_broker_that_is_a_member_prevents_it(ours: Cluster) -> None:
    ours.start_broker(5)
    await ours.settle()
    ours.request_of_partition(REMOVE, LAST)
    await ours.settle()
    assert reasons(ours) == ["stock brokers cannot remove a single partition, and 5 are stock brokers: stop them first"]
    assert ours.zk.tree.children(REMOVE) == ()
    assert ours.leadership(LAST) == (3, [3, 1])
    assert_sound(ours)
    ours.kill_broker(5)
    await ours.settle()
    ours.request_of_partition(REMOVE, LAST)
    await ours.settle()
    assert_removed(ours, 2)


@pytest.mark.parametrize(
    ("partition", "reason"),
    [
        (
            tp("orders", 1),
            "it would leave a gap, and clients expect contiguous partition numbers: partition 2",
        ),
        (tp("orders", 3), "there is no such partition"),
        (tp("unknown", 0), "there is no such partition"),
        (tp("staying", 0), "a topic has at least one partition: delete the topic"),
    ],
)
async def test_what_cannot_be_removed_is_refused_in_words(
    ours: Cluster, partition: tuple[str, int], reason: str
) -> None:
    ours.create_topic("beside", [1], [2])
    await ours.settle()
    ours.request_of_partition(REMOVE, tp(*partition))
    ours.request_of_partition(REMOVE, tp("beside", 1))
    await ours.settle()
    (found,) = reasons(ours)
    assert found.startswith(reason)
    assert ours.zk.tree.children(REMOVE) == ()
    assert list(ours.topic("beside").partitions) == [0]
    assert list(ours.topic("orders").partitions) == [0, 1, 2]
    assert_sound(ours)


async def test_topics_that_may_not_be_deleted_keep_their_partitions(cluster: Cluster) -> None:
    cluster.ours = {1}
    cluster.start_brokers(1)
    cluster.settings = ProcessSettings(delete_topic_enable=False)
    await cluster.serve()
    cluster.create_topic("orders", [1], [1])
    await cluster.settle()
    cluster.request_of_partition(REMOVE, tp("orders", 1))
    await cluster.settle()
    assert reasons(cluster) == ["delete.topic.enable is false"]
    assert_sound(cluster)


async def test_a_partition_that_moves_is_not_removed_before_it_has_moved(ours: Cluster) -> None:
    ours.request_reassignment({LAST: [2, 4]})
    await ours.settle()
    ours.request_of_partition(REMOVE, LAST)
    await ours.settle()
    assert reasons(ours) == ["it is being reassigned: wait until that has ended, or cancel it"]
    await ours.replicate()
    assert ours.list_replicas(LAST) == [2, 4]
    ours.request_of_partition(REMOVE, LAST)
    await ours.settle()
    assert_removed(ours, 2)


async def test_a_replica_on_a_dead_broker_is_deleted_when_the_broker_is_back(ours: Cluster) -> None:
    ours.kill_broker(1)
    await ours.settle()
    ours.request_of_partition(REMOVE, LAST)
    await ours.settle()
    assert LAST not in ours.broker(3).logs
    assert 2 in ours.topic("orders").partitions, "a partition of this number must not meet the log on 1"
    assert LAST not in ours.broker(2).metadata.partitions
    assert ours.active.metric("kontroller_partitions_to_remove") == 1
    ours.start_broker(1)
    await ours.settle()
    assert_removed(ours, 2)
    assert ours.active.metric("kontroller_partitions_to_remove") == 0


@pytest.mark.parametrize("is_hot", [False, True])
async def test_a_removal_that_waits_goes_on_though_stock_brokers_join_and_controllers_change(
    ours: Cluster, is_hot: bool
) -> None:
    if is_hot:
        ours.start_controller(1001)
    ours.kill_broker(1)
    await ours.settle()
    ours.request_of_partition(REMOVE, LAST)
    await ours.settle()
    ours.start_broker(5)
    await ours.settle()
    await ours.active.kill()
    if not is_hot:
        ours.start_controller()
    await ours.settle(20_000)
    assert LAST not in ours.broker(5).metadata.partitions
    assert LAST not in ours.broker(3).logs
    assert_sound(ours)
    ours.start_broker(1)
    await ours.settle()
    assert_removed(ours, 2)
    assert reasons(ours) == []


async def test_the_upper_one_that_waits_holds_up_the_lower_ones(ours: Cluster) -> None:
    ours.kill_broker(1)
    await ours.settle()
    for number in (1, 2):
        ours.request_of_partition(REMOVE, tp("orders", number))
    await ours.settle()
    assert list(ours.topic("orders").partitions) == [0, 1, 2]
    assert tp("orders", 1) not in ours.broker(2).logs
    ours.start_broker(1)
    await ours.settle()
    assert_removed(ours, 1, 2)
    assert list(ours.topic("orders").partitions) == [0]


async def test_a_replica_that_could_not_be_deleted_is_tried_again_when_its_broker_restarts(ours: Cluster) -> None:
    ours.broker(3).offline.add(LAST)
    ours.request_of_partition(REMOVE, LAST)
    await ours.settle()
    assert 2 in ours.topic("orders").partitions
    ours.broker(3).offline.clear()
    ours.bounce_broker(3)
    await ours.settle()
    assert_removed(ours, 2)


async def test_a_broker_that_refuses_the_request_is_asked_again_when_it_restarts(ours: Cluster) -> None:
    ours.broker(3).refuse_from_now_on(ErrorCode.unknown_server_error, StopReplicaRequest)
    ours.request_of_partition(REMOVE, LAST)
    await ours.settle()
    assert 2 in ours.topic("orders").partitions
    ours.broker(3).obey()
    ours.bounce_broker(3)
    await ours.settle()
    assert_removed(ours, 2)


async def test_a_broker_that_hangs_past_its_session_forgets_the_partition_when_it_is_back(ours: Cluster) -> None:
    ours.broker(2).hang()
    ours.expire_broker(2)
    await ours.settle()
    ours.request_of_partition(REMOVE, LAST)
    await ours.settle()
    ours.broker(2).resume()
    ours.register_again(2)
    await ours.settle()
    assert_removed(ours, 2)


async def test_a_former_replica_whose_log_is_still_there_is_waited_for(ours: Cluster) -> None:
    ours.kill_broker(1)
    ours.request_reassignment({LAST: [3, 4]})
    await ours.replicate()
    assert ours.list_replicas(LAST) == [3, 4]
    ours.request_of_partition(REMOVE, LAST)
    await ours.settle()
    assert 2 in ours.topic("orders").partitions, "a partition of this number must not meet the log on 1"
    ours.start_broker(1)
    await ours.settle()
    assert_removed(ours, 2)


async def test_a_partition_may_be_added_again_afterwards(ours: Cluster) -> None:
    ours.request_of_partition(REMOVE, LAST)
    await ours.settle()
    ours.request_of_partition(paths.PARTITIONS_ADD, LAST, [2, 4])
    await ours.settle()
    assert ours.leadership(LAST) == (2, [2, 4])
    assert_no_log_is_nobodys(ours)
    assert_sound(ours)


async def test_nothing_is_added_to_a_topic_while_its_last_partition_goes(ours: Cluster) -> None:
    ours.kill_broker(1)
    await ours.settle()
    ours.request_of_partition(REMOVE, LAST)
    await ours.settle()
    ours.add_partitions("orders", [2, 3])
    ours.request_of_partition(paths.PARTITIONS_ADD, tp("orders", 3), [2])
    await ours.settle()
    assert list(ours.topic("orders").partitions) == [0, 1, 2], "what was added is taken back"
    ours.start_broker(1)
    await ours.settle()
    assert_removed(ours, 2, 3)


async def test_a_reassignment_of_it_is_taken_out_when_it_is_gone(ours: Cluster) -> None:
    ours.kill_broker(1)
    await ours.settle()
    ours.request_of_partition(REMOVE, LAST)
    await ours.settle()
    ours.request_reassignment({LAST: [2, 4]})
    await ours.settle()
    ours.start_broker(1)
    await ours.settle()
    assert_removed(ours, 2)
    assert not ours.exists(paths.REASSIGN_PARTITIONS)


async def test_a_topic_that_is_deleted_meanwhile_goes_after_it(ours: Cluster) -> None:
    ours.kill_broker(1)
    await ours.settle()
    ours.request_of_partition(REMOVE, LAST)
    await ours.settle()
    ours.request_deletion("orders")
    await ours.settle()
    ours.start_broker(1)
    await ours.settle()
    assert not ours.exists(paths.topic(LAST.topic))
    assert ours.zk.tree.children(REMOVE) == ()
    assert_no_log_is_nobodys(ours)
    assert_sound(ours)


async def test_a_partition_of_a_topic_that_is_being_deleted_goes_with_its_topic(ours: Cluster) -> None:
    ours.kill_broker(1)
    await ours.settle()
    ours.request_deletion("orders")
    await ours.settle()
    ours.request_of_partition(REMOVE, LAST)
    await ours.settle()
    assert reasons(ours) == ["its topic is being deleted"]


async def test_the_next_topic_of_the_name_keeps_its_partitions(ours: Cluster) -> None:
    ours.kill_broker(1)
    await ours.settle()
    ours.request_of_partition(REMOVE, LAST)
    await ours.settle()
    await ours.active.kill()
    ours.remove_topic("orders")
    ours.create_topic("orders", [4], [4], [4])
    await ours.serve()
    await ours.settle()
    assert ours.leadership(LAST) == (4, [4])
    assert ours.broker(4).leads(LAST)
    assert ours.zk.tree.children(REMOVE) == ()


async def test_a_topic_that_vanishes_meanwhile_takes_the_requests_with_it(ours: Cluster) -> None:
    ours.kill_broker(1)
    await ours.settle()
    ours.request_of_partition(REMOVE, LAST)
    await ours.settle()
    ours.remove_topic("orders")
    await ours.settle()
    assert ours.zk.tree.children(REMOVE) == ()
    assert not ours.active.term.state.removals
    assert_sound(ours)


async def test_a_request_that_is_withdrawn_after_the_begin_withdraws_nothing(ours: Cluster) -> None:
    ours.kill_broker(1)
    await ours.settle()
    ours.request_of_partition(REMOVE, LAST)
    await ours.settle()
    ours.remove(f"{REMOVE}/orders")
    await ours.settle()
    ours.start_broker(1)
    await ours.settle()
    assert_removed(ours, 2)


async def test_whatever_is_below_the_partition_goes_with_it(ours: Cluster) -> None:
    ours.write(Create(path=f"{paths.partition(LAST)}/left"), Create(path=f"{paths.partition_state(LAST)}/below"))
    ours.request_of_partition(REMOVE, LAST)
    await ours.settle()
    assert_removed(ours, 2)


async def test_a_partition_that_never_had_a_leader_is_removed(ours: Cluster) -> None:
    ours.create_topic("stuck", [1], [8])
    await ours.settle()
    ours.request_of_partition(REMOVE, tp("stuck", 1))
    await ours.settle()
    ours.ours.add(8)
    ours.start_broker(8)
    await ours.settle()
    assert list(ours.topic("stuck").partitions) == [0]
    assert_sound(ours)


async def test_no_broker_that_has_it_is_asked_twice(ours: Cluster) -> None:
    ours.kill_broker(1)
    await ours.settle()
    ours.request_of_partition(REMOVE, LAST)
    await ours.settle()
    ours.bounce_broker(2)
    await ours.settle()
    stops = [request for request in ours.broker(3).requests if isinstance(request, StopReplicaRequest)]
    assert len(stops) == 1


@pytest.mark.parametrize(
    "data", [b"", b"anything", b"[]", b'{"begun_for_topic_id":7}', b'{"begun_for_topic_id":"no id"}']
)
def test_a_request_may_have_any_content(data: bytes) -> None:
    assert codecs.decode_partition_removal(REMOVE, data) is None


def test_the_mark_of_a_begun_removal_names_the_topic(ours: Cluster) -> None:
    topic_id = ours.topic("orders").topic_id
    assert codecs.decode_partition_removal(REMOVE, codecs.encode_partition_removal(topic_id)) == topic_id
    assert TopicName("orders") in ours.active.term.state.topics

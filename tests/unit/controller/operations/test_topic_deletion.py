"""Topics are deleted: every replica by its broker, then the znodes."""

from collections.abc import Callable, Sequence

import pytest

from controller_core.controller.loop.events import BrokerAnswered
from controller_core.controller.loop.faults import RETRY_MS
from controller_core.model.ids import TopicName
from controller_core.model.throttles import Move
from controller_core.wire.messages import ErrorCode, StopReplicaPartitionError, StopReplicaRequest, StopReplicaResponse
from controller_core.zk import codecs, paths
from controller_core.zk.session import Delete, WriteOp
from controller_core.zk.throttle_writes import Throttles
from simulation.checks import assert_sound
from simulation.cluster import Cluster, alter_reassignments, ids, tp
from simulation.process import ProcessSettings

ORDERS = tp("orders")


@pytest.fixture
async def served(cluster: Cluster) -> Cluster:
    """Four brokers; `orders` with two partitions, and `staying`."""
    cluster.start_brokers(1, 2, 3, 4)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2], [2, 3], config={"retention.ms": "1000"})
    cluster.create_topic("staying", [1, 2])
    await cluster.settle()
    return cluster


def assert_deleted(cluster: Cluster, name: str = "orders") -> None:
    topic = TopicName(name)
    for path in (paths.topic(topic), paths.topic_config(topic), paths.delete_topic(topic)):
        assert not cluster.exists(path), path
    for broker in cluster.brokers.values():
        for known in (broker.replicas, broker.logs, broker.metadata.partitions):
            assert all(partition.topic != topic for partition in known), broker.id
        assert topic not in broker.metadata.topic_ids
    assert topic not in cluster.active.term.state.topics
    assert_sound(cluster)


async def test_a_topic_is_deleted_everywhere(served: Cluster) -> None:
    served.request_deletion("orders")
    await served.settle()
    assert_deleted(served)
    assert served.leadership(tp("staying")) == (1, [1, 2])


async def test_a_topic_created_again_is_another_topic(served: Cluster) -> None:
    served.request_deletion("orders")
    await served.settle()
    topic_id = served.create_topic("orders", [3, 4])
    await served.replicate()
    assert served.leadership(ORDERS) == (3, [3, 4])
    assert served.broker(3).logs[ORDERS] == topic_id
    assert_sound(served)


async def test_many_topics_are_deleted_together(served: Cluster) -> None:
    for number in range(20):
        served.create_topic(f"topic-{number}", *([1, 2, 3] for _ in range(10)))
    await served.settle()
    for number in range(20):
        served.request_deletion(f"topic-{number}")
    await served.settle()
    for number in range(20):
        assert_deleted(served, f"topic-{number}")


async def test_a_replica_on_a_dead_broker_is_deleted_when_the_broker_is_back(served: Cluster) -> None:
    served.kill_broker(3)
    await served.settle()
    served.request_deletion("orders")
    await served.settle()
    assert served.exists(paths.topic(ORDERS.topic)), "a topic of this name must not meet the log on 3"
    assert ORDERS not in served.broker(1).logs
    assert tp("orders", 1) in served.broker(3).logs
    served.start_broker(3)
    await served.settle()
    assert_deleted(served)


async def test_a_broker_that_dies_while_it_deletes_is_sent_the_request_again(served: Cluster) -> None:
    served.broker(3).hang()
    served.request_deletion("orders")
    await served.settle()
    served.kill_broker(3)
    await served.settle()
    assert served.exists(paths.delete_topic(ORDERS.topic))
    served.start_broker(3)
    await served.settle()
    assert_deleted(served)


async def test_a_broker_that_bounces_while_it_deletes_is_sent_the_request_again(served: Cluster) -> None:
    served.broker(3).hang()
    served.request_deletion("orders")
    await served.settle()
    served.bounce_broker(3)
    await served.settle()
    assert_deleted(served)


@pytest.mark.parametrize("error", [ErrorCode.kafka_storage_error, ErrorCode.unknown_server_error])
async def test_a_replica_that_could_not_be_deleted_is_tried_again_when_its_broker_restarts(
    served: Cluster, error: ErrorCode
) -> None:
    if error is ErrorCode.kafka_storage_error:
        served.broker(3).offline.add(tp("orders", 1))
    else:
        served.broker(3).refuse_from_now_on(error, StopReplicaRequest)
    served.request_deletion("orders")
    await served.settle()
    assert served.exists(paths.delete_topic(ORDERS.topic))
    served.broker(3).offline.clear()
    served.broker(3).obey()
    served.bounce_broker(3)
    await served.settle()
    assert_deleted(served)


async def test_a_deletion_goes_on_under_the_next_controller(served: Cluster) -> None:
    served.kill_broker(3)
    await served.settle()
    served.request_deletion("orders")
    await served.settle()
    await served.active.kill()
    await served.serve()
    assert served.exists(paths.delete_topic(ORDERS.topic))
    served.start_broker(3)
    await served.settle()
    assert_deleted(served)


async def test_a_topic_that_never_had_a_leader_is_deleted(served: Cluster) -> None:
    served.create_topic("stuck", [8, 9])
    await served.settle()
    served.request_deletion("stuck")
    await served.settle()
    served.start_brokers(8, 9)
    await served.settle()
    assert_deleted(served, "stuck")


async def test_a_topic_without_partitions_is_deleted(served: Cluster) -> None:
    served.create_topic("empty")
    await served.settle()
    served.request_deletion("empty")
    await served.settle()
    assert_deleted(served, "empty")


async def test_what_else_lies_below_a_topic_is_deleted_with_it(served: Cluster) -> None:
    for path in ("/partitions/17", "/partitions/17/state", "/partitions/0/left-over"):
        served.put(paths.topic(ORDERS.topic) + path, b"{}")
    served.request_deletion("orders")
    await served.settle()
    assert_deleted(served)


@pytest.mark.parametrize(
    "above", [paths.topic, paths.topic_config, paths.delete_topic], ids=lambda above: above.__name__
)
async def test_a_child_that_a_stranger_created_does_not_hold_up_the_deletion(
    served: Cluster, above: Callable[[TopicName], str]
) -> None:
    served.zk.interventions.append(create_before_deletion(served, f"{above(ORDERS.topic)}/foo/bar"))
    served.request_deletion("orders")
    await served.settle()
    assert_deleted(served)
    assert served.active.terms == 1


async def test_a_deletion_waits_while_a_stranger_keeps_creating_children_and_holds_up_nobody(served: Cluster) -> None:
    interventions = served.zk.interventions
    interventions.append(create_before_deletion(served, paths.topic(ORDERS.topic) + "/foo", is_repeated=True))
    served.request_deletion("orders")
    served.request_deletion("staying")
    await served.settle(passing_ms=10 * RETRY_MS)
    assert not served.exists(paths.topic(TopicName("staying")))
    assert served.exists(paths.delete_topic(ORDERS.topic))
    process = served.active
    assert process.terms == 1
    assert (process.metric("kontroller_unusable_znodes", kind="delete_topic"), len(list_refused_deletions(served))) == (
        1,
        1,
    )
    handled = process.metric("kontroller_event_time_seconds_count", event="TopicDeletionsRequested")
    assert handled is not None
    assert handled < 20, "one retry a minute"
    interventions.clear()
    await served.settle(passing_ms=RETRY_MS)
    assert_deleted(served)
    assert process.metric("kontroller_unusable_znodes", kind="delete_topic") in (None, 0)


def list_refused_deletions(cluster: Cluster) -> list[str]:
    said = "znodes of a deleted topic cannot be removed, tried again later"
    return [line["path"] for line in cluster.logs if line["event"] == said]


def create_before_deletion(
    cluster: Cluster, path: str, *, is_repeated: bool = False
) -> Callable[[Sequence[WriteOp]], None]:
    """Return an intervention that creates a znode just before the deletion of the one above it."""
    above = path.removesuffix("/bar").rpartition("/")[0]
    created: list[str] = []

    def intervene(ops: Sequence[WriteOp]) -> None:
        if any(op == Delete(path=above) for op in ops) and (is_repeated or not created) and not cluster.exists(path):
            created.append(path)
            for each in dict.fromkeys([path.removesuffix("/bar"), path]):
                cluster.put(each, b"")

    return intervene


async def test_a_mark_with_a_child_is_removed_if_there_is_no_such_topic(served: Cluster) -> None:
    served.request_deletion("unknown")
    served.put(paths.delete_topic(TopicName("unknown")) + "/foo", b"")
    await served.settle()
    assert not served.exists(paths.delete_topic(TopicName("unknown")))


async def test_the_mark_of_a_topic_that_is_not_there_is_removed(served: Cluster) -> None:
    served.request_deletion("unknown")
    await served.settle()
    assert not served.exists(paths.delete_topic(TopicName("unknown")))


async def test_a_topic_that_is_created_and_marked_before_anyone_had_a_look_is_deleted(served: Cluster) -> None:
    served.request_deletion("unknown")
    served.create_topic("brief", [1, 2])
    served.request_deletion("brief")
    await served.settle()
    assert_deleted(served, "brief")


async def test_a_mark_does_not_outlive_a_topic_that_vanished_meanwhile(served: Cluster) -> None:
    """Otherwise the next controller would delete a topic of the same name."""
    served.kill_broker(3)
    await served.settle()
    served.request_deletion("orders")
    await served.settle()
    served.remove_topic("orders")
    await served.settle()
    assert not served.exists(paths.delete_topic(ORDERS.topic))


async def test_a_deletion_ends_a_reassignment_whose_replicas_never_catch_up(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [3, 4]})
    await served.settle()
    assert ORDERS in served.broker(4).logs
    served.request_deletion("orders")
    await served.settle()
    assert_deleted(served)
    assert not served.exists(paths.REASSIGN_PARTITIONS)
    assert not served.active.term.state.reassignments


async def test_a_deletion_leaves_the_reassignments_of_other_topics_alone(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [3, 4], tp("staying"): [2, 3]})
    await served.settle()
    served.request_deletion("orders")
    await served.settle()
    assert_deleted(served)
    assert codecs.decode_reassignment(served.data(paths.REASSIGN_PARTITIONS) or b"").partitions == {
        tp("staying"): (2, 3)
    }
    await served.replicate()
    assert served.leadership(tp("staying"))[1] == [2, 3]
    assert not served.exists(paths.REASSIGN_PARTITIONS)


async def test_a_deletion_waits_for_no_broker_that_a_reassignment_waits_for_but_to_delete_its_replica(
    served: Cluster,
) -> None:
    served.request_reassignment({ORDERS: [3, 4]})
    await served.settle()
    served.kill_broker(4)
    await served.settle()
    served.request_deletion("orders")
    await served.settle()
    for number in (1, 2, 3):
        assert ORDERS not in served.broker(number).logs
    assert served.exists(paths.topic(ORDERS.topic)), "a topic of this name must not meet the log on 4"
    assert not served.assignment(ORDERS).is_being_reassigned, "a Kafka controller would begin it anew"
    assert set(served.list_replicas(ORDERS)) == {1, 2, 3, 4}
    served.start_broker(4)
    await served.settle()
    assert_deleted(served)


@pytest.mark.parametrize("answers", [True, False], ids=["deleted already", "asked and not answered"])
async def test_a_deletion_ends_a_reassignment_in_its_last_steps(served: Cluster, answers: bool) -> None:
    """The old replicas have been sent StopReplica: those that answered and those that did not are both sent it again."""
    served.request_reassignment({ORDERS: [3, 4]})
    await served.settle()
    served.broker(2).hang()
    if not answers:
        served.broker(1).hang()
    await served.replicate()
    served.request_deletion("orders")
    await served.settle()
    served.broker(1).resume()
    served.broker(2).resume()
    await served.settle()
    assert_deleted(served)
    assert not served.exists(paths.REASSIGN_PARTITIONS)


@pytest.mark.parametrize("replaced", [True, False], ids=["replaced", "cancelled"])
async def test_a_reassignment_that_a_deletion_ended_cannot_be_altered(served: Cluster, replaced: bool) -> None:
    """As with Kafka, where cancelling is a request for the original replicas: the partition does not exist."""
    served.request_reassignment({ORDERS: [3, 4]})
    await served.settle()
    served.kill_broker(4)
    await served.settle()
    served.request_deletion("orders")
    await served.settle()
    answer = await served.request(alter_reassignments({ORDERS: [1, 3] if replaced else None}))
    assert answer.responses[0].partitions[0].error_code is ErrorCode.unknown_topic_or_partition


async def test_where_nothing_was_reassigned_a_deletion_leaves_nothing_to_cancel(served: Cluster) -> None:
    served.kill_broker(2)
    await served.settle()
    served.request_deletion("orders")
    await served.settle()
    answer = await served.request(alter_reassignments({ORDERS: None}))
    assert answer.responses[0].partitions[0].error_code is ErrorCode.no_reassignment_in_progress


@pytest.mark.parametrize("number", [1, 2, 3, 4])
async def test_a_topic_whose_reassignment_and_deletion_meet_a_dead_broker_is_deleted(
    served: Cluster, number: int
) -> None:
    served.request_reassignment({ORDERS: [3, 4]})
    await served.settle()
    served.kill_broker(number)
    await served.settle()
    served.request_deletion("orders")
    await served.settle()
    served.start_broker(number)
    await served.settle()
    assert_deleted(served)


async def test_a_throttle_ends_with_the_reassignment_that_a_deletion_ends(served: Cluster) -> None:
    await Throttles(served.zk.session()).set("somebody", {ORDERS: Move(origin=ids([1, 2]), target=ids([3, 4]))}, 1000)
    served.request_reassignment({ORDERS: [3, 4]})
    await served.settle()
    assert served.zk.tree.children(paths.THROTTLES)
    served.request_deletion("orders")
    await served.settle()
    assert_deleted(served)
    assert not served.zk.tree.children(paths.THROTTLES)


async def test_the_next_controller_ends_the_reassignment_of_a_topic_that_is_marked(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [3, 4]})
    await served.settle()
    await served.active.kill()
    served.kill_broker(1)
    served.request_deletion("orders")
    await served.serve()
    assert ORDERS not in served.broker(4).logs
    assert not served.exists(paths.REASSIGN_PARTITIONS)
    served.start_broker(1)
    await served.settle()
    assert_deleted(served)


async def test_a_topic_that_is_being_deleted_is_not_reassigned(served: Cluster) -> None:
    served.kill_broker(3)
    await served.settle()
    served.request_deletion("orders")
    await served.settle()
    served.request_reassignment({ORDERS: [4]})
    await served.settle()
    assert not served.exists(paths.REASSIGN_PARTITIONS)
    served.start_broker(3)
    await served.settle()
    assert_deleted(served)


async def test_partitions_added_to_a_topic_on_its_way_out_are_removed(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2)
    await cluster.serve()
    topic_id = cluster.create_topic("doomed", [1, 2])
    await cluster.settle()
    cluster.kill_broker(2)
    await cluster.settle()
    cluster.request_deletion("doomed")
    await cluster.settle()
    cluster.add_partitions("doomed", [1], [1])
    await cluster.settle()
    assert list(cluster.topic("doomed").partitions) == [0]
    assert cluster.topic("doomed").topic_id == topic_id
    cluster.start_broker(2)
    await cluster.settle()
    assert not cluster.exists(paths.topic(TopicName("doomed")))


async def test_where_deletion_is_off_marks_are_removed_and_topics_stay(cluster: Cluster) -> None:
    cluster.settings = ProcessSettings(delete_topic_enable=False)
    cluster.start_brokers(1, 2)
    await cluster.serve()
    cluster.create_topic("kept", [1, 2])
    await cluster.settle()
    cluster.request_deletion("kept")
    await cluster.settle()
    assert not cluster.exists(paths.delete_topic(TopicName("kept")))
    assert cluster.leadership(tp("kept")) == (1, [1, 2])
    assert_sound(cluster)


async def test_a_replica_that_cannot_be_deleted_is_tried_again_when_its_broker_starts(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2)
    await cluster.serve()
    cluster.create_topic("doomed", [1, 2])
    await cluster.settle()
    cluster.broker(2).offline.add(tp("doomed"))
    cluster.request_deletion("doomed")
    await cluster.settle()
    assert cluster.exists(paths.topic(TopicName("doomed")))
    cluster.broker(2).offline.clear()
    cluster.bounce_broker(2)
    await cluster.settle()
    assert not cluster.exists(paths.topic(TopicName("doomed")))
    assert tp("doomed") not in cluster.broker(2).logs


async def test_a_broker_that_dies_before_it_answers_is_asked_again(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2)
    await cluster.serve()
    cluster.create_topic("doomed", [1, 2])
    await cluster.settle()
    cluster.broker(2).hang()
    cluster.request_deletion("doomed")
    await cluster.settle()
    cluster.kill_broker(2)
    await cluster.settle()
    assert cluster.exists(paths.topic(TopicName("doomed")))
    cluster.start_broker(2)
    await cluster.settle()
    assert not cluster.exists(paths.topic(TopicName("doomed")))
    assert tp("doomed") not in cluster.broker(2).logs


async def test_what_a_broker_answered_in_its_former_life_does_not_count_for_the_next(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2)
    await cluster.serve()
    cluster.create_topic("doomed", [1, 2])
    await cluster.settle()
    broker, former = cluster.broker(2), cluster.broker(2).epoch
    broker.hang()
    cluster.request_deletion("doomed")
    await cluster.settle()
    cluster.bounce_broker(2)
    broker.hang()
    await cluster.settle()
    request = cluster.broker(1).requests_of(StopReplicaRequest)[-1]
    deleted = StopReplicaPartitionError(
        topic_name=TopicName("doomed"), partition_index=tp("doomed").partition, error_code=ErrorCode.none
    )
    answer = StopReplicaResponse(error_code=ErrorCode.none, partition_errors=(deleted,))
    cluster.active.term.enqueue(BrokerAnswered(broker.id, former, request, answer))
    await cluster.settle()
    assert cluster.exists(paths.topic(TopicName("doomed")))
    broker.resume()
    await cluster.settle()
    assert not cluster.exists(paths.topic(TopicName("doomed")))
    assert tp("doomed") not in broker.logs


# Deletion without absent brokers


@pytest.fixture
async def hasty(cluster: Cluster) -> Cluster:
    """A controller that does not wait for absent brokers; `orders` on brokers 1, 2 and 3."""
    cluster.settings = ProcessSettings(topic_deletion_waits_for_absent_brokers=False)
    cluster.start_brokers(1, 2, 3, 4)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2], [2, 3], config={"retention.ms": "1000"})
    await cluster.settle()
    return cluster


def removals(cluster: Cluster) -> list[str]:
    return sorted(cluster.zk.tree.children(paths.REMOVED_REPLICAS) or ())


async def test_a_topic_goes_at_once_and_an_absent_broker_deletes_its_replica_when_it_returns(hasty: Cluster) -> None:
    hasty.kill_broker(3)
    await hasty.settle()
    hasty.request_deletion("orders")
    await hasty.settle()
    assert not hasty.exists(paths.topic(TopicName("orders")))
    assert not hasty.exists(paths.delete_topic(TopicName("orders")))
    assert removals(hasty) == ["3,orders,1"]
    hasty.start_broker(3)
    await hasty.settle()
    assert_deleted(hasty)
    assert removals(hasty) == []


async def test_a_broker_that_dies_in_the_middle_of_a_deletion_does_not_hold_it_up(hasty: Cluster) -> None:
    hasty.broker(3).hang()
    hasty.request_deletion("orders")
    await hasty.settle()
    assert hasty.exists(paths.topic(TopicName("orders"))), "a live broker is waited for"
    hasty.kill_broker(3)
    await hasty.settle()
    assert not hasty.exists(paths.topic(TopicName("orders")))
    hasty.start_broker(3)
    await hasty.settle()
    assert_deleted(hasty)


async def test_the_next_topic_of_the_name_does_not_meet_the_log_of_the_last_one(hasty: Cluster) -> None:
    hasty.kill_broker(3)
    await hasty.settle()
    hasty.request_deletion("orders")
    await hasty.settle()
    topic_id = hasty.create_topic("orders", [4, 3], [3, 4])
    await hasty.settle()
    hasty.start_broker(3)
    await hasty.settle()
    await hasty.replicate()
    assert {hasty.broker(3).logs[tp("orders", number)] for number in (0, 1)} == {topic_id}
    assert removals(hasty) == []
    assert_sound(hasty)


async def test_the_next_controller_knows_what_an_absent_broker_has_to_delete(hasty: Cluster) -> None:
    hasty.kill_broker(3)
    await hasty.settle()
    hasty.request_deletion("orders")
    await hasty.settle()
    hasty.settings = ProcessSettings()
    await hasty.active.kill()
    await hasty.settle(passing_ms=20_000)
    await hasty.serve()
    hasty.start_broker(3)
    await hasty.settle()
    assert_deleted(hasty)
    assert removals(hasty) == []

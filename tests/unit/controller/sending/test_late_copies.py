"""A copy of a request from a dead connection that is handled too late changes nothing."""

from collections.abc import Sequence

import pytest

from controller_core.model.ids import BrokerId, ControllerEpoch, TopicName
from controller_core.wire.messages import ControlRequest, LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest
from controller_core.zk import codecs, paths
from controller_core.zk.session import Delete, SetData, WriteOp
from simulation.checks import assert_no_log_is_nobodys, assert_sound
from simulation.cluster import Cluster, tp
from tests.unit.journal.memory import MemoryJournal, assert_journal_folds_to

ORDERS = tp("orders")


@pytest.fixture
async def served(cluster: Cluster) -> Cluster:
    """Three brokers; `orders` on 1 and 2."""
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2])
    await cluster.settle()
    return cluster


def epoch_in_zookeeper(cluster: Cluster) -> int:
    return codecs.decode_controller_epoch(cluster.data(paths.CONTROLLER_EPOCH) or b"")


async def read_late(cluster: Cluster, *numbers: int) -> None:
    for number in numbers:
        cluster.broker(number).read_delayed()
    await cluster.settle()


async def delete(cluster: Cluster) -> None:
    cluster.request_deletion("orders")
    await cluster.settle()
    assert not cluster.exists(paths.topic(ORDERS.topic))


async def test_a_late_deletion_of_a_topic_spares_the_next_topic_of_its_name(served: Cluster) -> None:
    served.broker(1).delay_next(StopReplicaRequest)
    await delete(served)
    topic_id = served.create_topic("orders", [1, 2])
    await served.settle()
    await read_late(served, 1)
    assert served.broker(1).logs[ORDERS] == topic_id
    assert served.broker(1).leads(ORDERS)
    assert served.active.terms == 1
    assert_sound(served)


async def test_a_late_deletion_in_a_reassignment_spares_the_next_topic_of_its_name(served: Cluster) -> None:
    """It has a leader epoch; those of the next topic begin at 0."""
    served.broker(1).delay_next(StopReplicaRequest)
    served.request_reassignment({ORDERS: [2, 3]})
    await served.replicate()
    assert ORDERS not in served.broker(1).logs
    await delete(served)
    topic_id = served.create_topic("orders", [1, 2])
    await served.settle()
    await read_late(served, 1)
    assert served.broker(1).logs[ORDERS] == topic_id
    assert_sound(served)


async def test_a_late_deletion_of_a_former_topics_log_spares_the_present_one(served: Cluster) -> None:
    """The replica is removed while its broker is down, and the topic there is another one when it is back."""
    served.kill_broker(1)
    served.request_reassignment({ORDERS: [2, 3]})
    await served.replicate()
    await delete(served)
    topic_id = served.create_topic("orders", [1, 3])
    await served.settle()
    served.broker(1).delay_next(StopReplicaRequest)
    served.start_broker(1)
    await served.settle()
    await read_late(served, 1)
    assert served.broker(1).logs[ORDERS] == topic_id
    assert_sound(served)


async def test_a_late_announcement_of_a_replica_does_not_bring_back_a_deleted_log(served: Cluster) -> None:
    served.broker(2).delay_next(LeaderAndIsrRequest)
    served.bounce_broker(1)
    await served.settle()
    await delete(served)
    await read_late(served, 2)
    assert not served.broker(2).logs
    assert_no_log_is_nobodys(served)


async def test_the_epoch_rises_once_for_a_lost_answer_and_everybody_takes_it(served: Cluster) -> None:
    before = epoch_in_zookeeper(served)
    served.broker(1).delay_next(StopReplicaRequest)
    await delete(served)
    assert epoch_in_zookeeper(served) == before, "it may be that nothing follows"
    for name in ("orders", "more", "others"):
        served.create_topic(name, [1, 2])
        await served.settle()
    assert epoch_in_zookeeper(served) == before + 1 == served.active.term.identity.epoch
    assert served.active.metric("kontroller_controller_epoch") == before + 1
    await read_late(served, 1)
    assert not [line for line in served.logs if line["log_level"] == "error"]
    assert_sound(served)


async def test_what_was_sent_before_the_epoch_rose_is_of_the_same_term_and_no_former_one(served: Cluster) -> None:
    before = served.active.term.identity.epoch
    served.broker(1).delay_next(StopReplicaRequest)
    await delete(served)
    served.create_topic("orders", [1, 2])
    await served.settle()
    identity = served.active.term.identity
    has_had = [identity.has_had(ControllerEpoch(before + change)) for change in (-1, 0, 1, 2)]
    assert has_had == [False, True, True, False]


async def test_what_is_on_its_way_to_other_brokers_while_the_epoch_rises_is_answered_and_counts(
    served: Cluster,
) -> None:
    served.create_topic("doomed", [3])
    await served.settle()
    served.broker(1).delay_next(StopReplicaRequest)
    await delete(served)
    served.broker(3).hang()
    served.request_deletion("doomed")
    await served.settle()
    served.create_topic("orders", [1, 2])
    await served.settle()
    served.broker(3).resume()
    await served.settle()
    assert not served.exists(paths.topic(TopicName("doomed")))
    assert_sound(served)


async def test_nothing_is_raised_where_no_copy_can_come_late(served: Cluster) -> None:
    """Nothing was sent, or the broker has restarted, or the lost request deletes nothing."""
    before = epoch_in_zookeeper(served)
    served.request_deletion("orders")
    served.kill_broker(2)
    await served.settle()
    served.start_broker(2)
    served.broker(3).delay_next(UpdateMetadataRequest)
    await served.settle()
    served.create_topic("orders", [2, 3])
    await served.settle()
    assert epoch_in_zookeeper(served) == before
    assert_sound(served)


async def test_a_copy_that_went_to_a_former_address_is_remembered(served: Cluster) -> None:
    served.broker(1).delay_next(StopReplicaRequest)
    await delete(served)
    served.move_broker(1, 9999)
    await served.settle()
    topic_id = served.create_topic("orders", [1, 2])
    await served.settle()
    await read_late(served, 1)
    assert served.broker(1).logs[ORDERS] == topic_id
    assert_sound(served)


@pytest.mark.parametrize("is_applied", [True, False], ids=["answer lost", "write lost"])
async def test_a_raise_of_unknown_outcome_ends_the_term_and_the_next_one_is_as_good(
    served: Cluster, is_applied: bool
) -> None:
    served.broker(1).delay_next(StopReplicaRequest)
    await delete(served)
    before = epoch_in_zookeeper(served)
    topic_id = served.create_topic("orders", [1, 2])

    def lose(ops: Sequence[WriteOp]) -> None:
        if ops[0].path == paths.CONTROLLER_EPOCH and isinstance(ops[0], SetData):
            served.zk.interventions.clear()
            fail = served.zk.lose_next_response if is_applied else served.zk.fail_before_apply
            fail(served.active.session, after_writes=0)

    served.zk.interventions.append(lose)
    await served.settle()
    assert epoch_in_zookeeper(served) > before
    await read_late(served, 1)
    assert served.broker(1).logs[ORDERS] == topic_id
    assert_sound(served)


async def test_who_was_deposed_and_does_not_know_yet_raises_nothing(served: Cluster) -> None:
    """The term ends, and the role is taken from the Kafka controller as it always is."""
    served.broker(1).delay_next(StopReplicaRequest)
    await delete(served)
    before = epoch_in_zookeeper(served)

    def depose(ops: Sequence[WriteOp]) -> None:
        if ops[0].path == paths.CONTROLLER_EPOCH and isinstance(ops[0], SetData):
            served.zk.interventions.clear()
            served.write(Delete(path=paths.CONTROLLER))
            served.make_kafka_controller(3)

    served.zk.interventions.append(depose)
    served.create_topic("orders", [1, 2])
    await served.settle()
    assert served.active.terms == 2
    assert epoch_in_zookeeper(served) == before + 2 == served.active.term.identity.epoch
    await read_late(served, 1)
    assert ORDERS in served.broker(1).logs


async def test_a_journal_goes_on_under_the_raised_epoch(cluster: Cluster) -> None:
    cluster.journal = journal = MemoryJournal()
    cluster.start_brokers(1, 2)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2])
    await cluster.settle()
    cluster.broker(1).delay_next(StopReplicaRequest)
    await delete(cluster)
    cluster.create_topic("orders", [2, 1])
    await cluster.settle()
    cluster.bounce_broker(2)
    await cluster.replicate()
    assert_journal_folds_to(cluster.active.term.state, journal)
    assert_sound(cluster)


@pytest.mark.parametrize("kind", [LeaderAndIsrRequest, StopReplicaRequest])
async def test_a_broker_that_hangs_through_several_timeouts_reads_all_its_copies(
    served: Cluster, kind: type[ControlRequest]
) -> None:
    served.broker(1).delay_next(*[kind] * 5)
    if kind is LeaderAndIsrRequest:
        served.bounce_broker(2)
        await served.settle()
    await delete(served)
    topic_id = served.create_topic("orders", [1, 2])
    await served.replicate()
    await read_late(served, 1)
    await served.replicate()
    assert served.broker(1).logs[ORDERS] == topic_id
    assert set(served.leadership(ORDERS)[1]) == {1, 2}
    assert served.brokers[BrokerId(1)].controller_epoch == served.active.term.identity.epoch
    assert_sound(served)

"""Bugs that Kafka's controller and its forks had, each made to happen here as far as no other test does.

`docs/known-bugs.md` lists all of them with the tests that would catch them.
"""

import sys
from collections.abc import Awaitable
from dataclasses import replace
from types import FrameType

import pytest

from controller_core.controller.answers.answered import on_broker_answered
from controller_core.controller.loop.events import BrokerAnswered
from controller_core.model.ids import EPOCH_DURING_DELETE, BrokerId
from controller_core.wire.messages import (
    ErrorCode,
    LeaderAndIsrRequest,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
    UpdateMetadataRequest,
)
from controller_core.zk import codecs, paths
from controller_core.zk.session import SetData
from simulation.checks import assert_no_log_is_nobodys, assert_sound, simulate_cluster
from simulation.cluster import CONTROLLER, Cluster, ids, tp

ORDERS = tp("orders")


@pytest.fixture
async def served(cluster: Cluster) -> Cluster:
    """Four brokers; `orders` on 1, 2 and 3, led by 1."""
    cluster.start_brokers(1, 2, 3, 4)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2, 3])
    await cluster.settle()
    return cluster


# The role


@pytest.mark.parametrize("write", range(3))
@pytest.mark.parametrize("is_applied", [True, False], ids=["answer lost", "request lost"])
async def test_a_controller_that_does_not_know_whether_it_was_elected_acts_if_it_was(
    cluster: Cluster, write: int, is_applied: bool
) -> None:
    """KAFKA-13407: `/controller` names this process because the connection was lost in the election, and no process
    acts."""
    cluster.start_brokers(1, 2)
    cluster.create_topic("orders", [1, 2])
    process = cluster.start_controller()
    lose = cluster.zk.lose_next_response if is_applied else cluster.zk.fail_before_apply
    lose(process.session, after_writes=write)
    await cluster.settle()
    assert process.is_active
    data = cluster.data(paths.CONTROLLER)
    assert data is not None
    assert codecs.decode_controller(data) == CONTROLLER
    assert cluster.leadership(ORDERS) == (1, [1, 2])
    assert_sound(cluster)


# Requests to brokers


async def test_a_stop_carries_the_leader_epoch_that_it_was_decided_under(served: Cluster) -> None:
    """KAFKA-9539: a delayed StopReplica stopped a replica that had been added again since."""
    await served.shut_down(3)
    stops = [request for request in served.broker(3).requests_of(StopReplicaRequest) if request.topic_states]
    (partition,) = stops[-1].topic_states[0].partition_states
    assert (partition.leader_epoch, partition.delete_partition) == (1, False)


async def test_a_stop_for_a_deleted_topic_is_obeyed_whatever_the_leader_epoch(served: Cluster) -> None:
    """KAFKA-9539, its exception: the broker may know a larger epoch than the controller."""
    served.request_deletion("orders")
    await served.settle()
    (partition,) = served.broker(2).requests_of(StopReplicaRequest)[-1].topic_states[0].partition_states
    assert (partition.leader_epoch, partition.delete_partition) == (EPOCH_DURING_DELETE, True)


async def test_the_metadata_has_the_epoch_that_a_reassignment_raised(served: Cluster) -> None:
    """KAFKA-9212: it was raised in ZooKeeper only, and consumers that knew it from the leader were fenced."""
    served.request_reassignment({ORDERS: [2, 3, 4]})
    await served.settle()
    raised = served.state(ORDERS).leader_and_isr.leader_epoch
    assert raised == 1
    for number in (1, 2, 3, 4):
        assert served.broker(number).metadata.partitions[ORDERS].leader_epoch == raised


async def test_only_replicas_that_are_added_are_new(served: Cluster) -> None:
    """KAFKA-10314: an existing replica must not be created again while its directory is offline for a moment."""
    for number in (1, 2, 3, 4):
        served.broker(number).requests.clear()
    served.request_reassignment({ORDERS: [2, 3, 4]})
    await served.settle()
    sent = {
        number: {
            partition.is_new
            for request in served.broker(number).requests_of(LeaderAndIsrRequest)
            for topic in request.topic_states
            for partition in topic.partition_states
        }
        for number in (1, 2, 3, 4)
    }
    assert sent == {1: {False}, 2: {False}, 3: {False}, 4: {True}}


async def test_only_a_new_broker_is_sent_every_partition(served: Cluster) -> None:
    """KAFKA-7537: the whole metadata went to everybody with each change of brokers."""
    for number in (1, 2, 3, 4):
        served.broker(number).requests.clear()
    served.start_broker(5)
    await served.settle()
    partitions = {
        number: sum(
            len(topic.partition_states)
            for request in served.broker(number).requests_of(UpdateMetadataRequest)
            for topic in request.topic_states
        )
        for number in (1, 2, 3, 4, 5)
    }
    assert partitions == {1: 0, 2: 0, 3: 0, 4: 0, 5: 1}
    assert all(served.broker(number).requests_of(UpdateMetadataRequest) for number in (1, 2, 3, 4))


async def test_what_waits_for_a_hanging_broker_is_not_mixed_with_the_next_topic_of_that_name(served: Cluster) -> None:
    """linkedin/kafka 396: states of two topics of one name were merged while they waited to be sent."""
    served.broker(3).hang()
    served.remove_topic("orders")
    await served.settle()
    served.create_topic("orders", [3, 2], [2, 3])
    await served.settle()
    served.remove_topic("orders")
    topic_id = served.create_topic("orders", [2, 3])
    await served.settle()
    served.broker(3).resume()
    await served.settle()
    assert served.broker(3).metadata.topic_ids[ORDERS.topic] == topic_id
    assert tp("orders", 1) not in served.broker(3).metadata.partitions


# States and events


async def test_an_isr_with_a_replica_that_is_not_assigned_is_tolerated(served: Cluster) -> None:
    """KAFKA-9672: between two steps of a reassignment the ISR has more members than the assignment."""
    wider = replace(served.state(ORDERS).leader_and_isr, isr=ids([1, 2, 3, 4]))
    await served.active.kill()
    data = codecs.encode_partition_state(wider, served.make_kafka_controller(4))
    served.write(SetData(path=paths.partition_state(ORDERS), data=data))
    await served.serve()
    served.kill_broker(4)
    await served.settle()
    served.kill_broker(1)
    await served.settle()
    leader, isr = served.leadership(ORDERS)
    assert leader == 2
    assert set(isr) - {4} == {2, 3}


async def test_what_came_and_went_before_anyone_had_a_look_is_nothing(served: Cluster) -> None:
    """KAFKA-5502: the handler believed the list that the event had brought."""
    served.create_topic("brief", [1, 2])
    served.remove_topic("brief")
    served.kill_broker(4)
    served.start_broker(4)
    served.kill_broker(4)
    await served.settle()
    assert "brief" not in served.active.term.state.topics
    assert not served.exists(paths.topic(tp("brief").topic))
    assert set(served.active.term.state.brokers) == {1, 2, 3}
    assert_sound(served)


async def test_handling_events_arms_no_watch_twice(served: Cluster) -> None:
    """KAFKA-9498: the controller's own reads armed further watches, and every change was handled many times."""
    before = served.active.session.armed_watches
    for _ in range(5):
        served.create_topic("passing", [1, 2])
        served.add_partitions("passing", [2, 3])
        await served.settle()
        served.request_deletion("passing")
        await served.settle()
        served.bounce_broker(4)
        await served.settle()
    assert served.active.session.armed_watches <= before + 1, "that of the last `passing`"


async def test_a_stop_without_deletion_ends_no_deletion(served: Cluster) -> None:
    """KAFKA-9946: any answer to a StopReplica was taken for that of a deletion."""
    served.broker(3).hang()
    served.request_deletion("orders")
    await served.settle()
    stop = StopReplicaPartitionState(
        partition_index=ORDERS.partition, leader_epoch=EPOCH_DURING_DELETE, delete_partition=False
    )
    term = served.active.term
    request = StopReplicaRequest(
        controller_id=CONTROLLER,
        controller_epoch=term.identity.epoch,
        broker_epoch=served.broker(3).epoch,
        topic_states=(StopReplicaTopicState(topic_name=ORDERS.topic, partition_states=(stop,)),),
    )
    response = StopReplicaResponse(error_code=ErrorCode.none, partition_errors=())
    answered = BrokerAnswered(BrokerId(3), served.broker(3).epoch, request, response)
    await on_broker_answered(term, answered)
    assert served.exists(paths.topic(ORDERS.topic))
    served.broker(3).resume()
    await served.settle()
    assert not served.exists(paths.topic(ORDERS.topic))
    assert_no_log_is_nobodys(served)


# Work


async def calls_during(act: Awaitable[None]) -> int:
    """Count the calls of Python functions until the work is done. Other processes do not disturb this measure."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        await act
    finally:
        sys.setprofile(None)
    return calls


async def work(topics: int, step: str) -> int:
    async with simulate_cluster() as cluster:
        cluster.start_brokers(1, 2, 3)
        await cluster.serve()
        for number in range(topics):
            cluster.create_topic(f"topic-{number}", [1 + number % 3, 1 + (number + 1) % 3])
        await cluster.settle()
        match step:
            case "a broker dies":
                cluster.kill_broker(1)
            case "a broker starts":
                cluster.start_broker(4)
            case "a takeover":
                await cluster.active.kill()
                cluster.start_controller()
        return await calls_during(cluster.settle())


@pytest.mark.parametrize("step", ["a broker dies", "a broker starts", "a takeover"])
async def test_twice_the_partitions_are_twice_the_work(step: str) -> None:
    """KAFKA-10794, KAFKA-17061: values of all partitions were computed again for each of them."""
    few, many = await work(100, step), await work(200, step)
    assert many < 2.5 * few

"""The controller role: winning it, standing by, losing it, and how other processes see that."""

import asyncio

import pytest
from kio.schema.types import BrokerId as WireBrokerId
from kio.static.primitive import i64
from kio.static.protocol import RequestPayload

from controller_core.controller.controller import ZooKeeperGone
from controller_core.model.ids import BrokerId
from controller_core.wire.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ErrorCode,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import AccessRefused, ZkError
from simulation.checks import assert_sound, simulate_cluster
from simulation.cluster import CONTROLLER, Cluster, alter_partition, alter_reassignments, tp
from simulation.process import ProcessSettings
from simulation.virtual_time import wait_until_quiet

ORDERS = tp("orders")
STANDBY = BrokerId(2000)


def alter_request(cluster: Cluster) -> AlterPartitionRequest:
    """The leader of `orders` takes the last replica out of the ISR."""
    leader, topic_id = cluster.broker(1), cluster.topic("orders").topic_id
    assert topic_id is not None
    view = leader.replicas[ORDERS]
    return alter_partition(leader, topic_id, ORDERS, view, view.isr[:-1])


def epoch(cluster: Cluster) -> int:
    return codecs.decode_controller_epoch(data_of(cluster, paths.CONTROLLER_EPOCH))


def holder(cluster: Cluster) -> int:
    return codecs.decode_controller(data_of(cluster, paths.CONTROLLER))


def data_of(cluster: Cluster, path: str) -> bytes:
    data = cluster.data(path)
    assert data is not None, f"{path} does not exist"
    return data


async def test_the_first_controller_of_a_cluster_has_epoch_1(cluster: Cluster) -> None:
    cluster.start_brokers(1)
    process = await cluster.serve()
    assert (holder(cluster), epoch(cluster), process.term.identity.epoch) == (CONTROLLER, 1, 1)
    assert cluster.broker(1).metadata.controller_id == CONTROLLER
    assert cluster.broker(1).controller_epoch == 1


async def test_the_role_passes_from_a_kafka_broker_without_a_gap(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2)
    assert cluster.make_kafka_controller(1) == 1
    holders: list[int] = []
    cluster.zk.observers.append(lambda: holders.append(holder(cluster)))
    await cluster.serve()
    cluster.zk.observers.clear()
    assert (holder(cluster), epoch(cluster)) == (CONTROLLER, 2)
    changes = [new for new, old in zip(holders, [None, *holders], strict=False) if new != old]
    assert changes == [1, CONTROLLER], "no transaction left the role to nobody"
    assert_sound(cluster)


async def test_a_kafka_broker_that_is_faster_after_our_death_gives_the_role_to_the_next_of_us(served: Cluster) -> None:
    await served.active.kill()
    served.make_kafka_controller(2)
    served.kill_broker(1)
    await served.serve()
    assert served.leadership(ORDERS) == (2, [2, 3])
    assert (served.active.term.identity.epoch, epoch(served)) == (3, 3)
    assert_sound(served)


async def test_a_second_kontroller_stands_by_and_takes_over_when_the_first_is_gone(served: Cluster) -> None:
    first = served.active
    standby = served.start_controller(STANDBY)
    await served.settle()
    assert (first.is_active, standby.is_active) == (True, False)
    await first.kill(session_ends=False)
    served.kill_broker(1)
    await served.settle()
    assert not standby.is_active, "the session of the first may still live"
    await first.end_session()
    await served.settle()
    assert standby.is_active
    assert served.leadership(ORDERS) == (2, [2, 3])
    assert_sound(served)


async def test_whoever_stands_by_is_not_the_controller_to_anyone(served: Cluster) -> None:
    standby = served.start_controller(STANDBY)
    await served.settle()
    broker = served.broker(1)
    requests: list[RequestPayload] = [
        alter_request(served),
        ControlledShutdownRequest(broker_id=broker.id, broker_epoch=broker.epoch),
        AllocateProducerIdsRequest(broker_id=WireBrokerId(broker.id), broker_epoch=i64(broker.epoch)),
        ListPartitionReassignmentsRequest(topics=None),
    ]
    answers = [await standby.answer(request) for request in requests]
    assert [answer.error_code for answer in answers] == [
        ErrorCode.not_controller,
        ErrorCode.stale_controller_epoch,  # Kafka's word for it in this one response
        ErrorCode.not_controller,
        ErrorCode.not_controller,
    ]
    assert [type(answer) for answer in answers] == [
        AlterPartitionResponse,
        ControlledShutdownResponse,
        AllocateProducerIdsResponse,
        ListPartitionReassignmentsResponse,
    ]


async def test_a_process_stops_in_order_and_leaves_the_role_to_the_standby_at_once(served: Cluster) -> None:
    first, standby = served.active, served.start_controller(STANDBY)
    await served.settle()
    first.running.cancel()
    await asyncio.gather(first.running, return_exceptions=True)
    await served.settle()
    assert first.session.is_connected, "nobody had to wait for its session to end"
    assert standby.is_active
    assert_sound(served)


async def test_a_restarted_process_does_not_wait_for_the_session_of_its_predecessor(served: Cluster) -> None:
    first = served.active
    await first.kill(session_ends=False)
    second = await served.serve()
    assert holder(served) == CONTROLLER
    await first.end_session()
    await served.settle()
    assert second.is_active
    assert second.terms == 1
    assert_sound(served)


@pytest.mark.parametrize("kafka_has_it", [False, True])
async def test_of_two_that_start_at_any_distance_one_takes_the_role_once_and_the_other_stands_by(
    kafka_has_it: bool,
) -> None:
    for turns in range(60):
        async with simulate_cluster() as cluster:
            cluster.start_brokers(1)
            if kafka_has_it:
                cluster.make_kafka_controller(1)
            first = cluster.start_controller(CONTROLLER)
            for _ in range(turns):
                await asyncio.sleep(0)
            second = cluster.start_controller(STANDBY)
            await cluster.settle()
            assert first.terms + second.terms == 1, f"the second started {turns} turns after the first"
            assert_sound(cluster)


async def test_an_unreadable_holder_is_replaced(cluster: Cluster) -> None:
    cluster.start_brokers(1)
    cluster.put(paths.CONTROLLER, b"{garbled")
    await cluster.serve()
    assert holder(cluster) == CONTROLLER
    assert_sound(cluster)


async def test_an_unreadable_epoch_ends_the_process_with_its_path(cluster: Cluster) -> None:
    cluster.put(paths.CONTROLLER_EPOCH, b"many")
    process = cluster.start_controller()
    with pytest.raises(MalformedZnode, match="/controller_epoch"):
        await process.running


# Losing the role


async def test_a_write_under_an_old_epoch_ends_the_term_and_the_request_is_not_answered_as_done(
    served: Cluster,
) -> None:
    process, leader = served.active, served.broker(1)
    before = served.state(ORDERS)
    served.put(paths.CONTROLLER_EPOCH, b"41")
    assert await served.alter_isr(ORDERS, [1, 2]) is ErrorCode.not_controller
    assert process.connections_closed == 1
    assert served.state(ORDERS).leader_and_isr.isr == before.leader_and_isr.isr
    await served.settle()
    assert (process.terms, process.term.identity.epoch) == (2, 42), "nobody else has /controller"
    assert leader.controller_epoch == 42
    assert_sound(served)


async def test_a_deposed_controller_sends_the_brokers_nothing_more(served: Cluster) -> None:
    """A Kafka broker took the role, and the deposed controller learns of a dead broker before it learns of that."""
    process = served.active
    served.broker(2).requests.clear()
    served.kill_broker(1)
    served.zk.end(process.session.session_id)
    kafka_epoch = served.make_kafka_controller(3)
    await served.settle()
    assert {request.controller_epoch for request in served.broker(2).requests} == {kafka_epoch + 1}
    assert served.leadership(ORDERS) == (2, [2, 3])


async def test_an_expired_session_ends_the_term_and_another_one_begins(served: Cluster) -> None:
    process = served.active
    served.zk.expire(process.session)
    served.kill_broker(1)
    await served.settle()
    assert (process.terms, epoch(served), process.connections_closed) == (2, 2, 1)
    assert served.leadership(ORDERS) == (2, [2, 3])
    assert_sound(served)


async def test_a_session_that_expires_while_another_takes_the_role(served: Cluster) -> None:
    first, standby = served.active, served.start_controller(STANDBY)
    await served.settle()
    served.zk.disconnect(first.session)
    served.zk.end(first.session.session_id)
    await served.settle()
    assert standby.is_active
    served.zk.reconnect(first.session)
    await served.settle()
    assert not first.is_active
    assert (first.terms, standby.terms) == (1, 1)
    assert_sound(served)


async def test_what_happens_while_the_connection_is_away_is_handled_when_it_returns(served: Cluster) -> None:
    process = served.active
    served.zk.disconnect(process.session)
    served.kill_broker(1)
    served.create_topic("new", [2, 3])
    await served.settle()
    served.zk.reconnect(process.session)
    await served.settle()
    assert process.terms == 1
    assert served.leadership(ORDERS) == (2, [2, 3])
    assert served.leadership(tp("new")) == (2, [2, 3])
    assert_sound(served)


async def test_a_request_waits_for_the_connection(served: Cluster) -> None:
    process = served.active
    served.zk.disconnect(process.session)
    answer = asyncio.create_task(process.answer(alter_request(served)))
    await served.settle()
    assert not answer.done()
    served.zk.reconnect(process.session)
    assert (await answer).error_code is ErrorCode.none
    assert served.leadership(ORDERS) == (1, [1, 2])


async def test_zookeeper_out_of_reach_for_too_long_ends_the_process_and_every_request_is_answered() -> None:
    async with simulate_cluster() as cluster:
        cluster.settings = ProcessSettings(zookeeper_timeout_ms=1)
        cluster.start_brokers(1, 2)
        process = await cluster.serve()
        cluster.create_topic("orders", [1, 2])
        await cluster.settle()
        requests = [alter_request(cluster), alter_request(cluster)]
        answers = [asyncio.create_task(process.answer(request)) for request in requests]
        await asyncio.sleep(0)  # the requests are queued
        cluster.zk.disconnect(process.session)
        with pytest.raises(ZooKeeperGone, match="--zookeeper-timeout-ms"):
            await process.running
        await wait_until_quiet()
        assert [answer.done() and answer.result().error_code for answer in answers] == [ErrorCode.not_controller] * 2


async def test_access_that_is_refused_ends_the_process(served: Cluster) -> None:
    process = served.active
    process.life.errors.append(AccessRefused("somebody changed an ACL"))
    served.kill_broker(1)
    with pytest.raises(AccessRefused, match="ACL"):
        await served.settle()
    assert not process.is_active


async def test_an_error_in_a_request_that_has_changed_nothing_is_that_requests_alone(served: Cluster) -> None:
    process, broker = served.active, served.broker(1)
    request = AllocateProducerIdsRequest(broker_id=WireBrokerId(broker.id), broker_epoch=i64(broker.epoch))
    process.life.errors.append(ValueError("a mistake of ours, in what was read"))
    assert (await served.request(request)).error_code is ErrorCode.unknown_server_error
    assert (await served.request(request)).error_code is ErrorCode.none
    assert (process.is_active, process.terms, process.unexpected_errors) == (True, 1, 1)
    served.surprises_expected = True


class AtRead(list[Exception]):
    """The errors of a process's life: one, that its read of this number meets."""

    def __init__(self, number: int) -> None:
        super().__init__([ValueError("a mistake of ours, in what was read")])
        self._reads_before = number

    def __bool__(self) -> bool:
        self._reads_before -= 1
        return self._reads_before == 0


@pytest.mark.parametrize("read", range(1, 7))
@pytest.mark.parametrize("is_grown", [False, True])
async def test_whatever_a_request_took_in_before_it_met_an_error_is_not_half_served(
    served: Cluster, read: int, is_grown: bool
) -> None:
    """The request names a topic that was created a moment ago, of which the controller does not know yet."""
    served.surprises_expected = True
    served.create_topic("there", [1, 2])
    await served.settle()
    asked = tp("there", 1) if is_grown else tp("new")
    answer = asyncio.create_task(served.active.answer(alter_reassignments({asked: [2, 1]})))
    await asyncio.sleep(0)
    if is_grown:
        served.add_partitions("there", [1, 2])
    else:
        served.create_topic("new", [1, 2])
    served.active.life.errors = AtRead(read)
    await served.settle()
    assert answer.done()
    assert served.broker(1).leads(asked) or served.broker(2).leads(asked)


async def test_an_answer_to_a_former_term_means_nothing_to_the_next(served: Cluster) -> None:
    """It arrives while the queue stands still, and waits there when the next term of the same process begins."""
    process = served.active
    served.broker(1).hang()
    served.broker(1).answer_next_with(ErrorCode.unknown_server_error)
    served.create_topic("told", [1, 2])
    await served.settle()
    served.zk.disconnect(process.session)
    served.kill_broker(3)
    await served.settle()
    served.broker(1).resume()
    await wait_until_quiet()
    served.zk.end(process.session.session_id)
    served.zk.reconnect(process.session)
    await served.settle()
    assert process.terms == 2
    assert [line for line in served.logs if line["event"] == "broker refused a control request"] == []
    assert_sound(served)


async def test_an_error_that_nobody_foresaw_ends_the_term_and_another_begins_after_a_while(served: Cluster) -> None:
    process = served.active
    process.life.errors.append(ZkError("nobody knows this one"))
    served.kill_broker(1)
    await served.settle(passing_ms=0)
    assert not process.is_active
    assert not served.exists(paths.CONTROLLER), "the role is left to others meanwhile"
    await served.settle()
    assert process.is_active
    assert served.leadership(ORDERS) == (2, [2, 3])
    assert_sound(served)
    served.surprises_expected = True

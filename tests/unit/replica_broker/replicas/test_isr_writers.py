"""Both ways to write an ISR: asked of the controller, and written to the state znode by the leader."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

import pytest

from controller_core.model.ids import (
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import LeaderAndIsr, LeaderRecoveryState, PartitionState
from controller_core.wire.messages import AlterPartitionResponse, ErrorCode
from controller_core.wire.messages.alter_partition import AnsweredIsr, AnsweredTopic, AskedTopic
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create, ZkNode
from replica_broker.replicas.leading.alter_partition import AlterPartitionWriter
from replica_broker.replicas.leading.state_znode import StateZnodeWriter
from replica_broker.replicas.seams import IsrRefused, IsrToWrite, IsrWriteUncertain, IsrWritten
from replica_broker.replicas.settings import ReplicaSettings
from simulation.fast_loop import LoopClock, run_fast
from simulation.zookeeper import SimulatedZooKeeper
from simulation.zookeeper_session import SimulatedSession

LEADER, B = BrokerId(1), BrokerId(2)
ORDERS = TopicPartition(TopicName("orders"), PartitionId(0))
PAYMENTS = TopicPartition(TopicName("payments"), PartitionId(3))
ORDERS_ID, PAYMENTS_ID = TopicId(UUID(int=1)), TopicId(UUID(int=2))
SHRINK = IsrToWrite(
    topic_partition=ORDERS,
    topic_id=ORDERS_ID,
    leader=LEADER,
    leader_epoch=LeaderEpoch(4),
    partition_epoch=PartitionEpoch(0),
    isr=(LEADER,),
)
SHRUNK = IsrWritten(leader_epoch=LeaderEpoch(4), partition_epoch=PartitionEpoch(1), isr=(LEADER,))


@dataclass(slots=True)
class Channel:
    """A controller that gives the prepared answers."""

    outcomes: dict[TopicId, ErrorCode | PartitionState] = field(default_factory=dict)
    error: ErrorCode = ErrorCode.none
    is_there: bool = True
    asked: list[Sequence[AskedTopic]] = field(default_factory=list)

    async def alter_partition(self, topics: Sequence[AskedTopic]) -> AlterPartitionResponse:
        self.asked.append(topics)
        await asyncio.sleep(0.01)
        if not self.is_there:
            raise IsrWriteUncertain("no controller")
        answered = [
            AnsweredTopic(
                topic.topic_id,
                [AnsweredIsr(each.partition, self.outcomes[topic.topic_id]) for each in topic.partitions],
            )
            for topic in topics
            if topic.topic_id in self.outcomes
        ]
        return AlterPartitionResponse(error_code=self.error, topics=tuple(answered))


def state(isr: tuple[BrokerId, ...], partition_epoch: int) -> PartitionState:
    return PartitionState(
        leader_and_isr=LeaderAndIsr(leader=LEADER, isr=isr, leader_epoch=LeaderEpoch(4)),
        controller_epoch=ControllerEpoch(7),
        partition_epoch=PartitionEpoch(partition_epoch),
    )


def test_the_controller_s_state_is_what_was_written() -> None:
    channel = Channel({ORDERS_ID: state((LEADER,), 1)})
    assert run_fast(AlterPartitionWriter(channel).write(SHRINK)) == SHRUNK
    ((topic,),) = channel.asked
    (asked,) = topic.partitions
    assert (asked.leader_epoch, asked.partition_epoch, asked.isr, asked.leader_recovery_state) == (4, 0, (LEADER,), 0)


def test_what_comes_while_one_request_is_under_way_shares_the_next_one() -> None:
    channel = Channel({ORDERS_ID: state((LEADER,), 1), PAYMENTS_ID: state((LEADER,), 1)})

    async def scenario() -> None:
        writer = AlterPartitionWriter(channel)
        first = asyncio.create_task(writer.write(SHRINK))
        await asyncio.sleep(0.001)
        payments = replace(SHRINK, topic_partition=PAYMENTS, topic_id=PAYMENTS_ID)
        later = TopicPartition(PAYMENTS.topic, PartitionId(4))
        others = [writer.write(payments), writer.write(replace(payments, topic_partition=later))]
        assert await asyncio.gather(first, *others) == [SHRUNK] * 3
        assert [sum(len(topic.partitions) for topic in topics) for topics in channel.asked] == [1, 2]

    run_fast(scenario())


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.fenced_leader_epoch,
        ErrorCode.invalid_update_version,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.ineligible_replica,
    ],
)
def test_what_the_controller_refuses_for_good_is_refused(error: ErrorCode) -> None:
    outcome = run_fast(AlterPartitionWriter(Channel({ORDERS_ID: error})).write(SHRINK))
    assert outcome == IsrRefused(error_code=error)


@pytest.mark.parametrize(
    "channel",
    [
        Channel(is_there=False),
        Channel(error=ErrorCode.not_controller),
        Channel(error=ErrorCode.stale_broker_epoch),
        Channel({ORDERS_ID: ErrorCode.not_controller}),
        Channel({}),
    ],
    ids=["no controller", "not the controller", "another epoch", "not the controller of it", "left out"],
)
def test_what_may_have_been_written_or_may_be_asked_again_is_uncertain(channel: Channel) -> None:
    with pytest.raises(IsrWriteUncertain):
        run_fast(AlterPartitionWriter(channel).write(SHRINK))


def test_a_topic_without_an_id_cannot_be_asked_for() -> None:
    outcome = run_fast(AlterPartitionWriter(Channel()).write(replace(SHRINK, topic_id=None)))
    assert outcome == IsrRefused(error_code=ErrorCode.unknown_topic_id)


class Ensemble:
    """ZooKeeper with the state of one partition."""

    def __init__(self) -> None:
        self.zookeeper = SimulatedZooKeeper()
        self.session: SimulatedSession = self.zookeeper.session()
        self.writer = StateZnodeWriter(self.session, ReplicaSettings(broker_id=LEADER), LoopClock())

    async def create(self, *, leader: BrokerId = LEADER, leader_epoch: int = 4) -> None:
        path = ""
        for name in paths.partition_state(ORDERS).strip("/").split("/")[:-1]:
            path += f"/{name}"
            await self.session.transact([Create(path=path)])
        await self.session.transact([Create(path=paths.ISR_CHANGE_NOTIFICATION)])
        known = LeaderAndIsr(leader=leader, isr=(LEADER, B), leader_epoch=LeaderEpoch(leader_epoch))
        data = codecs.encode_partition_state(known, ControllerEpoch(7))
        await self.session.transact([Create(path=paths.partition_state(ORDERS), data=data)])

    async def state(self) -> PartitionState:
        (node,) = await self.session.read_many([paths.partition_state(ORDERS)])
        assert isinstance(node, ZkNode)
        return codecs.decode_partition_state(ORDERS, node)


def test_the_leader_writes_the_state_on_the_condition_of_its_version_and_tells_the_controller() -> None:
    async def scenario() -> None:
        ensemble = Ensemble()
        await ensemble.create()
        assert await ensemble.writer.write(SHRINK) == SHRUNK
        assert await ensemble.state() == state((LEADER,), 1)
        assert await ensemble.session.children_many([paths.ISR_CHANGE_NOTIFICATION]) == [()]
        await asyncio.sleep(3)
        ((name,),) = await ensemble.session.children_many([paths.ISR_CHANGE_NOTIFICATION])  # type: ignore[misc]
        (node,) = await ensemble.session.read_many([f"{paths.ISR_CHANGE_NOTIFICATION}/{name}"])
        assert node is not None
        assert codecs.decode_isr_change(node.data) == (ORDERS,)

    run_fast(scenario())


def test_a_leader_that_was_replaced_cannot_write() -> None:
    async def scenario() -> None:
        ensemble = Ensemble()
        await ensemble.create(leader=B, leader_epoch=5)
        refused = await ensemble.writer.write(replace(SHRINK, partition_epoch=PartitionEpoch(3)))
        assert refused == IsrRefused(error_code=ErrorCode.invalid_update_version)
        assert (await ensemble.state()).leader_and_isr.isr == (LEADER, B)

    run_fast(scenario())


def test_a_write_whose_answer_was_lost_is_found_to_be_done() -> None:
    async def scenario() -> None:
        ensemble = Ensemble()
        await ensemble.create()
        ensemble.zookeeper.lose_next_response(ensemble.session)
        with pytest.raises(IsrWriteUncertain):
            await ensemble.writer.write(SHRINK)
        assert await ensemble.session.wait_connected(1000)
        assert await ensemble.writer.write(SHRINK) == SHRUNK
        assert (await ensemble.state()).partition_epoch == 1

    run_fast(scenario())


def test_the_state_of_a_deleted_partition_is_not_written() -> None:
    async def scenario() -> None:
        assert await Ensemble().writer.write(SHRINK) == IsrRefused(error_code=ErrorCode.unknown_topic_or_partition)

    run_fast(scenario())


def test_a_recovered_leader_says_so_in_the_state() -> None:
    async def scenario() -> None:
        ensemble = Ensemble()
        await ensemble.create()
        await ensemble.writer.write(replace(SHRINK, recovery_state=LeaderRecoveryState.RECOVERING))
        again = replace(SHRINK, partition_epoch=PartitionEpoch(1))
        assert await ensemble.writer.write(again) == replace(SHRUNK, partition_epoch=PartitionEpoch(2))
        assert (await ensemble.state()).leader_and_isr.leader_recovery_state is LeaderRecoveryState.RECOVERED

    run_fast(scenario())

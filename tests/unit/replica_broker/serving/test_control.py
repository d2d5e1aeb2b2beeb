"""The controllers whose commands are obeyed."""

import asyncio
from collections.abc import Iterable

import pytest

from controller_core.model.ids import BrokerEpoch, BrokerId, ControllerEpoch, TopicName
from controller_core.wire.listener.owned_api import NoAnswerNow
from controller_core.wire.messages import (
    ErrorCode,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
    StopReplicaRequest,
    StopReplicaResponse,
)
from controller_core.zk.session import ConnectionLost, ZkError
from replica_broker.membership.node import Node
from replica_broker.serving.commands.control import Control
from tests.unit.replica_broker.serving.told import EPOCH, OWN, node, update


class Commanded:
    """Replicas that note in which order things happen."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.written: ControllerEpoch | ZkError | None = ControllerEpoch(9)
        self.epoch_reads = 0

    async def on_leader_and_isr_command(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        self.done.append("leader and isr")
        return LeaderAndIsrResponse(error_code=ErrorCode.none, topics=())

    async def on_stop_replica_command(self, request: StopReplicaRequest) -> StopReplicaResponse:
        self.done.append("stop")
        return StopReplicaResponse(error_code=ErrorCode.none, partition_errors=())

    def on_brokers_changed(self) -> None:
        self.done.append("brokers")

    async def load(self, topics: Iterable[TopicName]) -> None:
        self.done.append(f"configs of {', '.join(topics)}")

    async def read_epoch(self) -> ControllerEpoch | None:
        self.epoch_reads += 1
        if isinstance(self.written, ZkError):
            raise self.written
        return self.written


@pytest.fixture
def replicas() -> Commanded:
    return Commanded()


@pytest.fixture
def control(replicas: Commanded) -> Control:
    return Control(node(), replicas, replicas.load, replicas.read_epoch)


def leader_and_isr(*, controller_epoch: int = 5, broker_epoch: int = -1) -> LeaderAndIsrRequest:
    return LeaderAndIsrRequest(
        controller_id=BrokerId(1),
        controller_epoch=ControllerEpoch(controller_epoch),
        broker_epoch=BrokerEpoch(broker_epoch),
        topic_states=(LeaderAndIsrTopicState(topic_name=TopicName("orders"), topic_id=None, partition_states=()),),
        live_leaders=(),
    )


async def test_configurations_are_known_before_replicas_start(control: Control, replicas: Commanded) -> None:
    await control.on_leader_and_isr(leader_and_isr())
    assert replicas.done == ["configs of orders", "leader and isr"]


async def test_an_older_controller_is_not_obeyed(control: Control, replicas: Commanded) -> None:
    await control.on_update_metadata(update(controller_epoch=6))
    answer = await control.on_leader_and_isr(leader_and_isr(controller_epoch=5))
    assert answer.error_code is ErrorCode.stale_controller_epoch
    assert (await control.on_update_metadata(update())).error_code is ErrorCode.stale_controller_epoch
    stop = StopReplicaRequest(controller_id=BrokerId(1), controller_epoch=ControllerEpoch(5), topic_states=())
    assert (await control.on_stop_replica(stop)).error_code is ErrorCode.stale_controller_epoch
    assert replicas.done == ["brokers"]


@pytest.mark.parametrize(
    ("broker_epoch", "error_code"),
    [
        (EPOCH - 1, ErrorCode.stale_broker_epoch),
        (EPOCH, ErrorCode.none),
        (EPOCH + 1, ErrorCode.none),
        (-1, ErrorCode.none),
    ],
)
async def test_what_was_meant_for_this_broker_before_it_bounced_is_refused(
    control: Control, broker_epoch: int, error_code: ErrorCode
) -> None:
    assert (await control.on_leader_and_isr(leader_and_isr(broker_epoch=broker_epoch))).error_code is error_code
    assert (await control.on_update_metadata(update(broker_epoch=broker_epoch))).error_code is error_code


async def test_a_refused_command_does_not_make_its_controller_known(control: Control) -> None:
    await control.on_update_metadata(update(controller_epoch=9, broker_epoch=EPOCH - 1))
    assert (await control.on_update_metadata(update(controller_epoch=5))).error_code is ErrorCode.none


async def test_what_comes_before_the_registration_waits_for_it(replicas: Commanded) -> None:
    told = Node(id=OWN, cluster_id="c")
    control = Control(told, replicas, replicas.load, replicas.read_epoch)
    answering = asyncio.create_task(control.on_leader_and_isr(leader_and_isr(broker_epoch=EPOCH - 1)))
    await asyncio.sleep(0.01)
    assert not answering.done()
    told.has_registered(EPOCH)
    assert (await answering).error_code is ErrorCode.stale_broker_epoch


async def test_without_zookeeper_a_command_is_not_answered_and_so_comes_again(replicas: Commanded) -> None:
    async def lose_connection(topics: Iterable[TopicName]) -> None:
        raise ConnectionLost

    with pytest.raises(NoAnswerNow):
        await Control(node(), replicas, lose_connection, replicas.read_epoch).on_leader_and_isr(leader_and_isr())
    assert replicas.done == []


async def test_an_invented_controller_epoch_is_not_believed(control: Control, replicas: Commanded) -> None:
    stop = StopReplicaRequest(controller_id=BrokerId(1), controller_epoch=ControllerEpoch(1 << 30), topic_states=())
    with pytest.raises(NoAnswerNow, match="controller epoch 1073741824 is not that of a controller in ZooKeeper"):
        await control.on_stop_replica(stop)
    assert replicas.done == []
    assert (await control.on_update_metadata(update(controller_epoch=9))).error_code is ErrorCode.none


@pytest.mark.parametrize("written", [None, ConnectionLost()])
async def test_without_a_written_epoch_no_command_is_answered(
    control: Control, replicas: Commanded, written: ZkError | None
) -> None:
    replicas.written = written
    with pytest.raises(NoAnswerNow):
        await control.on_update_metadata(update())


async def test_an_epoch_is_looked_up_once(control: Control, replicas: Commanded) -> None:
    for _ in range(3):
        await control.on_update_metadata(update())
    assert replicas.epoch_reads == 1

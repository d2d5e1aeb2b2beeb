"""The requests of a broker to the controller, and its reactions if the controller is gone or has lost the role."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from kio.schema.allocate_producer_ids.v0 import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from kio.schema.types import ProducerId
from kio.static.primitive import i32

from controller_core.model.ids import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicName,
)
from controller_core.model.metadata import LeaderAndIsr, PartitionState
from controller_core.wire.codecs import older_isr_changes
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.listener.listener import Acceptor, Listener, OwnedApi
from controller_core.wire.messages import (
    NO_THROTTLE,
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ErrorCode,
    RemainingPartition,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataRequest,
)
from controller_core.wire.messages.alter_partition import AnsweredIsr, AnsweredTopic, AskedIsr, AskedTopic
from replica_broker.membership.controlled_shutdown import leave_in_order
from replica_broker.membership.controller_channel import ControllerChannel, NoController
from replica_broker.membership.node import Node
from replica_broker.replicas.seams import IsrWriteUncertain

TOPIC_ID = TopicId(UUID(int=5))
ISR = (BrokerId(3), BrokerId(1))
ASKED = [AskedTopic(TOPIC_ID, [AskedIsr(PartitionId(0), LeaderEpoch(2), ISR, 0, PartitionEpoch(7))])]
WRITTEN = PartitionState(
    leader_and_isr=LeaderAndIsr(leader=BrokerId(3), isr=ISR, leader_epoch=LeaderEpoch(2)),
    controller_epoch=ControllerEpoch(-1),
    partition_epoch=PartitionEpoch(8),
)
NOTHING_LEFT = ControlledShutdownResponse(error_code=ErrorCode.none, remaining_partitions=())
ONE_LEFT = ControlledShutdownResponse(
    error_code=ErrorCode.none,
    remaining_partitions=(RemainingPartition(topic_name=TopicName("orders"), partition_index=PartitionId(0)),),
)
NOT_CONTROLLER = ControlledShutdownResponse(error_code=ErrorCode.not_controller, remaining_partitions=())


@dataclass(slots=True)
class Controller:
    """Answers in turn as a test says, and notes its requests."""

    answers: list[Any] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)
    most_at_once: int = 0
    _now: int = 0

    async def answer(self, request: Any) -> Any:
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        await asyncio.sleep(0.01)
        self._now -= 1
        self.asked.append(request)
        return self.answers.pop(0)


@pytest.fixture
def node() -> Node:
    return Node(id=BrokerId(3), cluster_id="c", epoch=BrokerEpoch(50))


@pytest.fixture
async def controller(node: Node) -> AsyncIterator[Controller]:
    """Return the controller that UpdateMetadata named to the broker, with id 9."""
    found = Controller()
    versions: Sequence[Versions[Any]] = (
        older_isr_changes.VERSIONS,
        Versions(AllocateProducerIdsRequest),
        Versions(ControlledShutdownRequest),
    )
    answer: Callable[[Any], Awaitable[Any]] = found.answer
    apis = [OwnedApi(each, answer) for each in versions]
    listener = Listener([Acceptor(host="127.0.0.1", port=0, apis=apis, relay_targets=None)])
    await listener.start()
    tell(node, listener.port)
    yield found
    await listener.close()


def tell(node: Node, port: int, security_protocol: int = 0) -> None:
    endpoint = UpdateMetadataEndpoint(
        port=port, host="127.0.0.1", listener="PLAINTEXT", security_protocol=security_protocol
    )
    node.metadata.update(
        UpdateMetadataRequest(
            controller_id=BrokerId(9),
            controller_epoch=ControllerEpoch(1),
            topic_states=(),
            live_brokers=(UpdateMetadataBroker(id=BrokerId(9), endpoints=(endpoint,)),),
        )
    )


async def test_an_isr_is_asked_for_under_the_present_epoch(node: Node, controller: Controller) -> None:
    answered = AnsweredTopic(TOPIC_ID, [AnsweredIsr(PartitionId(0), WRITTEN)])
    controller.answers = [AlterPartitionResponse(error_code=ErrorCode.none, topics=(answered,))]
    response = await ControllerChannel(node).alter_partition(ASKED)
    assert response.topics == (answered,)
    (asked,) = controller.asked
    assert asked == AlterPartitionRequest(
        broker_id=BrokerId(3), broker_epoch=BrokerEpoch(50), topics=(AskedTopic(TOPIC_ID, ASKED[0].partitions),)
    )


async def test_a_controller_that_wants_a_login_is_not_asked_without_one(node: Node) -> None:
    tell(node, 9, security_protocol=2)
    with pytest.raises(
        NoController, match="the listener PLAINTEXT uses SASL_PLAINTEXT: give its settings by --properties"
    ):
        await ControllerChannel(node).request_controlled_shutdown()


async def test_one_alteration_is_in_flight_at_a_time(node: Node, controller: Controller) -> None:
    controller.answers = [AlterPartitionResponse(error_code=ErrorCode.none)] * 3
    channel = ControllerChannel(node)
    await asyncio.gather(*(channel.alter_partition(ASKED) for _ in range(3)))
    assert controller.most_at_once == 1


@pytest.mark.parametrize("error_code", [ErrorCode.not_controller, ErrorCode.stale_broker_epoch])
async def test_a_refusal_as_a_whole_leaves_it_open_and_can_be_asked_again(
    node: Node, controller: Controller, error_code: ErrorCode
) -> None:
    controller.answers = [AlterPartitionResponse(error_code=error_code)]
    with pytest.raises(IsrWriteUncertain):
        await ControllerChannel(node).alter_partition(ASKED)


async def test_what_a_partition_is_refused_with_is_told(node: Node, controller: Controller) -> None:
    refused = AnsweredTopic(TOPIC_ID, [AnsweredIsr(PartitionId(0), ErrorCode.fenced_leader_epoch)])
    controller.answers = [AlterPartitionResponse(error_code=ErrorCode.none, topics=(refused,))]
    assert (await ControllerChannel(node).alter_partition(ASKED)).topics == (refused,)


async def test_nobody_can_be_asked_while_no_controller_is_known_or_it_is_gone(node: Node) -> None:
    channel = ControllerChannel(node)
    with pytest.raises(NoController, match="no controller is known"):
        await channel.request_controlled_shutdown()
    tell(node, 1)
    with pytest.raises(NoController):
        await channel.request_controlled_shutdown()
    with pytest.raises(IsrWriteUncertain):
        await channel.alter_partition(ASKED)


async def test_producer_ids_are_asked_for_until_they_are_there(node: Node, controller: Controller) -> None:
    def block(error_code: ErrorCode) -> AllocateProducerIdsResponse:
        return AllocateProducerIdsResponse(
            throttle_time=NO_THROTTLE,
            error_code=error_code,
            producer_id_start=ProducerId(1000),
            producer_id_len=i32(500),
        )

    controller.answers = [block(ErrorCode.not_controller), block(ErrorCode.unknown_server_error), block(ErrorCode.none)]
    assert await ControllerChannel(node).allocate_producer_ids() == (1000, 500)


@pytest.mark.parametrize(
    ("answers", "is_in_order", "times"),
    [
        ([NOTHING_LEFT], True, 1),
        ([ONE_LEFT, NOT_CONTROLLER, NOTHING_LEFT], True, 3),
        ([ONE_LEFT, ONE_LEFT, ONE_LEFT, NOTHING_LEFT], False, 3),
    ],
)
async def test_a_broker_asks_three_times_at_most_before_it_stops(
    node: Node, controller: Controller, answers: list[Any], is_in_order: bool, times: int
) -> None:
    controller.answers = answers
    assert await leave_in_order(ControllerChannel(node), pause_s=0) is is_in_order
    assert len(controller.asked) == times
    assert controller.asked[0].broker_epoch == 50

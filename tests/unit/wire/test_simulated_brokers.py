"""The faults of a simulated broker. Its judgement of requests is tested in tests/contract."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from controller_core.model.ids import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import Broker
from controller_core.wire.link import BrokerLink, BrokerUnreachable
from controller_core.wire.messages import (
    ErrorCode,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
    UpdateMetadataRequest,
)
from simulation.brokers import SimulatedBroker, make_simulated_link_factory

ID = BrokerId(1)
PARTITION = TopicPartition(TopicName("topic"), PartitionId(0))


def leadership(leader_epoch: int = 0, leader: BrokerId = ID) -> LeaderAndIsrRequest:
    state = LeaderAndIsrPartitionState(
        partition_index=PARTITION.partition,
        controller_epoch=ControllerEpoch(3),
        leader=leader,
        leader_epoch=LeaderEpoch(leader_epoch),
        isr=(ID,),
        partition_epoch=PartitionEpoch(0),
        replicas=(ID, BrokerId(2)),
    )
    topic = LeaderAndIsrTopicState(topic_name=PARTITION.topic, topic_id=None, partition_states=(state,))
    return LeaderAndIsrRequest(
        controller_id=BrokerId(9), controller_epoch=ControllerEpoch(3), topic_states=(topic,), live_leaders=()
    )


@pytest.fixture
def broker() -> SimulatedBroker:
    return SimulatedBroker(ID, BrokerEpoch(5))


@pytest.fixture
async def link(broker: SimulatedBroker) -> AsyncIterator[BrokerLink]:
    link = make_simulated_link_factory({ID: broker})(Broker(id=ID, epoch=broker.epoch, endpoints=()))
    yield link
    await link.close()


async def test_its_state_says_what_it_leads_and_follows(broker: SimulatedBroker, link: BrokerLink) -> None:
    await link.send(leadership(0))
    assert (broker.leads(PARTITION), broker.follows(PARTITION)) == (True, False)
    await link.send(leadership(1, leader=BrokerId(2)))
    assert (broker.leads(PARTITION), broker.follows(PARTITION)) == (False, True)
    await link.send(leadership(2, leader=BrokerId(-1)))
    assert (broker.leads(PARTITION), broker.follows(PARTITION)) == (False, False)
    assert [
        request.topic_states[0].partition_states[0].leader for request in broker.requests_of(LeaderAndIsrRequest)
    ] == [
        1,
        2,
        -1,
    ]
    assert broker.requests_of(UpdateMetadataRequest) == []


async def test_an_error_is_answered_once_and_nothing_applied(broker: SimulatedBroker, link: BrokerLink) -> None:
    broker.answer_next_with(ErrorCode.unknown_server_error)
    assert (await link.send(leadership())).error_code == ErrorCode.unknown_server_error
    assert broker.replicas == {}
    assert (await link.send(leadership())).error_code == ErrorCode.none


async def test_a_lost_answer_leaves_the_request_applied(broker: SimulatedBroker, link: BrokerLink) -> None:
    broker.lose_next_answers()
    with pytest.raises(BrokerUnreachable):
        await link.send(leadership())
    assert broker.leads(PARTITION)
    assert (await link.send(leadership(1))).error_code == ErrorCode.none


async def test_a_hanging_broker_answers_when_it_resumes(broker: SimulatedBroker, link: BrokerLink) -> None:
    broker.hang()
    sent = asyncio.create_task(link.send(leadership()))
    await asyncio.wait({sent}, timeout=0)
    assert not sent.done()
    assert broker.requests == []
    broker.resume()
    assert (await sent).error_code == ErrorCode.none


async def test_closing_the_link_to_a_hanging_broker_fails_the_request(
    broker: SimulatedBroker, link: BrokerLink
) -> None:
    broker.hang()
    sent = asyncio.create_task(link.send(leadership()))
    await asyncio.wait({sent}, timeout=0)
    await link.close()
    with pytest.raises(BrokerUnreachable):
        await sent
    assert broker.requests == []


async def test_a_crashed_broker_comes_back_with_its_logs_only(broker: SimulatedBroker, link: BrokerLink) -> None:
    await link.send(leadership())
    broker.crash()
    with pytest.raises(BrokerUnreachable):
        await link.send(leadership(1))
    broker.bounce(BrokerEpoch(6))
    assert broker.replicas == {}
    assert PARTITION in broker.logs
    assert (await link.send(leadership())).error_code == ErrorCode.none
    assert broker.leads(PARTITION)


async def test_a_partition_on_a_failed_directory_is_answered_with_a_storage_error(
    broker: SimulatedBroker, link: BrokerLink
) -> None:
    broker.offline.add(PARTITION)
    response = await link.send(leadership())
    assert isinstance(response, LeaderAndIsrResponse)
    assert response.error_code == ErrorCode.none
    assert response.topics[0].partition_errors[0].error_code == ErrorCode.kafka_storage_error
    assert not broker.leads(PARTITION)

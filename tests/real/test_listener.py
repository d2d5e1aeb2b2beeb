"""The controller's port as a real broker and real clients use it: the broker finds it through UpdateMetadata alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kio.schema.init_producer_id.v4 import InitProducerIdRequest, InitProducerIdResponse
from kio.schema.types import BrokerId as KioBrokerId
from kio.schema.types import ProducerId
from kio.static.primitive import i32, i32Timedelta, i64

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
from controller_core.wire.codecs.frames import decode_response, encode_request, read_frame
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.listener.listener import Acceptor, Listener, OwnedApi, RelayTarget
from controller_core.wire.listener.relay import Address
from controller_core.wire.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ErrorCode,
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from controller_core.wire.messages.alter_partition import AnsweredIsr, AnsweredTopic
from controller_core.wire.tcp_link import TcpBrokerLink
from devcluster.clusters.kafka import Broker
from devcluster.clusters.zookeeper import ZooKeeper
from tests.real.conftest import StartKafka

CONTROLLER = BrokerId(1000)
BROKER = BrokerId(1)
ABSENT = BrokerId(2)
EPOCH = ControllerEpoch(7)
TOPIC = TopicName("topic")
NO_DELAY = i32Timedelta.parse(timedelta())


class StubController:
    """A controller that accepts everything and keeps the requests."""

    def __init__(self, broker: Broker, broker_epoch: BrokerEpoch) -> None:
        self.broker = broker
        self.broker_epoch = broker_epoch
        self.topic_id = TopicId(uuid4())
        self.asked: asyncio.Queue[Any] = asyncio.Queue()
        acceptor = Acceptor(
            host="127.0.0.1",
            port=0,
            apis=[
                OwnedApi(Versions(ControlledShutdownRequest), self.shut_down),
                OwnedApi(older_isr_changes.VERSIONS, self.alter_partition),
                OwnedApi(Versions(AllocateProducerIdsRequest), self.allocate_producer_ids),
            ],
            relay_targets=lambda: [RelayTarget(address=Address("127.0.0.1", broker.port))],
        )
        self.listener = Listener([acceptor])

    async def shut_down(self, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        self.asked.put_nowait(request)
        return ControlledShutdownResponse(error_code=ErrorCode.none, remaining_partitions=())

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        self.asked.put_nowait(request)
        (topic,) = request.topics
        (state,) = topic.partitions
        holds = PartitionState(
            leader_and_isr=LeaderAndIsr(leader=request.broker_id, isr=state.isr, leader_epoch=state.leader_epoch),
            controller_epoch=EPOCH,
            partition_epoch=PartitionEpoch(state.partition_epoch + 1),
        )
        topics = (AnsweredTopic(topic.topic_id, [AnsweredIsr(state.partition, holds)]),)
        return AlterPartitionResponse(error_code=ErrorCode.none, topics=topics)

    async def allocate_producer_ids(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        self.asked.put_nowait(request)
        return AllocateProducerIdsResponse(
            throttle_time=NO_DELAY,
            error_code=ErrorCode.none,
            producer_id_start=ProducerId(5000),
            producer_id_len=i32(1000),
        )

    async def next_request(self) -> Any:
        async with asyncio.timeout(60):
            return await self.asked.get()

    async def send_to_broker(self, isr: tuple[BrokerId, ...] = (BROKER,)) -> None:
        """Make the broker the leader of the topic's only partition, and tell it the controller's address."""
        link = TcpBrokerLink("127.0.0.1", self.broker.port, client_id=str(CONTROLLER))
        for request in (self._metadata(isr), self._leadership(isr)):
            assert (await link.send(request)).error_code == ErrorCode.none
        await link.close()

    def _metadata(self, isr: tuple[BrokerId, ...]) -> UpdateMetadataRequest:
        state = UpdateMetadataPartitionState(
            partition_index=PartitionId(0),
            controller_epoch=EPOCH,
            leader=BROKER,
            leader_epoch=LeaderEpoch(0),
            isr=isr,
            zk_version=PartitionEpoch(0),
            replicas=isr,
        )
        ports = {BROKER: self.broker.port, CONTROLLER: self.listener.port}
        return UpdateMetadataRequest(
            controller_id=CONTROLLER,
            controller_epoch=EPOCH,
            broker_epoch=self.broker_epoch,
            topic_states=(
                UpdateMetadataTopicState(topic_name=TOPIC, topic_id=self.topic_id, partition_states=(state,)),
            ),
            live_brokers=tuple(_live_broker(broker, port) for broker, port in ports.items()),
        )

    def _leadership(self, isr: tuple[BrokerId, ...]) -> LeaderAndIsrRequest:
        state = LeaderAndIsrPartitionState(
            partition_index=PartitionId(0),
            controller_epoch=EPOCH,
            leader=BROKER,
            leader_epoch=LeaderEpoch(0),
            isr=isr,
            partition_epoch=PartitionEpoch(0),
            replicas=isr,
            is_new=True,
        )
        return LeaderAndIsrRequest(
            controller_id=CONTROLLER,
            controller_epoch=EPOCH,
            broker_epoch=self.broker_epoch,
            topic_states=(LeaderAndIsrTopicState(topic_name=TOPIC, topic_id=self.topic_id, partition_states=(state,)),),
            live_leaders=(LeaderAndIsrLiveLeader(broker_id=BROKER, host_name="127.0.0.1", port=self.broker.port),),
        )


def _live_broker(broker: BrokerId, port: int) -> UpdateMetadataBroker:
    endpoint = UpdateMetadataEndpoint(port=port, host="127.0.0.1", listener="PLAINTEXT", security_protocol=0)
    return UpdateMetadataBroker(id=broker, endpoints=(endpoint,))


@pytest.fixture
async def controller(
    start_kafka: StartKafka, zookeeper: ZooKeeper, zookeeper_chroot: str
) -> AsyncIterator[StubController]:
    """A controller with one broker, which reports to it."""
    with zookeeper.client(zookeeper_chroot) as client:
        client.create("/controller", b'{"version":2,"brokerid":1000,"timestamp":"0"}')
        client.create("/controller_epoch", str(EPOCH).encode())
        cluster = start_kafka(brokers=1, properties={"replica.lag.time.max.ms": 500})
        _, stat = client.get(f"/brokers/ids/{BROKER}")
    controller = StubController(cluster.broker(BROKER), BrokerEpoch(stat.czxid))
    await controller.listener.start()
    yield controller
    await controller.listener.close()


@asynccontextmanager
async def connect(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def test_a_broker_that_stops_asks_for_a_controlled_shutdown(controller: StubController) -> None:
    await controller.send_to_broker()
    await asyncio.to_thread(controller.broker.stop)
    request = await controller.next_request()
    assert request == ControlledShutdownRequest(broker_id=BROKER, broker_epoch=controller.broker_epoch)
    assert controller.asked.empty()
    assert "Controlled shutdown request returned successfully" in controller.broker.process.log_path.read_text()


async def test_a_leader_asks_to_shrink_the_isr_of_a_follower_that_is_away(controller: StubController) -> None:
    await controller.send_to_broker(isr=(BROKER, ABSENT))
    request = await controller.next_request()
    assert isinstance(request, AlterPartitionRequest)
    assert (request.broker_id, request.broker_epoch) == (BROKER, controller.broker_epoch)
    assert request.topics[0].topic_id == controller.topic_id
    (state,) = request.topics[0].partitions
    assert state.isr == (BROKER,)


async def test_a_producer_id_comes_from_the_controller_by_way_of_the_broker_it_relays_to(
    controller: StubController,
) -> None:
    await controller.send_to_broker()
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout=i32Timedelta.parse(timedelta(seconds=9)))
    async with asyncio.timeout(60), connect(controller.listener.port) as (reader, writer):
        error = ErrorCode.coordinator_load_in_progress
        while error == ErrorCode.coordinator_load_in_progress:  # until the broker has its first block
            writer.write(encode_request(request, 1, "producer"))
            content = await read_frame(reader)
            assert content is not None
            response = decode_response(InitProducerIdResponse, content)
            error = response.error_code
    assert (response.error_code, response.producer_id) == (ErrorCode.none, 5000)
    asked = await controller.next_request()
    assert asked == AllocateProducerIdsRequest(broker_id=KioBrokerId(BROKER), broker_epoch=i64(controller.broker_epoch))


async def test_clients_that_know_only_the_controllers_port_are_served(controller: StubController) -> None:
    await controller.send_to_broker()
    assert await asyncio.to_thread(_use_kafka, f"127.0.0.1:{controller.listener.port}") == ({1, 1000}, b"value")


def _use_kafka(bootstrap: str) -> tuple[set[int], bytes | None]:
    """Return the brokers that a client sees, and a record that it wrote and read."""
    metadata = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=30)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    producer.produce(TOPIC, b"value", partition=0)
    assert producer.flush(30) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,  # there is no offsets topic
        }
    )
    try:
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        record = consumer.poll(30)
        assert record is not None
        assert record.error() is None
        return set(metadata.brokers), record.value()
    finally:
        consumer.close()

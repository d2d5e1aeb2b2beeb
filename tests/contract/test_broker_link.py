"""The guarantees of the controller's link to a broker, for simulated brokers and a real one alike."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar
from uuid import uuid4

import pytest
from kio.schema.describe_log_dirs.v2 import DescribeLogDirsRequest, DescribeLogDirsResponse
from kio.schema.describe_log_dirs.v2.request import DescribableLogDirTopic
from kio.schema.metadata.v10.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v10.response import MetadataResponse
from kio.schema.types import TopicName as KioTopicName
from kio.static.primitive import i32
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.model.ids import (
    EPOCH_DURING_DELETE,
    LEADER_DURING_DELETE,
    NO_EPOCH,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import Broker, Endpoint, LogEnd
from controller_core.wire.codecs.frames import decode_response, encode_request, read_frame
from controller_core.wire.link import (
    BrokerLink,
    BrokerLinkFactory,
    BrokerUnreachable,
    NotConnected,
    UnreadableAnswer,
)
from controller_core.wire.messages import (
    ErrorCode,
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)
from controller_core.wire.tcp_link import tcp_link_factory
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.running.ports import release_port, reserve_port
from simulation.brokers import SimulatedBroker, make_simulated_link_factory

Response = TypeVar("Response", bound=ResponsePayload)
ID = BrokerId(1)
OTHER = BrokerId(2)
CONTROLLER = BrokerId(1000)

_controller_epochs = itertools.count(10)
_topics = itertools.count(1)


class Subject(Protocol):
    """A broker, the way to reach it, and its state as seen from outside."""

    broker: Broker
    unreachable: Broker
    connect: BrokerLinkFactory

    def has_log(self, topic_partition: TopicPartition) -> bool: ...

    async def log_dirs(self, topic_partition: TopicPartition) -> DescribeLogDirsResponse:
        """Return the broker's description of its log directories, with this partition's log in them."""
        ...

    async def find_leader(self, topic_partition: TopicPartition) -> int | None:
        """Return the partition's leader in the broker's metadata; None if the broker does not know the partition."""
        ...

    async def find_topic_id(self, name: TopicName) -> TopicId | None:
        """Return the id of a topic in the broker's metadata."""
        ...


class SimulatedSubject:
    def __init__(self) -> None:
        self.broker = Broker(id=ID, epoch=BrokerEpoch(500), endpoints=())
        self.unreachable = Broker(id=OTHER, epoch=BrokerEpoch(501), endpoints=())
        self._simulated = SimulatedBroker(ID, self.broker.epoch)
        self.connect: BrokerLinkFactory = make_simulated_link_factory({ID: self._simulated})

    def has_log(self, topic_partition: TopicPartition) -> bool:
        return topic_partition in self._simulated.logs

    async def log_dirs(self, topic_partition: TopicPartition) -> DescribeLogDirsResponse:
        return await self._simulated.describe_log_dirs(sizes_request(topic_partition))

    async def find_leader(self, topic_partition: TopicPartition) -> int | None:
        state = self._simulated.metadata.partitions.get(topic_partition)
        return None if state is None else state.leader

    async def find_topic_id(self, name: TopicName) -> TopicId | None:
        return self._simulated.metadata.topic_ids.get(name)


@dataclass
class RealSubject:
    broker: Broker
    unreachable: Broker
    connect: BrokerLinkFactory
    log_folder: Path

    def has_log(self, topic_partition: TopicPartition) -> bool:
        return (self.log_folder / str(topic_partition)).exists()

    async def log_dirs(self, topic_partition: TopicPartition) -> DescribeLogDirsResponse:
        return await self._ask(sizes_request(topic_partition), DescribeLogDirsResponse)

    async def find_leader(self, topic_partition: TopicPartition) -> int | None:
        topic = await self._describe_topic(topic_partition.topic)
        leaders: dict[int, int] = {partition.partition_index: partition.leader_id for partition in topic.partitions}
        return leaders.get(topic_partition.partition)

    async def find_topic_id(self, name: TopicName) -> TopicId | None:
        topic_id: TopicId | None = (await self._describe_topic(name)).topic_id
        return topic_id

    async def _describe_topic(self, name: TopicName) -> Any:
        request = MetadataRequest(
            topics=(MetadataRequestTopic(topic_id=None, name=KioTopicName(name)),),
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
        (topic,) = (await self._ask(request, MetadataResponse)).topics
        return topic

    async def _ask(self, request: RequestPayload, response_type: type[Response]) -> Response:
        endpoint = self.broker.endpoints[0]
        reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
        writer.write(encode_request(request, 1, "test"))
        content = await read_frame(reader)
        writer.close()
        assert content is not None
        return decode_response(response_type, content)


def sizes_request(topic_partition: TopicPartition) -> DescribeLogDirsRequest:
    topic = DescribableLogDirTopic(
        topic=KioTopicName(topic_partition.topic), partitions=(i32(topic_partition.partition),)
    )
    return DescribeLogDirsRequest(topics=(topic,))


@pytest.fixture(scope="module")
def real_subject(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[RealSubject]:
    """A broker under a controller that is only a znode: it accepts commands from the sender with the larger epoch."""
    chroot = "/broker-link"
    with zookeeper.client() as client:
        client.create(f"{chroot}/controller", b'{"version":2,"brokerid":1000,"timestamp":"0"}', makepath=True)
        client.create(f"{chroot}/controller_epoch", b"1")
    closed_port = reserve_port()
    with KafkaCluster(servers_folder, zookeeper, brokers=1, chroot=chroot) as cluster:
        with zookeeper.client() as client:
            _, stat = client.get(f"{chroot}/brokers/ids/{ID}")
        started = cluster.broker(ID)

        def broker(broker_id: BrokerId, port: int) -> Broker:
            endpoint = Endpoint(listener="PLAINTEXT", security_protocol="PLAINTEXT", host="127.0.0.1", port=port)
            return Broker(id=broker_id, epoch=BrokerEpoch(stat.czxid), endpoints=(endpoint,))

        yield RealSubject(
            broker=broker(ID, started.port),
            unreachable=broker(OTHER, closed_port),
            connect=tcp_link_factory("PLAINTEXT", str(CONTROLLER)),
            log_folder=started.log_folder,
        )
    release_port(closed_port)


@pytest.fixture(params=["simulated", pytest.param("real", marks=pytest.mark.real)])
def subject(request: pytest.FixtureRequest) -> Subject:
    if request.param == "simulated":
        return SimulatedSubject()
    real: RealSubject = request.getfixturevalue("real_subject")
    return real


@pytest.fixture
async def link(subject: Subject) -> AsyncIterator[BrokerLink]:
    link = subject.connect(subject.broker)
    yield link
    await link.close()


class Controller:
    """Makes one controller's requests about a topic of its own. Each controller has a larger epoch than those before
    it.
    """

    def __init__(self, broker: Broker) -> None:
        self.epoch = ControllerEpoch(next(_controller_epochs))
        self.broker_epoch = broker.epoch
        self.topic = TopicName(f"topic-{next(_topics)}")
        self.topic_id: TopicId | None = TopicId(uuid4())
        self.partition = TopicPartition(self.topic, PartitionId(0))

    def leadership(
        self, leader_epoch: int, *, replicas: tuple[BrokerId, ...] = (ID,), partition_epoch: int | None = None
    ) -> LeaderAndIsrRequest:
        """Return a LeaderAndIsr request. `partition_epoch`: by default the leader epoch."""
        state = LeaderAndIsrPartitionState(
            partition_index=PartitionId(0),
            controller_epoch=self.epoch,
            leader=replicas[0],
            leader_epoch=LeaderEpoch(leader_epoch),
            isr=replicas,
            partition_epoch=PartitionEpoch(leader_epoch if partition_epoch is None else partition_epoch),
            replicas=replicas,
            is_new=True,
        )
        return LeaderAndIsrRequest(
            controller_id=CONTROLLER,
            controller_epoch=self.epoch,
            broker_epoch=self.broker_epoch,
            topic_states=(
                LeaderAndIsrTopicState(topic_name=self.topic, topic_id=self.topic_id, partition_states=(state,)),
            ),
            live_leaders=(LeaderAndIsrLiveLeader(broker_id=replicas[0], host_name="127.0.0.1", port=1),),
        )

    def metadata(self, leader: BrokerId = ID) -> UpdateMetadataRequest:
        return self.metadata_of((0, leader))

    def metadata_of(self, *leaders: tuple[int, BrokerId]) -> UpdateMetadataRequest:
        """Return an UpdateMetadata request for partitions in this order, each with its leader."""
        states = tuple(
            UpdateMetadataPartitionState(
                partition_index=PartitionId(number),
                controller_epoch=self.epoch,
                leader=leader,
                leader_epoch=LeaderEpoch(0),
                isr=(ID,),
                zk_version=PartitionEpoch(0),
                replicas=(ID,),
            )
            for number, leader in leaders
        )
        endpoint = UpdateMetadataEndpoint(port=1, host="127.0.0.1", listener="PLAINTEXT", security_protocol=0)
        return UpdateMetadataRequest(
            controller_id=CONTROLLER,
            controller_epoch=self.epoch,
            broker_epoch=self.broker_epoch,
            topic_states=(
                UpdateMetadataTopicState(topic_name=self.topic, topic_id=self.topic_id, partition_states=states),
            ),
            live_brokers=(UpdateMetadataBroker(id=ID, endpoints=(endpoint,)),),
        )

    def stop(self, leader_epoch: int = EPOCH_DURING_DELETE, *, delete: bool = True) -> StopReplicaRequest:
        state = StopReplicaPartitionState(
            partition_index=PartitionId(0), leader_epoch=LeaderEpoch(leader_epoch), delete_partition=delete
        )
        return StopReplicaRequest(
            controller_id=CONTROLLER,
            controller_epoch=self.epoch,
            broker_epoch=self.broker_epoch,
            topic_states=(StopReplicaTopicState(topic_name=self.topic, partition_states=(state,)),),
        )


@pytest.fixture
def controller(subject: Subject) -> Controller:
    return Controller(subject.broker)


async def lead(link: BrokerLink, request: LeaderAndIsrRequest) -> ErrorCode:
    """Send a request that is accepted as a whole, and return the error code of its only partition."""
    response = await link.send(request)
    assert isinstance(response, LeaderAndIsrResponse)
    assert response.error_code == ErrorCode.none
    ((topic_id, error),) = [(topic.topic_id, error) for topic in response.topics for error in topic.partition_errors]
    assert (topic_id, error.partition_index) == (request.topic_states[0].topic_id, 0)
    return error.error_code


async def stop(link: BrokerLink, request: StopReplicaRequest) -> ErrorCode:
    """Send a request that is accepted as a whole, and return the error code of its only partition."""
    response = await link.send(request)
    assert isinstance(response, StopReplicaResponse)
    assert response.error_code == ErrorCode.none
    (error,) = response.partition_errors
    assert (error.topic_name, error.partition_index) == (request.topic_states[0].topic_name, 0)
    return error.error_code


async def test_a_new_partition_gets_a_log(subject: Subject, link: BrokerLink, controller: Controller) -> None:
    assert await lead(link, controller.leadership(0)) == ErrorCode.none
    assert subject.has_log(controller.partition)


async def test_a_log_is_in_a_directory_with_its_size_from_the_beginning_until_it_is_deleted(
    subject: Subject, link: BrokerLink, controller: Controller
) -> None:
    async def sizes() -> list[tuple[str, int, int, bool]]:
        answer = await subject.log_dirs(controller.partition)
        assert [directory.error_code for directory in answer.results] == [ErrorCode.none]
        return [
            (str(topic.name), each.partition_index, each.partition_size, each.is_future_key)
            for topic in answer.results[0].topics
            for each in topic.partitions
        ]

    assert await sizes() == []
    assert await lead(link, controller.leadership(0)) == ErrorCode.none
    assert await sizes() == [(controller.topic, 0, 0, False)]
    assert await stop(link, controller.stop()) == ErrorCode.none
    assert await sizes() == []


async def test_a_leader_epoch_that_is_not_larger_is_not_applied(link: BrokerLink, controller: Controller) -> None:
    assert await lead(link, controller.leadership(5)) == ErrorCode.none
    assert await lead(link, controller.leadership(5)) == ErrorCode.stale_controller_epoch
    assert await lead(link, controller.leadership(4)) == ErrorCode.stale_controller_epoch
    assert await lead(link, controller.leadership(6)) == ErrorCode.none


async def test_a_larger_leader_epoch_with_a_smaller_partition_epoch_is_passed_over_in_silence(
    link: BrokerLink, controller: Controller
) -> None:
    assert await lead(link, controller.leadership(5, partition_epoch=9)) == ErrorCode.none
    assert await lead(link, controller.leadership(6, partition_epoch=3)) == ErrorCode.none
    assert await lead(link, controller.leadership(6, partition_epoch=9)) == ErrorCode.none, "it did not take 6 before"
    assert await lead(link, controller.leadership(6, partition_epoch=9)) == ErrorCode.stale_controller_epoch


async def test_a_topic_id_is_accepted_later_at_the_same_leader_epoch(link: BrokerLink, controller: Controller) -> None:
    topic_id, controller.topic_id = controller.topic_id, None
    assert await lead(link, controller.leadership(0)) == ErrorCode.none
    controller.topic_id = topic_id
    assert await lead(link, controller.leadership(0)) == ErrorCode.none
    assert await lead(link, controller.leadership(0)) == ErrorCode.stale_controller_epoch


async def test_another_topic_of_the_same_name_is_refused(link: BrokerLink, controller: Controller) -> None:
    assert await lead(link, controller.leadership(0)) == ErrorCode.none
    controller.topic_id = TopicId(uuid4())
    assert await lead(link, controller.leadership(1)) == ErrorCode.inconsistent_topic_id


async def test_a_partition_without_a_replica_on_the_broker_is_refused(
    subject: Subject, link: BrokerLink, controller: Controller
) -> None:
    request = controller.leadership(0, replicas=(OTHER,))
    assert await lead(link, request) == ErrorCode.unknown_topic_or_partition
    assert not subject.has_log(controller.partition)


async def test_metadata_is_known_until_the_partition_is_deleted(
    subject: Subject, link: BrokerLink, controller: Controller
) -> None:
    response = await link.send(controller.metadata())
    assert response == UpdateMetadataResponse(error_code=ErrorCode.none)
    assert await subject.find_leader(controller.partition) == ID
    assert await link.send(controller.metadata(LEADER_DURING_DELETE)) == response
    assert await subject.find_leader(controller.partition) is None


FORGOTTEN: Final = (1, LEADER_DURING_DELETE)
KEPT: Final = (0, ID)


@pytest.mark.parametrize(
    ("known", "told", "has_id"),
    [
        ((), (FORGOTTEN, KEPT), True),
        ((KEPT,), (FORGOTTEN, KEPT), True),
        (((1, ID),), (FORGOTTEN, KEPT), False),
        (((1, ID),), (KEPT, FORGOTTEN), True),
    ],
    ids=["nothing known", "another known", "the last one goes first", "the last one goes last"],
)
async def test_a_topics_id_goes_with_the_last_partition_that_is_known(
    subject: Subject,
    link: BrokerLink,
    controller: Controller,
    known: tuple[tuple[int, BrokerId], ...],
    told: tuple[tuple[int, BrokerId], ...],
    has_id: bool,
) -> None:
    if known:
        await link.send(controller.metadata_of(*known))
    await link.send(controller.metadata_of(*told))
    assert await subject.find_leader(controller.partition) == ID
    assert await subject.find_topic_id(controller.topic) == (controller.topic_id if has_id else None)


async def test_a_deposed_controller_changes_nothing(subject: Subject, link: BrokerLink, controller: Controller) -> None:
    successor = Controller(subject.broker)
    assert (await link.send(successor.metadata())).error_code == ErrorCode.none
    for request in (controller.leadership(0), controller.metadata(), controller.stop()):
        assert (await link.send(request)).error_code == ErrorCode.stale_controller_epoch
    assert not subject.has_log(controller.partition)
    assert await subject.find_leader(controller.partition) is None


async def test_a_request_for_the_broker_before_it_bounced_changes_nothing(
    subject: Subject, link: BrokerLink, controller: Controller
) -> None:
    controller.broker_epoch = BrokerEpoch(subject.broker.epoch - 1)
    for request in (controller.leadership(0), controller.metadata(), controller.stop()):
        assert (await link.send(request)).error_code == ErrorCode.stale_broker_epoch
    assert not subject.has_log(controller.partition)
    assert await subject.find_leader(controller.partition) is None


@pytest.mark.parametrize("newer", [True, False], ids=["larger epoch", "no epoch"])
async def test_a_broker_epoch_that_is_newer_or_absent_is_accepted(
    subject: Subject, link: BrokerLink, controller: Controller, newer: bool
) -> None:
    controller.broker_epoch = BrokerEpoch(subject.broker.epoch + 1 if newer else -1)
    assert await lead(link, controller.leadership(0)) == ErrorCode.none


@pytest.mark.parametrize("leader_epoch", [5, 6, NO_EPOCH, EPOCH_DURING_DELETE])
async def test_a_stopped_replica_is_deleted_where_the_request_says_so(
    subject: Subject, link: BrokerLink, controller: Controller, leader_epoch: int
) -> None:
    assert await lead(link, controller.leadership(5)) == ErrorCode.none
    assert await stop(link, controller.stop(leader_epoch)) == ErrorCode.none
    assert not subject.has_log(controller.partition)


async def test_a_replica_that_is_only_stopped_keeps_its_log(
    subject: Subject, link: BrokerLink, controller: Controller
) -> None:
    assert await lead(link, controller.leadership(5)) == ErrorCode.none
    assert await stop(link, controller.stop(5, delete=False)) == ErrorCode.none
    assert subject.has_log(controller.partition)
    assert await lead(link, controller.leadership(5)) == ErrorCode.stale_controller_epoch
    assert await lead(link, controller.leadership(6)) == ErrorCode.none


@pytest.fixture
async def former(subject: Subject) -> AsyncIterator[BrokerLink]:
    """Another connection, which delivers a request as late as a dead connection might."""
    link = subject.connect(subject.broker)
    yield link
    await link.close()


@pytest.mark.parametrize("is_raised", [True, False], ids=["epoch raised since", "same epoch"])
@pytest.mark.parametrize("leader_epoch", [EPOCH_DURING_DELETE, NO_EPOCH, 5])
async def test_a_late_deletion_deletes_the_replica_of_the_next_topic_unless_the_controller_epoch_rose(
    subject: Subject,
    link: BrokerLink,
    former: BrokerLink,
    controller: Controller,
    leader_epoch: int,
    is_raised: bool,
) -> None:
    assert await lead(link, controller.leadership(5)) == ErrorCode.none
    late = controller.stop(leader_epoch)
    assert await stop(link, late) == ErrorCode.none
    if is_raised:
        controller.epoch = ControllerEpoch(next(_controller_epochs))
    controller.topic_id = TopicId(uuid4())
    assert await lead(link, controller.leadership(0)) == ErrorCode.none
    refused = ErrorCode.stale_controller_epoch if is_raised else ErrorCode.none
    assert (await former.send(late)).error_code == refused
    assert subject.has_log(controller.partition) is is_raised


@pytest.mark.parametrize("is_raised", [True, False], ids=["epoch raised since", "same epoch"])
async def test_a_late_leadership_brings_a_deleted_replica_back_unless_the_controller_epoch_rose(
    subject: Subject, link: BrokerLink, former: BrokerLink, controller: Controller, is_raised: bool
) -> None:
    late = controller.leadership(5)
    assert await lead(link, late) == ErrorCode.none
    if is_raised:
        controller.epoch = ControllerEpoch(next(_controller_epochs))
    assert await stop(link, controller.stop()) == ErrorCode.none
    assert not subject.has_log(controller.partition)
    refused = ErrorCode.stale_controller_epoch if is_raised else ErrorCode.none
    assert (await former.send(late)).error_code == refused
    assert subject.has_log(controller.partition) is not is_raised


async def test_a_late_stop_does_not_touch_a_replica_that_was_added_again(
    subject: Subject, link: BrokerLink, controller: Controller
) -> None:
    assert await lead(link, controller.leadership(5)) == ErrorCode.none
    assert await stop(link, controller.stop(4)) == ErrorCode.fenced_leader_epoch
    assert subject.has_log(controller.partition)


async def test_deleting_what_is_not_there_succeeds(link: BrokerLink, controller: Controller) -> None:
    assert await stop(link, controller.stop()) == ErrorCode.none


async def test_a_deleted_partition_can_come_back_as_another_topic(
    subject: Subject, link: BrokerLink, controller: Controller
) -> None:
    assert await lead(link, controller.leadership(5)) == ErrorCode.none
    assert await stop(link, controller.stop()) == ErrorCode.none
    controller.topic_id = TopicId(uuid4())
    assert await lead(link, controller.leadership(0)) == ErrorCode.none
    assert subject.has_log(controller.partition)


async def test_requests_sent_at_once_are_applied_in_the_order_of_the_calls(
    link: BrokerLink, controller: Controller
) -> None:
    answers = await asyncio.gather(*(lead(link, controller.leadership(epoch)) for epoch in range(20)))
    assert answers == [ErrorCode.none] * 20


async def test_a_broker_that_is_away_is_unreachable_each_time(subject: Subject, controller: Controller) -> None:
    link = subject.connect(subject.unreachable)
    for _ in range(2):
        with pytest.raises(NotConnected):
            await link.send(controller.metadata())
        with pytest.raises(BrokerUnreachable):
            await link.reach()
    await link.close()


async def test_a_broker_that_answers_is_within_reach_before_and_between_requests(
    link: BrokerLink, controller: Controller
) -> None:
    await link.reach()
    assert await lead(link, controller.leadership(0)) == ErrorCode.none
    await link.reach()
    assert await lead(link, controller.leadership(1)) == ErrorCode.none


async def test_a_closed_link_sends_nothing_and_closes_again(
    subject: Subject, link: BrokerLink, controller: Controller
) -> None:
    assert await lead(link, controller.leadership(0)) == ErrorCode.none
    await link.close()
    with pytest.raises(BrokerUnreachable):
        await link.send(controller.stop())
    with pytest.raises(BrokerUnreachable):
        await link.reach()
    await link.close()
    assert subject.has_log(controller.partition)


async def test_a_cancelled_request_does_not_confuse_the_next_ones_answer(
    link: BrokerLink, controller: Controller
) -> None:
    for steps in range(5):
        interrupted = asyncio.create_task(link.send(controller.metadata()))
        for _ in range(steps):
            await asyncio.sleep(0)
        interrupted.cancel()
        await asyncio.wait({interrupted})
        assert interrupted.cancelled() or isinstance(interrupted.result(), UpdateMetadataResponse)
    assert await lead(link, controller.leadership(0)) == ErrorCode.none


async def test_a_broker_says_what_its_own_file_configures(subject: Subject, link: BrokerLink) -> None:
    """The answer lacks ZooKeeper's settings of the broker, and settings that were not requested."""
    assert await link.static_config(ID, {"min.insync.replicas"}) == {"min.insync.replicas": "1"}


async def test_a_broker_does_not_tell_another_ones_configuration(subject: Subject, link: BrokerLink) -> None:
    with pytest.raises(UnreadableAnswer):
        await link.static_config(OTHER, {"min.insync.replicas"})
    assert await link.static_config(ID, {"min.insync.replicas"}) == {"min.insync.replicas": "1"}


async def test_who_cannot_be_reached_says_nothing_of_its_file(subject: Subject) -> None:
    link = subject.connect(subject.unreachable)
    with pytest.raises(NotConnected):
        await link.static_config(OTHER, {"min.insync.replicas"})
    await link.close()


async def test_a_log_says_where_it_ends_under_its_last_epoch_and_nothing_of_a_later_one(
    link: BrokerLink, controller: Controller
) -> None:
    assert await lead(link, controller.leadership(0)) == ErrorCode.none
    assert await lead(link, controller.leadership(3)) == ErrorCode.none
    await link.send(controller.metadata())

    async def end(epoch: int) -> LogEnd | None:
        return (await link.log_ends({controller.partition: LeaderEpoch(epoch)}))[controller.partition]

    assert await end(3) == LogEnd(LeaderEpoch(3), 0)
    assert await end(4) is None
    assert await end(2) == LogEnd(LeaderEpoch(2), 0), "its records of that epoch would end where those of 3 begin"


async def test_a_follower_says_where_its_log_ends_as_well(link: BrokerLink, controller: Controller) -> None:
    assert await lead(link, controller.leadership(0)) == ErrorCode.none
    assert await lead(link, controller.leadership(3, replicas=(OTHER, ID))) == ErrorCode.none
    await link.send(controller.metadata(leader=OTHER))
    assert await link.log_ends({controller.partition: LeaderEpoch(0)}) == {
        controller.partition: LogEnd(LeaderEpoch(0), 0)
    }
    assert await link.log_ends({controller.partition: LeaderEpoch(3)}) == {controller.partition: None}


async def test_of_a_partition_that_a_broker_does_not_have_it_says_no_end(
    link: BrokerLink, controller: Controller
) -> None:
    assert await lead(link, controller.leadership(0)) == ErrorCode.none
    await link.send(controller.metadata())
    elsewhere = TopicPartition(controller.topic, PartitionId(7))
    told = await link.log_ends({controller.partition: LeaderEpoch(0), elsewhere: LeaderEpoch(0)})
    assert told == {controller.partition: LogEnd(LeaderEpoch(0), 0)}


async def test_who_cannot_be_reached_says_nothing_of_its_logs(subject: Subject, controller: Controller) -> None:
    link = subject.connect(subject.unreachable)
    with pytest.raises(NotConnected):
        await link.log_ends({controller.partition: LeaderEpoch(0)})
    await link.close()

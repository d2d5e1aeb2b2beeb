"""The right that each API needs, over the broker's port: refused without it, and answered with it."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from ipaddress import ip_network
from typing import Any, cast

import pytest
from kio.index import load_response_schema
from kio.schema.alter_replica_log_dirs.v2.request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kio.schema.describe_cluster.v1 import DescribeClusterRequest
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_log_dirs.v4.request import DescribeLogDirsRequest
from kio.schema.describe_producers.v0.request import DescribeProducersRequest
from kio.schema.describe_producers.v0.request import TopicRequest as ProducersOfTopic
from kio.schema.fetch.v12 import FetchRequest as FetchRequest12
from kio.schema.fetch.v12.request import FetchPartition as FetchPartition12
from kio.schema.fetch.v12.request import FetchTopic as FetchTopic12
from kio.schema.fetch.v17.request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kio.schema.find_coordinator.v6 import FindCoordinatorRequest
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.init_producer_id.v4 import InitProducerIdRequest
from kio.schema.list_offsets.v9.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.metadata.v12 import MetadataRequest
from kio.schema.metadata.v12.request import MetadataRequestTopic
from kio.schema.offset_for_leader_epoch.v4.request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kio.schema.produce.v11.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import ProducerId, TransactionalId
from kio.schema.types import TopicName as WireTopicName
from kio.schema.write_txn_markers.v1.request import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kio.static.primitive import Records, i8, i16, i32, i32Timedelta, i64
from prometheus_client import CollectorRegistry

from controller_core.admin.authorizing.acl_gate import AclGate
from controller_core.admin.authorizing.acl_znodes import acl_path
from controller_core.admin.authorizing.authorization import Authorization
from controller_core.admin.authorizing.known_acls import KnownAcls
from controller_core.client.errors import OutcomeUnknown
from controller_core.client.transport.request_client import Address, RequestClient
from controller_core.model.authorization.acls import THE_CLUSTER, Operation, Pattern, ResourceType
from controller_core.model.authorization.decision import AuthorizerRules
from controller_core.model.ids import BrokerId, ControllerEpoch, PartitionId, TopicName, TopicPartition
from controller_core.wire.listener.listener import Acceptor, Listener
from controller_core.wire.messages import (
    ErrorCode,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataResponse,
)
from replica_broker.log.appending import Appended
from replica_broker.log.directories import LogDirectories
from replica_broker.log.producers.states import ProducerStates
from replica_broker.membership.controller_channel import ProducerIdBlock
from replica_broker.membership.controller_hosts import ControllerHosts
from replica_broker.process.listening import NEEDED_OF_BROKERS
from replica_broker.replicas.requests import Deleted, Fetched
from replica_broker.serving.authorizing.command_gate import CommandGate
from replica_broker.serving.commands.control import Control
from replica_broker.serving.producer_ids import ProducerIds
from replica_broker.serving.served import RULES, Served
from simulation.cluster import Cluster
from tests.unit.replica_broker.log.batches import batch
from tests.unit.replica_broker.serving.stand_ins import StandInReplicas
from tests.unit.replica_broker.serving.test_served import Configs
from tests.unit.replica_broker.serving.told import ORDERS_ID, node, state, topic, update

FIRST = TopicPartition(TopicName("orders"), PartitionId(0))
ORDERS, OTHERS = WireTopicName("orders"), WireTopicName("others")
SOON = i32Timedelta.parse(timedelta(milliseconds=10))

ON_TOPIC = Pattern(ResourceType.TOPIC, "orders")
ON_CLUSTER = Pattern(*THE_CLUSTER)

NONE, TOPIC, CLUSTER = ErrorCode.none, ErrorCode.topic_authorization_failed, ErrorCode.cluster_authorization_failed
Granted = tuple[Pattern, Operation]


@dataclass(slots=True, kw_only=True)
class Obedient:
    """Replicas that carry out all commands."""

    obeyed: list[str] = field(default_factory=list)

    async def on_leader_and_isr_command(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        self.obeyed.append("LeaderAndIsr")
        return LeaderAndIsrResponse(error_code=NONE, topics=())

    async def on_stop_replica_command(self, request: StopReplicaRequest) -> StopReplicaResponse:
        self.obeyed.append("StopReplica")
        return StopReplicaResponse(error_code=NONE, partition_errors=())

    def on_brokers_changed(self) -> None:
        self.obeyed.append("UpdateMetadata")


@dataclass(frozen=True, slots=True)
class Port:
    """The port of a broker, and what came through."""

    client: RequestClient
    replicas: StandInReplicas
    commanded: Obedient

    async def ask(self, request: Any, response_type: Any = None) -> Any:
        known = response_type or load_response_schema(request.__api_key__, request.__version__)
        return await self.client.ask_one(request, known)


@asynccontextmanager
async def serve(
    cluster: Cluster, *granted: Granted, has_acls: bool = True, is_brokers: bool = True
) -> AsyncIterator[Port]:
    """Serve a broker whose ACLs grant everybody these operations, and nothing else. `is_brokers`: the addresses of its
    callers count as a broker's."""
    for pattern, operation in granted:
        entry = {"principal": "User:*", "permissionType": "Allow", "operation": operation.title, "host": "*"}
        path = acl_path(pattern)
        for end, letter in enumerate(path):
            if letter == "/" and end and not cluster.exists(path[:end]):
                cluster.put(path[:end], b"")
        cluster.put(path, json.dumps({"version": 1, "acls": [entry]}).encode())
    zk = cluster.zk.session()
    acls = KnownAcls(zk, kinds=tuple(ResourceType))
    task = acls.begin()
    told, commanded = node(topic("orders", [state(0, 3)])), Obedient()
    replicas = StandInReplicas(
        appended={FIRST: Appended(first_offset=5, last_offset=6)},
        fetched={FIRST: Fetched(records=b"batches")},
        deleted={FIRST: Deleted(low_watermark=3)},
        written_by={FIRST: ProducerStates()},
    )
    authorization = Authorization(AuthorizerRules(), acls, CollectorRegistry())
    served = Served(
        node=told,
        replicas=replicas.cast_to_replicas(),
        directories=cast(LogDirectories, _NoDirectories()),
        control=Control(told, commanded, _load, _epoch),
        configs=Configs(),
        producer_ids=ProducerIds(_blocks),
        zk=zk,
        authorization=authorization if has_acls else None,
    )
    by_address = CommandGate(ControllerHosts(zk), lambda: (), (ip_network("127.0.0.0/8"),) if is_brokers else ())
    apis = served.apis("PLAINTEXT", by_address.may_follow)
    acceptor = Acceptor(host="127.0.0.1", port=0, apis=apis, relay_targets=None)
    listener = Listener(
        [acceptor], rules=RULES, gate=AclGate(authorization, by_address, _is_not_controller, NEEDED_OF_BROKERS)
    )
    await listener.start()
    try:
        yield Port(RequestClient([Address("127.0.0.1", listener.port)], timeout_ms=20_000), replicas, commanded)
    finally:
        await listener.close()
        task.cancel()


class _NoDirectories:
    paths = ()

    def find_path(self, _: TopicPartition) -> None:
        return None


async def _load(_: object) -> None:
    return


async def _epoch() -> ControllerEpoch:
    return ControllerEpoch(9)


async def _blocks() -> ProducerIdBlock:
    return ProducerIdBlock(1000, 2)


async def _is_not_controller() -> bool:
    return False


def fetch(replica_id: int = -1) -> FetchRequest:
    partition = FetchPartition(partition=i32(0), fetch_offset=i64(3), partition_max_bytes=i32(100))
    return FetchRequest(
        replica_state=ReplicaState(replica_id=WireBrokerId(replica_id)),
        max_wait=SOON,
        min_bytes=i32(1),
        topics=(FetchTopic(topic_id=ORDERS_ID, partitions=(partition,)),),
        forgotten_topics_data=(),
    )


def fetch_by_name(replica_id: int = -1) -> FetchRequest12:
    partition = FetchPartition12(partition=i32(0), fetch_offset=i64(3), partition_max_bytes=i32(100))
    return FetchRequest12(
        replica_id=WireBrokerId(replica_id),
        max_wait=SOON,
        min_bytes=i32(1),
        topics=(FetchTopic12(topic=ORDERS, partitions=(partition,)),),
        forgotten_topics_data=(),
    )


def produce(*, acks: int = -1) -> ProduceRequest:
    data = (PartitionProduceData(index=i32(0), records=Records(batch(b"one"))),)
    return ProduceRequest(
        transactional_id=None,
        acks=i16(acks),
        timeout=SOON,
        topic_data=(TopicProduceData(name=ORDERS, partition_data=data),),
    )


def init_producer_id(transactional_id: str | None = None) -> InitProducerIdRequest:
    name = None if transactional_id is None else TransactionalId(transactional_id)
    return InitProducerIdRequest(transactional_id=name, transaction_timeout=SOON)


LIST_OFFSETS = ListOffsetsRequest(
    replica_id=WireBrokerId(-1),
    isolation_level=i8(0),
    topics=(
        ListOffsetsTopic(name=ORDERS, partitions=(ListOffsetsPartition(partition_index=i32(0), timestamp=i64(-1)),)),
    ),
)
EPOCH_END = OffsetForLeaderEpochRequest(
    replica_id=WireBrokerId(-2),
    topics=(
        OffsetForLeaderTopic(
            topic=ORDERS, partitions=(OffsetForLeaderPartition(partition=i32(0), leader_epoch=i32(2)),)
        ),
    ),
)
DELETE_RECORDS = DeleteRecordsRequest(
    topics=(
        DeleteRecordsTopic(name=ORDERS, partitions=(DeleteRecordsPartition(partition_index=i32(0), offset=i64(3)),)),
    ),
    timeout=SOON,
)
DESCRIBE_CONFIGS = DescribeConfigsRequest(
    resources=(
        DescribeConfigsResource(resource_type=i8(2), resource_name="orders", configuration_keys=("retention.ms",)),
    )
)
ALTER_CONFIGS = IncrementalAlterConfigsRequest(
    resources=(
        AlterConfigsResource(
            resource_type=i8(2),
            resource_name="orders",
            configs=(AlterableConfig(name="retention.ms", config_operation=i8(0), value="5"),),
        ),
    ),
    validate_only=True,
)
TXN_MARKERS = WriteTxnMarkersRequest(
    markers=(
        WritableTxnMarker(
            producer_id=ProducerId(5),
            producer_epoch=i16(2),
            transaction_result=True,
            topics=(WritableTxnMarkerTopic(name=ORDERS, partition_indexes=(i32(0),)),),
            coordinator_epoch=i32(1),
        ),
    )
)
ALTER_LOG_DIRS = AlterReplicaLogDirsRequest(
    dirs=(AlterReplicaLogDir(path="/d", topics=(AlterReplicaLogDirTopic(name=ORDERS, partitions=(i32(0),)),)),)
)
PRODUCERS = DescribeProducersRequest(topics=(ProducersOfTopic(name=ORDERS, partition_indexes=(i32(0),)),))


def metadata(*names: str) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(topic_id=None, name=WireTopicName(name)) for name in names)
    return MetadataRequest(topics=topics or None, include_topic_authorized_operations=True)


def _read_produce_error(answer: Any) -> ErrorCode:
    return cast(ErrorCode, answer.responses[0].partition_responses[0].error_code)


def _read_fetch_error(answer: Any) -> ErrorCode:
    return cast(ErrorCode, answer.responses[0].partitions[0].error_code)


def _read_topic_error(answer: Any) -> ErrorCode:
    return cast(ErrorCode, answer.topics[0].partitions[0].error_code)


def _read_result_error(answer: Any) -> ErrorCode:
    return cast(ErrorCode, answer.results[0].error_code)


def _read_error(answer: Any) -> ErrorCode:
    return cast(ErrorCode, answer.error_code)


MINE = Pattern(ResourceType.TRANSACTIONAL_ID, "mine")
GROUP = Pattern(ResourceType.GROUP, "g")
NEEDS: dict[str, tuple[Any, Callable[[Any], ErrorCode], list[Granted], ErrorCode, ErrorCode]] = {
    "Produce": (produce(), _read_produce_error, [(ON_TOPIC, Operation.WRITE)], TOPIC, NONE),
    "Fetch": (fetch(), _read_fetch_error, [(ON_TOPIC, Operation.READ)], TOPIC, NONE),
    "Fetch by name": (fetch_by_name(), _read_fetch_error, [(ON_TOPIC, Operation.READ)], TOPIC, NONE),
    "a follower's Fetch": (fetch(1), _read_fetch_error, [(ON_CLUSTER, Operation.CLUSTER_ACTION)], TOPIC, NONE),
    "a follower's Fetch by name": (
        fetch_by_name(1),
        _read_fetch_error,
        [(ON_CLUSTER, Operation.CLUSTER_ACTION)],
        TOPIC,
        NONE,
    ),
    "ListOffsets": (LIST_OFFSETS, _read_topic_error, [(ON_TOPIC, Operation.DESCRIBE)], TOPIC, NONE),
    "OffsetForLeaderEpoch": (EPOCH_END, _read_topic_error, [(ON_TOPIC, Operation.DESCRIBE)], TOPIC, NONE),
    "a follower's OffsetForLeaderEpoch": (
        EPOCH_END,
        _read_topic_error,
        [(ON_CLUSTER, Operation.CLUSTER_ACTION)],
        TOPIC,
        NONE,
    ),
    "DeleteRecords": (DELETE_RECORDS, _read_topic_error, [(ON_TOPIC, Operation.DELETE)], TOPIC, NONE),
    "InitProducerId": (init_producer_id(), _read_error, [(ON_CLUSTER, Operation.IDEMPOTENT_WRITE)], CLUSTER, NONE),
    "InitProducerId of a writer": (
        init_producer_id(),
        _read_error,
        [(Pattern(ResourceType.TOPIC, "o", is_prefix=True), Operation.WRITE)],
        CLUSTER,
        NONE,
    ),
    "InitProducerId of a transaction": (
        init_producer_id("mine"),
        _read_error,
        [(MINE, Operation.WRITE)],
        ErrorCode.transactional_id_authorization_failed,
        ErrorCode.not_coordinator,
    ),
    "FindCoordinator of a group": (
        FindCoordinatorRequest(coordinator_keys=("g",)),
        lambda answer: answer.coordinators[0].error_code,
        [(GROUP, Operation.DESCRIBE)],
        ErrorCode.group_authorization_failed,
        ErrorCode.coordinator_not_available,
    ),
    "FindCoordinator of a transaction": (
        FindCoordinatorRequest(key_type=i8(1), coordinator_keys=("mine",)),
        lambda answer: answer.coordinators[0].error_code,
        [(MINE, Operation.DESCRIBE)],
        ErrorCode.transactional_id_authorization_failed,
        ErrorCode.coordinator_not_available,
    ),
    "Metadata": (
        metadata("orders"),
        lambda answer: answer.topics[0].error_code,
        [(ON_TOPIC, Operation.READ)],
        TOPIC,
        NONE,
    ),
    "DescribeConfigs": (DESCRIBE_CONFIGS, _read_result_error, [(ON_TOPIC, Operation.DESCRIBE_CONFIGS)], TOPIC, NONE),
    "IncrementalAlterConfigs": (
        ALTER_CONFIGS,
        lambda answer: answer.responses[0].error_code,
        [(ON_TOPIC, Operation.ALTER_CONFIGS)],
        TOPIC,
        NONE,
    ),
    "IncrementalAlterConfigs of a topic that is named twice": (
        replace(ALTER_CONFIGS, resources=ALTER_CONFIGS.resources * 2),
        lambda answer: answer.responses[0].error_code,
        [(ON_TOPIC, Operation.ALTER_CONFIGS)],
        ErrorCode.invalid_request,
        ErrorCode.invalid_request,
    ),
    "DescribeProducers": (PRODUCERS, _read_topic_error, [(ON_TOPIC, Operation.READ)], TOPIC, NONE),
    "DescribeLogDirs": (
        DescribeLogDirsRequest(topics=None),
        _read_error,
        [(ON_CLUSTER, Operation.DESCRIBE)],
        CLUSTER,
        NONE,
    ),
    "AlterReplicaLogDirs": (
        ALTER_LOG_DIRS,
        lambda answer: answer.results[0].partitions[0].error_code,
        [(ON_CLUSTER, Operation.ALTER)],
        CLUSTER,
        ErrorCode.log_dir_not_found,
    ),
    "WriteTxnMarkers": (
        TXN_MARKERS,
        lambda answer: answer.markers[0].topics[0].partitions[0].error_code,
        [(ON_CLUSTER, Operation.CLUSTER_ACTION)],
        CLUSTER,
        NONE,
    ),
    "WriteTxnMarkers of an administrator": (
        TXN_MARKERS,
        lambda answer: answer.markers[0].topics[0].partitions[0].error_code,
        [(ON_CLUSTER, Operation.ALTER)],
        CLUSTER,
        NONE,
    ),
}


@pytest.mark.parametrize("name", NEEDS)
async def test_each_api_needs_its_right(cluster: Cluster, name: str) -> None:
    request, error_of, granted, refused, answered = NEEDS[name]
    async with serve(cluster) as port:
        assert error_of(await port.ask(request)) is refused
        assert port.replicas.asked == [], "nothing refused reaches the replicas"
    async with serve(cluster, *granted) as port:
        assert error_of(await port.ask(request)) is answered


@pytest.mark.parametrize("request_of", [fetch, fetch_by_name])
@pytest.mark.parametrize("has_acls", [True, False])
async def test_without_a_login_only_the_address_of_a_broker_may_follow(
    cluster: Cluster, request_of: Callable[[int], Any], has_acls: bool
) -> None:
    granted = (ON_CLUSTER, Operation.CLUSTER_ACTION), (ON_TOPIC, Operation.READ)
    async with serve(cluster, *granted, has_acls=has_acls, is_brokers=False) as port:
        assert _read_fetch_error(await port.ask(request_of(1))) is TOPIC
        assert port.replicas.asked == []
        assert _read_fetch_error(await port.ask(request_of(-1))) is NONE
    async with serve(cluster, *granted, has_acls=has_acls) as port:
        assert _read_fetch_error(await port.ask(request_of(1))) is NONE


async def test_commands_need_cluster_action(cluster: Cluster) -> None:
    stop = StopReplicaRequest(controller_id=BrokerId(1), controller_epoch=ControllerEpoch(5), topic_states=())
    commands: list[tuple[Any, Any]] = [
        (stop, StopReplicaResponse),
        (update(), UpdateMetadataResponse),
        (LEADER_AND_ISR, LeaderAndIsrResponse),
    ]
    async with serve(cluster) as port:
        for request, response_type in commands:
            assert (await port.ask(request, response_type)).error_code is CLUSTER
        assert port.commanded.obeyed == []
    async with serve(cluster, (ON_CLUSTER, Operation.CLUSTER_ACTION)) as port:
        for request, response_type in commands:
            assert (await port.ask(request, response_type)).error_code is NONE
        assert port.commanded.obeyed == ["StopReplica", "UpdateMetadata", "LeaderAndIsr"]


LEADER_AND_ISR = LeaderAndIsrRequest(
    controller_id=BrokerId(1), controller_epoch=ControllerEpoch(5), topic_states=(), live_leaders=()
)


async def test_topics_that_a_client_may_not_describe_are_left_out_or_look_the_same(cluster: Cluster) -> None:
    async with serve(cluster) as port:
        assert (await port.ask(metadata())).topics == ()
        orders, others = (await port.ask(metadata("orders", "others"))).topics
        assert (orders.error_code, orders.topic_id, orders.partitions) == (TOPIC, None, ())
        assert (others.error_code, others.topic_id, others.partitions) == (TOPIC, None, ())
        by_id = MetadataRequest(
            topics=(MetadataRequestTopic(topic_id=ORDERS_ID, name=None),), include_topic_authorized_operations=False
        )
        (hidden,) = (await port.ask(by_id)).topics
        assert (hidden.error_code, hidden.name, hidden.topic_id) == (TOPIC, None, ORDERS_ID)
    async with serve(cluster, (ON_TOPIC, Operation.READ)) as port:
        (orders,) = (await port.ask(metadata())).topics
        assert (orders.name, orders.topic_authorized_operations) == (
            "orders",
            1 << Operation.READ | 1 << Operation.DESCRIBE,
        )


async def test_only_allowed_topics_of_a_request_are_appended_to(cluster: Cluster) -> None:
    asked = produce()
    (orders,) = asked.topic_data
    mixed = ProduceRequest(
        transactional_id=None,
        acks=asked.acks,
        timeout=SOON,
        topic_data=(TopicProduceData(name=OTHERS, partition_data=orders.partition_data), orders),
    )
    async with serve(cluster, (ON_TOPIC, Operation.WRITE)) as port:
        others, orders_answer = (await port.ask(mixed)).responses
        assert (others.name, others.partition_responses[0].error_code) == ("others", TOPIC)
        assert (orders_answer.name, orders_answer.partition_responses[0].error_code) == ("orders", NONE)
        assert [asked[0] for asked in port.replicas.asked] == [FIRST]


async def test_a_refused_message_without_acks_closes_the_connection(cluster: Cluster) -> None:
    async with serve(cluster) as port:
        with pytest.raises(OutcomeUnknown):
            await port.ask(produce(acks=0))
        assert port.replicas.asked == []


async def test_operations_on_the_cluster_are_shown_to_those_who_may_describe_it(cluster: Cluster) -> None:
    asked = DescribeClusterRequest(include_cluster_authorized_operations=True)
    async with serve(cluster, (ON_CLUSTER, Operation.ALTER)) as port:
        shown = (await port.ask(asked)).cluster_authorized_operations
        assert shown == 1 << Operation.ALTER | 1 << Operation.DESCRIBE
    async with serve(cluster, (ON_CLUSTER, Operation.CREATE)) as port:
        assert (await port.ask(asked)).cluster_authorized_operations == 0


def test_every_served_api_is_judged_or_needs_no_right(cluster: Cluster) -> None:
    """The rest needs no right in Kafka either: it shows nothing, or filters what it shows."""
    judged = {request.__api_key__ for request, *_ in NEEDS.values()} | {4, 5, 6}
    without_a_right = {18: "ApiVersions", 60: "DescribeCluster", 16: "ListGroups", 66: "ListTransactions"}
    told = node()
    served = Served(
        node=told,
        replicas=StandInReplicas().cast_to_replicas(),
        directories=cast(LogDirectories, None),
        control=Control(told, Obedient(), _load, _epoch),
        configs=Configs(),
        producer_ids=ProducerIds(_blocks),
        zk=cluster.zk.session(),
    )
    assert {api.key for api in served.apis("PLAINTEXT")} == judged | without_a_right.keys()
    assert not judged & without_a_right.keys()

"""The controller's answers about its cluster, version by version: Metadata and DescribeCluster."""

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any
from uuid import uuid4

import pytest
from kio.index import load_request_schema
from kio.schema.describe_cluster.v1 import DescribeClusterRequest
from kio.static.primitive import i8

from controller_core.admin.cluster import describe_cluster, metadata
from controller_core.admin.cluster.cluster_view import ClusterView
from controller_core.client.snapshot import read_snapshot
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.model.ids import BrokerId, ControllerEpoch, TopicId
from controller_core.model.snapshot import Controller, ControllerKind
from controller_core.wire.codecs.frames import encode_response
from controller_core.wire.listener.owned_api import AskBroker
from controller_core.wire.messages import ErrorCode
from controller_core.zk.snapshots.reading import read_snapshot as read_znodes
from simulation.cluster import CONTROLLER, Cluster, tp

VERSIONS = range(13)
ALL_ON_TOPIC, ALL_ON_CLUSTER, NOT_ASKED = 3576, 8096, -(2**31)


def view(cluster: Cluster, cluster_id: str | None = "the-cluster") -> ClusterView:
    term = cluster.active.controller.term
    assert term is not None
    return ClusterView(state=term.state, controller=term.identity, listener="PLAINTEXT", cluster_id=cluster_id)


def request(
    version: int, names: Sequence[str | None] | None = None, *, ids: Sequence[TopicId] = (), **fields: Any
) -> Any:
    """Make a request for topics by name or by id, or for all topics if neither is given. If the version allows it, the
    request creates no topics."""
    kind: Any = load_request_schema(3, version)
    topic = import_module(kind.__module__).MetadataRequestTopic
    topics: Any = () if version == 0 else None
    if names is not None:
        extra = {"topic_id": None} if version >= 10 else {}
        topics = tuple(topic(name=name, **extra) for name in names)
    elif ids:
        topics = tuple(topic(name=None, topic_id=topic_id) for topic_id in ids)
    known = {"allow_auto_topic_creation": version >= 4, "include_topic_authorized_operations": version >= 8}
    known["include_cluster_authorized_operations"] = 8 <= version <= 10
    given = {name: False for name, is_known in known.items() if is_known} | fields
    return kind(topics=topics, **given)


async def ask(cluster: Cluster, asked: Any) -> Any:
    """The answer, which can be written in its version."""
    answer = await metadata.on_metadata(view(cluster), asked)
    assert not isinstance(answer, AskBroker), "a broker is to be asked"
    encode_response(answer, 1)
    assert answer.__version__ == asked.__version__
    return answer


def outcomes(answer: Any) -> dict[Any, ErrorCode]:
    return {topic.name: topic.error_code for topic in answer.topics}


def partition(answer: Any, topic: str = "orders", number: int = 0) -> Any:
    (found,) = (topic_ for topic_ in answer.topics if topic_.name == topic)
    return next(entry for entry in found.partitions if entry.partition_index == number)


@pytest.fixture
async def orders(cluster: Cluster) -> Cluster:
    """Three brokers and one topic."""
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2], [2, 3])
    await cluster.settle()
    return cluster


@pytest.mark.parametrize("version", VERSIONS)
async def test_all_topics_are_answered_with_the_brokers_and_the_controller_among_them(
    orders: Cluster, version: int
) -> None:
    answer = await ask(orders, request(version))
    assert outcomes(answer) == {"orders": ErrorCode.none}
    assert sorted(broker.node_id for broker in answer.brokers) == [1, 2, 3, CONTROLLER]
    entry = partition(answer, number=1)
    assert (entry.error_code, entry.leader_id, entry.replica_nodes, entry.isr_nodes) == (
        ErrorCode.none,
        2,
        (2, 3),
        (2, 3),
    )
    assert getattr(answer, "controller_id", CONTROLLER) == CONTROLLER
    assert getattr(answer, "cluster_id", "the-cluster") == "the-cluster"
    assert version < 1 or hasattr(answer, "controller_id")
    assert version < 2 or hasattr(answer, "cluster_id")


async def test_clients_and_zookeeper_show_the_same_snapshot(orders: Cluster) -> None:
    orders.kill_broker(2)
    await orders.settle()
    shown, stored = read_snapshot(await ask(orders, request(11))), await read_znodes(orders.zk.session())
    isrs = {str(each.partition): (each.replicas, each.leader, each.isr) for each in shown.list_partitions()}
    assert isrs == {"orders-0": ((1, 2), 1, (1,)), "orders-1": ((2, 3), 3, (3,))}
    assert isrs == {str(each.partition): (each.replicas, each.leader, each.isr) for each in stored.list_partitions()}
    assert shown.counts == stored.counts
    assert shown.brokers.keys() == stored.brokers.keys() | {CONTROLLER} == {1, 3, CONTROLLER}
    assert shown.controller == Controller(id=BrokerId(CONTROLLER))
    assert stored.controller == Controller(
        id=BrokerId(CONTROLLER), epoch=ControllerEpoch(1), kind=ControllerKind.KONTROLLER
    )


@pytest.mark.parametrize("version", VERSIONS[1:])
async def test_no_topic_is_answered_to_who_asks_for_none(orders: Cluster, version: int) -> None:
    assert (await ask(orders, request(version, []))).topics == ()


@pytest.mark.parametrize("version", VERSIONS[4:])
async def test_a_topic_that_is_not_there_is_unknown_and_an_impossible_name_invalid(
    orders: Cluster, version: int
) -> None:
    answer = await ask(orders, request(version, ["orders", "none", "none", "no/ne", ""]))
    assert outcomes(answer) == {
        "orders": ErrorCode.none,
        "none": ErrorCode.unknown_topic_or_partition,
        "no/ne": ErrorCode.invalid_topic_exception,
        "": ErrorCode.invalid_topic_exception,
    }
    assert len(answer.topics) == 4


async def test_topics_are_found_by_their_ids(orders: Cluster) -> None:
    known, unknown = orders.topic("orders").topic_id, TopicId(uuid4())
    assert known is not None
    answer = await ask(orders, request(12, ids=[known, unknown]))
    assert {(topic.name, topic.topic_id): topic.error_code for topic in answer.topics} == {
        ("orders", known): ErrorCode.none,
        (None, unknown): ErrorCode.unknown_topic_id,
    }


@pytest.mark.parametrize("version", [10, 11])
async def test_ids_and_missing_names_are_refused_in_the_versions_that_only_seem_to_have_them(
    orders: Cluster, version: int
) -> None:
    topic_id = orders.topic("orders").topic_id
    assert topic_id is not None
    answer = await ask(orders, request(version, ids=[topic_id]))
    assert outcomes(answer) == {"": ErrorCode.invalid_request}
    assert (answer.brokers, answer.controller_id) == ((), -1)
    assert outcomes(await ask(orders, request(version, [None]))) == {"": ErrorCode.invalid_request}


async def test_a_topic_with_neither_name_nor_id_spoils_the_request_as_it_does_for_kafka(orders: Cluster) -> None:
    error = ErrorCode.unknown_server_error
    assert outcomes(await ask(orders, request(12, [None, "orders"]))) == {"": error, "orders": error}


async def test_the_controller_has_a_rack_where_every_broker_has_one(orders: Cluster) -> None:
    """Brokers create no topic automatically if some of the brokers that they know have a rack and others have none."""

    def rack_of_controller(*racks: str | None) -> str | None:
        known = view(orders)
        for broker, rack in zip(list(known.state.brokers.values()), racks, strict=True):
            known.state.add_broker(replace(broker, rack=rack))
        (own,) = (node.rack for node in known.nodes() if node.id == CONTROLLER)
        return own

    assert rack_of_controller("a", "b", "b") == "b"
    assert rack_of_controller("c", "b", "a") == "a"
    assert rack_of_controller("a", None, "b") is None
    assert rack_of_controller(None, None, None) is None


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_topic_that_may_be_created_by_asking_is_left_to_a_broker(orders: Cluster, version: int) -> None:
    creating: Any = {"allow_auto_topic_creation": True} if version >= 4 else {}
    assert isinstance(await metadata.on_metadata(view(orders), request(version, ["none"], **creating)), AskBroker)
    assert outcomes(await ask(orders, request(version, ["orders", "no/ne"], **creating)))["orders"] is ErrorCode.none


async def test_without_a_broker_to_ask_the_controller_says_what_it_knows(orders: Cluster) -> None:
    question = await metadata.on_metadata(view(orders), request(9, ["none"], allow_auto_topic_creation=True))
    assert isinstance(question, AskBroker)
    assert question.otherwise is not None
    assert outcomes(await question.otherwise()) == {"none": ErrorCode.unknown_topic_or_partition}


async def test_answers_about_very_many_partitions_are_left_to_a_broker(orders: Cluster) -> None:
    orders.create_topic("large", *([1, 2] for _ in range(metadata.MOST_PARTITIONS)))
    await orders.settle()
    assert isinstance(await metadata.on_metadata(view(orders), request(12)), AskBroker)
    assert isinstance(await metadata.on_metadata(view(orders), request(12, ["large", "orders"])), AskBroker)
    assert not isinstance(await metadata.on_metadata(view(orders), request(12, ["orders"])), AskBroker)


@pytest.mark.parametrize("may_create", [True, False])
async def test_metadata_of_very_many_topics_is_left_to_a_broker_and_answered_without_one(
    orders: Cluster, may_create: bool
) -> None:
    names = ["orders", *(f"topic-{number}" for number in range(metadata.MOST_PARTITIONS))]
    asked = request(12, names, allow_auto_topic_creation=may_create)
    question = await metadata.on_metadata(view(orders), asked)
    assert isinstance(question, AskBroker)
    assert question.judged_as == (metadata.CREATE_TOPICS if may_create else None)
    assert question.otherwise is not None
    unknown = dict.fromkeys(names, ErrorCode.unknown_topic_or_partition)
    assert outcomes(await question.otherwise()) == unknown | {"orders": ErrorCode.none}


async def test_a_controller_that_has_not_read_everything_yet_leaves_the_answer_to_a_broker(orders: Cluster) -> None:
    known = view(orders)
    empty = ClusterView(state=ClusterState(), controller=known.controller, listener="PLAINTEXT", cluster_id=None)
    assert await metadata.on_metadata(empty, request(12, ["orders"])) == AskBroker()


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_partition_without_a_live_leader_says_so_and_which_replicas_are_offline(
    orders: Cluster, version: int
) -> None:
    orders.kill_broker(2)
    orders.kill_broker(3)
    await orders.settle()
    entry = partition(await ask(orders, request(version)), number=1)
    assert (entry.error_code, entry.leader_id) == (ErrorCode.leader_not_available, -1)
    assert entry.replica_nodes == (() if version == 0 else (2, 3))
    if version >= 5:
        assert entry.offline_replicas == (2, 3)


@pytest.mark.parametrize("version", VERSIONS)
async def test_only_version_0_leaves_out_replicas_that_are_down(orders: Cluster, version: int) -> None:
    orders.kill_broker(2)
    await orders.settle()
    entry = partition(await ask(orders, request(version)), number=0)
    assert entry.leader_id == 1
    expected = (ErrorCode.replica_not_available, (1,)) if version == 0 else (ErrorCode.none, (1, 2))
    assert (entry.error_code, entry.replica_nodes) == expected


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_leader_without_the_controllers_listener_is_none_to_clients_of_it(
    orders: Cluster, version: int
) -> None:
    known = view(orders)
    known.state.add_broker(replace(known.state.brokers[BrokerId(1)], endpoints=()))
    answer = await ask(orders, request(version))
    entry = partition(answer, number=0)
    assert entry.leader_id == -1
    assert entry.error_code is (ErrorCode.listener_not_found if version >= 6 else ErrorCode.leader_not_available)
    assert 1 not in [node.node_id for node in answer.brokers]


async def test_a_topic_that_is_being_deleted_is_not_there(orders: Cluster) -> None:
    topic_id = orders.topic("orders").topic_id
    assert topic_id is not None
    orders.kill_broker(3)
    await orders.settle()
    orders.request_deletion("orders")
    await orders.settle()
    assert orders.exists("/brokers/topics/orders"), "a replica on a dead broker keeps the topic's znodes"
    assert (await ask(orders, request(12))).topics == ()
    assert outcomes(await ask(orders, request(12, ["orders"]))) == {"orders": ErrorCode.unknown_topic_or_partition}
    assert outcomes(await ask(orders, request(12, ids=[topic_id]))) == {None: ErrorCode.unknown_topic_id}


async def test_a_partition_that_has_never_had_a_leader_is_not_sent(orders: Cluster) -> None:
    known = view(orders)
    known.state.forget_state(tp("orders", 1))
    assert [entry.partition_index for entry in (await ask(orders, request(12))).topics[0].partitions] == [0]
    known.state.forget_state(tp("orders", 0))
    assert outcomes(await ask(orders, request(12, ["orders"]))) == {"orders": ErrorCode.unknown_topic_or_partition}


@pytest.mark.parametrize("version", VERSIONS[8:])
async def test_what_a_client_may_do_is_answered_only_when_asked(orders: Cluster, version: int) -> None:
    quiet = await ask(orders, request(version, ["orders", "none"]))
    assert [topic.topic_authorized_operations for topic in quiet.topics] == [NOT_ASKED, NOT_ASKED]
    asked: Any = {"include_topic_authorized_operations": True}
    if version <= 10:
        asked["include_cluster_authorized_operations"] = True
        assert quiet.cluster_authorized_operations == NOT_ASKED
    answer = await ask(orders, request(version, ["orders", "none"], **asked))
    assert [topic.topic_authorized_operations for topic in answer.topics] == [ALL_ON_TOPIC, ALL_ON_TOPIC]
    if version <= 10:
        assert answer.cluster_authorized_operations == ALL_ON_CLUSTER


async def test_the_topics_of_kafka_itself_are_internal(orders: Cluster) -> None:
    orders.create_topic("__consumer_offsets", [1])
    await orders.settle()
    internal = {topic.name: topic.is_internal for topic in (await ask(orders, request(12))).topics}
    assert internal == {"orders": False, "__consumer_offsets": True}
    assert (await ask(orders, request(12, ["__transaction_state"]))).topics[0].is_internal


# DescribeCluster


def describe(cluster: Cluster, *, endpoint_type: int = 1, asks: bool = False, cluster_id: str | None = "c") -> Any:
    asked = DescribeClusterRequest(include_cluster_authorized_operations=asks, endpoint_type=i8(endpoint_type))
    return describe_cluster.on_describe_cluster(view(cluster, cluster_id), asked)


async def test_a_cluster_is_described_by_its_brokers_and_its_controller(orders: Cluster) -> None:
    answer = describe(orders)
    assert (answer.error_code, answer.cluster_id, answer.controller_id) == (ErrorCode.none, "c", CONTROLLER)
    assert {(node.broker_id, node.host, node.port) for node in answer.brokers} >= {(1, "broker-1", 9001)}
    assert sorted(node.broker_id for node in answer.brokers) == [1, 2, 3, CONTROLLER]
    assert answer.cluster_authorized_operations == NOT_ASKED
    assert describe(orders, asks=True).cluster_authorized_operations == ALL_ON_CLUSTER


@pytest.mark.parametrize(
    ("endpoint_type", "expected"),
    [
        (2, ErrorCode.mismatched_endpoint_type),
        (0, ErrorCode.unsupported_endpoint_type),
        (-7, ErrorCode.unsupported_endpoint_type),
    ],
)
async def test_other_endpoints_than_brokers_are_not_described(
    orders: Cluster, endpoint_type: int, expected: ErrorCode
) -> None:
    answer = describe(orders, endpoint_type=endpoint_type)
    assert (answer.error_code, answer.brokers, answer.controller_id) == (expected, (), -1)


async def test_a_cluster_that_has_no_id_yet_is_described_without_one(orders: Cluster) -> None:
    assert describe(orders, cluster_id=None).cluster_id == ""

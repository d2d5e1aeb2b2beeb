"""An object that is too large for ZooKeeper costs no other object the connection, and its status says what to
change."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.zk import codecs, paths
from controller_core.zk.request_size import DEFAULT_JUTE_MAXBUFFER_BYTES
from controller_core.zk.session import SessionState
from controller_operator.kafka.actions import SubmitPreferredElection, SubmitReassignment
from controller_operator.kafka.write_limits import WriteLimits
from controller_operator.resources.conditions import Reason
from simulation.zookeeper import SimulatedZooKeeper
from tests.unit.operator.clusters import healthy, view
from tests.unit.operator.tenants.operated import Operated, kafka_cluster

LONG = "x" * 249


@pytest.fixture
async def zookeeper() -> SimulatedZooKeeper:
    return await kafka_cluster("orders")


CONFIG = {"cleanup.policy": ",".join(["delete"] * 4_000)}
TOO_LARGE: dict[str, tuple[int, dict[str, Any]]] = {
    "a topic of 70,000 partitions": (DEFAULT_JUTE_MAXBUFFER_BYTES, {"partitions": 70_000, "replicationFactor": 3}),
    "a topic with a large configuration": (20_000, {"partitions": 1, "replicationFactor": 1, "config": CONFIG}),
}


@pytest.mark.parametrize("what", TOO_LARGE)
async def test_a_topic_that_does_not_fit_is_stalled_and_nobody_loses_the_connection(
    what: str, zookeeper: SimulatedZooKeeper, operating: Callable[..., Operated]
) -> None:
    limit_bytes, spec = TOO_LARGE[what]
    zookeeper.jute_maxbuffer_bytes = limit_bytes
    operated = operating({"zk": zookeeper}, max_request_bytes=limit_bytes)
    await operated.cluster("demo", "zk", namespace="shop")
    states: list[SessionState] = []
    operated.sessions[0].add_listener(states.append)
    key = await operated.add("KafkaTopic", "large", spec)
    for _ in range(3):
        assert (await operated.look(key)).look_again_in_s is None
    assert states == []
    assert operated.ready(key)["reason"] == Reason.TOO_LARGE
    assert "fewer partitions" in operated.ready(key)["message"]
    assert str(limit_bytes) in operated.ready(key)["message"]
    assert zookeeper.tree.read(paths.topic(TopicName("large"))) is None
    await operated.add("KafkaTopic", "large", {"partitions": 100, "replicationFactor": 3}, generation=2)
    await operated.look(key)
    assert zookeeper.tree.read(paths.topic(TopicName("large"))) is not None


async def test_a_large_configuration_of_a_topic_holds_up_nothing_else_of_it(
    zookeeper: SimulatedZooKeeper, operating: Callable[..., Operated]
) -> None:
    operated = operating({"zk": zookeeper}, max_request_bytes=20_000)
    await operated.cluster("demo", "zk", namespace="shop")
    topic = {"topicName": "orders", "partitions": 1, "replicationFactor": 2}
    key = await operated.add("KafkaTopic", "orders", topic)
    await operated.look(key)
    await operated.add("KafkaTopic", "orders", {**topic, "partitions": 3, "config": CONFIG}, generation=2)
    await operated.look(key)
    node = zookeeper.tree.read(paths.topic(TopicName("orders")))
    assert node is not None
    assert len(codecs.decode_whole_topic(TopicName("orders"), node.data).partitions) == 3
    assert operated.ready(key)["reason"] == Reason.TOO_LARGE


async def test_a_move_that_does_not_fit_the_znode_has_not_begun_where_there_is_no_other_way(
    operating: Callable[..., Operated],
) -> None:
    names = [f"{number:04}{LONG[4:]}" for number in range(120)]
    many = await kafka_cluster(*names, protocol="SSL")
    many.jute_maxbuffer_bytes = 30_000
    operated = operating({"zk": many}, max_request_bytes=30_000)
    await operated.cluster("demo", "zk", namespace="shop")
    partitions = [{"topic": name, "partition": 0, "replicas": [3, 1]} for name in names]
    key = await operated.add("PartitionReassignment", "all", {"partitions": partitions})
    for _ in range(2):
        await operated.look(key)
    status = operated.status(key)
    assert (status["phase"], operated.ready(key)["reason"]) == ("Pending", Reason.TOO_LARGE)
    assert "startTime" not in status
    assert "several objects" in operated.ready(key)["message"]
    assert many.tree.read(paths.REASSIGN_PARTITIONS) is None
    key = await operated.add("PartitionReassignment", "some", {"partitions": partitions[:60]})
    await operated.look(key)
    node = many.tree.read(paths.REASSIGN_PARTITIONS)
    assert node is not None
    assert len(codecs.decode_reassignment(node.data).partitions) == 60


def count_throttled_topics(zookeeper: SimulatedZooKeeper) -> int:
    nodes = [
        zookeeper.tree.read(paths.topic_config(TopicName(name)))
        for name in zookeeper.tree.children(paths.TOPIC_CONFIGS) or ()
    ]
    return sum(b"throttled" in node.data for node in nodes if node is not None)


def count_moving_topics(zookeeper: SimulatedZooKeeper) -> int:
    names = [TopicName(name) for name in zookeeper.tree.children(paths.TOPICS) or ()]
    nodes = [(name, zookeeper.tree.read(paths.topic(name))) for name in names]
    topics = [codecs.decode_whole_topic(name, node.data) for name, node in nodes if node is not None]
    return sum(each.is_being_reassigned for topic in topics for each in topic.partitions.values())


@pytest.mark.parametrize("change", [{"throttle": None}, {"maxConcurrentPartitions": 5}])
async def test_a_move_whose_throttle_does_not_fit_has_not_begun_and_says_with_what_it_would(
    change: Mapping[str, Any], operating: Callable[..., Operated]
) -> None:
    names = [f"{number:04}{LONG[4:]}" for number in range(60)]
    many = await kafka_cluster(*names)
    operated = operating({"zk": many}, max_request_bytes=20_000)
    await operated.cluster("demo", "zk", namespace="shop")
    states: list[SessionState] = []
    operated.sessions[0].add_listener(states.append)
    partitions = [{"topic": name, "partition": 0, "replicas": [3, 1]} for name in names]
    spec = {"partitions": partitions, "throttle": {"bytesPerSecond": 5_000_000}}
    key = await operated.add("PartitionReassignment", "all", spec)
    for _ in range(2):
        await operated.look(key)
    assert operated.ready(key)["reason"] == Reason.TOO_LARGE
    assert "20000" in operated.ready(key)["message"]
    assert "maxConcurrentPartitions" in operated.ready(key)["message"]
    assert operated.status(key)["counts"]["waiting"] == 60
    assert count_moving_topics(many) == 0
    assert count_throttled_topics(many) == 0
    changed = {name: value for name, value in {**spec, **change}.items() if value is not None}
    await operated.add("PartitionReassignment", "all", changed, generation=2)
    await operated.look(key)
    assert count_moving_topics(many) == change.get("maxConcurrentPartitions", 60)
    assert count_throttled_topics(many) == change.get("maxConcurrentPartitions", 0)
    assert operated.condition(key, "Stalled") is None
    assert states == []


async def test_an_election_is_asked_for_in_parts_that_fit(operating: Callable[..., Operated]) -> None:
    names = [f"{number:04}{LONG[4:]}" for number in range(120)]
    many = await kafka_cluster(*names)
    operated = operating({"zk": many}, max_request_bytes=20_000)
    await operated.cluster("demo", "zk", namespace="shop")
    key = await operated.add("PreferredElection", "all", {"allPartitions": True})
    await operated.look(key)
    node = many.tree.read(paths.PREFERRED_REPLICA_ELECTION)
    assert node is not None
    asked = codecs.decode_preferred_election(node.data).partitions
    assert 0 < len(asked) < 120
    assert operated.status(key)["phase"] == "Running"


class TestMeasuring:
    """Room is measured in whole requests."""

    ORDERS = tuple(TopicPartition(TopicName("orders"), PartitionId(number)) for number in range(1000))

    def test_as_many_as_fit_are_as_many_as_fit(self) -> None:
        def make_step(chosen: tuple[TopicPartition, ...]) -> SubmitPreferredElection:
            return SubmitPreferredElection(partitions=chosen)

        limits = WriteLimits(max_bytes=10_000)
        number = len(limits.choose_fitting(self.ORDERS, make_step))
        assert limits.why_too_large(make_step(self.ORDERS[:number])) is None
        assert limits.why_too_large(make_step(self.ORDERS[: number + 1])) is not None
        assert len(WriteLimits(max_bytes=10).choose_fitting(self.ORDERS, make_step)) == 1
        assert WriteLimits().choose_fitting((), make_step) == ()

    def test_a_topic_must_have_room_for_both_its_old_replicas_and_the_new_ones(self) -> None:
        """Otherwise a controller would begin a move that it cannot write down."""
        cluster = view(healthy(*([1, 2, 3] for _ in range(1000))))
        targets = {each: tuple(map(BrokerId, (4, 5, 6))) for each in self.ORDERS}
        some = {each: targets[each] for each in self.ORDERS[:100]}
        just_the_request = WriteLimits(max_bytes=len(codecs.encode_reassignment(some)) + 100)
        assert just_the_request.why_too_large(SubmitReassignment(partitions=some)) is None
        assert "znode of topic orders" in (just_the_request.why_no_reassignment(some, cluster) or "")
        fitting = WriteLimits(max_bytes=30_000).choose_fitting_targets(targets, cluster, most=5_000)
        assert 0 < len(fitting) < 1000
        assert WriteLimits(max_bytes=30_000).why_no_reassignment(fitting, cluster) is None
        assert len(WriteLimits().choose_fitting_targets(targets, cluster, most=7)) == 7

"""A namespace that is held to a prefix reaches no topic of others, with any kind of object."""

from collections.abc import Callable
from typing import Any

import pytest

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.zk import paths
from controller_operator.kafka.actions import SubmitPreferredElection, SubmitReassignment
from controller_operator.kafka.requests.cancellations import CancelReassignment
from controller_operator.kafka.requests.elections import ElectUnclean
from controller_operator.plans.outcome import StartMove, Step
from controller_operator.plans.permission import Permission
from controller_operator.resources.conditions import Reason
from simulation.zookeeper import SimulatedZooKeeper
from tests.unit.operator.tenants.operated import Operated, kafka_cluster

TENANT = "payments"
PREFIX = "payments."
HELD: list[dict[str, Any]] = [{"namespace": "platform"}, {"namespace": TENANT, "topicPrefix": PREFIX}]
REF = {"name": "demo", "namespace": "platform"}
MINE = "payments.invoices"

MOVES_OF_OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "a move": ("PartitionReassignment", {"partitions": [{"topic": "orders", "partition": 0, "replicas": [3, 1]}]}),
    "a move of an own topic and of another": (
        "PartitionReassignment",
        {
            "partitions": [
                {"topic": MINE, "partition": 0, "replicas": [3, 1]},
                {"topic": "orders", "partition": 0, "replicas": [3, 1]},
            ]
        },
    ),
    "an election of a partition": ("PreferredElection", {"partitions": [{"topic": "orders", "partition": 0}]}),
    "an election of a topic": ("PreferredElection", {"topics": ["orders"]}),
    "an election of a topic whose name begins almost so": ("PreferredElection", {"topics": ["payments-of-others"]}),
    "an election of the cluster": ("PreferredElection", {"allPartitions": True}),
    "a topic": ("KafkaTopic", {"topicName": "orders", "partitions": 2, "replicationFactor": 1, "adoptionPolicy": "Always"}),
    "a feature": ("FeatureSet", {"features": [{"name": "f", "maxVersionLevel": 1}]}),
}  # fmt: skip


@pytest.fixture
async def zookeeper() -> SimulatedZooKeeper:
    return await kafka_cluster("orders", "payments-of-others", MINE)


@pytest.fixture
async def operated(zookeeper: SimulatedZooKeeper, operating: Callable[..., Operated]) -> Operated:
    operator = operating({"zk": zookeeper})
    await operator.cluster("demo", "zk", HELD, creationTimestamp="2024-01-01T00:00:00Z")
    return operator


def requests(zookeeper: SimulatedZooKeeper) -> dict[str, Any]:
    """Return the znodes that any object could have written."""
    watched = (
        paths.REASSIGN_PARTITIONS,
        paths.PREFERRED_REPLICA_ELECTION,
        paths.topic(TopicName("orders")),
        paths.topic_config(TopicName("orders")),
        paths.topic(TopicName("payments-of-others")),
        paths.topic(TopicName(MINE)),
    )
    deleting = zookeeper.tree.children(paths.DELETE_TOPICS)
    return {path: zookeeper.tree.read(path) for path in watched} | {"deleting": deleting}


@pytest.mark.parametrize("what", MOVES_OF_OTHERS)
async def test_nothing_of_a_held_namespace_is_about_topics_of_others(
    what: str, operated: Operated, zookeeper: SimulatedZooKeeper
) -> None:
    kind, spec = MOVES_OF_OTHERS[what]
    before = requests(zookeeper)
    key = await operated.add(kind, "a", {"clusterRef": REF, **spec}, namespace=TENANT)
    await operated.look(key)
    assert requests(zookeeper) == before
    assert operated.ready(key)["reason"] == Reason.TOPIC_PREFIX_REQUIRED
    assert operated.condition(key, "Stalled") is not None
    assert not operated.status(key).get("partitions"), "nor does its status show anything of them"


async def test_what_it_may_have_it_gets(operated: Operated, zookeeper: SimulatedZooKeeper) -> None:
    move = {"clusterRef": REF, "partitions": [{"topic": MINE, "partition": 0, "replicas": [3, 1]}]}
    key = await operated.add("PartitionReassignment", "a", move, namespace=TENANT)
    before = requests(zookeeper)
    await operated.look(key)
    assert requests(zookeeper) != before
    assert operated.status(key)["phase"] == "Running"


async def test_a_move_that_was_begun_before_the_prefix_is_not_taken_back_for_a_namespace_without_a_say(
    operated: Operated, zookeeper: SimulatedZooKeeper
) -> None:
    await operated.cluster(
        "demo", "zk", [{"namespace": TENANT}], creationTimestamp="2024-01-01T00:00:00Z", generation=2
    )
    move = {"clusterRef": REF, "partitions": [{"topic": "orders", "partition": 0, "replicas": [3, 1]}]}
    key = await operated.add("PartitionReassignment", "a", move, namespace=TENANT)
    await operated.look(key)
    assert (operated.api.peek(key) or {})["metadata"]["finalizers"]
    await operated.cluster("demo", "zk", HELD, creationTimestamp="2024-01-01T00:00:00Z", generation=3)
    asked = requests(zookeeper)
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["kontroller.dev/finalizer"]}
    await operated.add("PartitionReassignment", "a", move, namespace=TENANT, **going)
    await operated.look(key)
    assert requests(zookeeper) == asked
    assert operated.api.peek(key) is None, "and the namespace does not hang on it"


async def test_a_plan_that_reaches_further_than_its_object_said_is_not_carried_out(
    operated: Operated, zookeeper: SimulatedZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds for any source of a planner's partitions: here it takes all topics, although the object names its own
    one."""
    monkeypatch.setattr("controller_operator.plans.election.rows.scope", lambda _election, view: [
        TopicPartition(name, PartitionId(0)) for name in view.topics
    ])  # fmt: skip
    election = {"clusterRef": REF, "topics": [MINE]}
    key = await operated.add("PreferredElection", "a", election, namespace=TENANT)
    await operated.look(key)
    assert zookeeper.tree.read(paths.PREFERRED_REPLICA_ELECTION) is None
    assert operated.ready(key)["reason"] == Reason.TOPIC_PREFIX_REQUIRED
    assert not operated.status(key).get("partitions")


async def test_an_object_of_another_namespace_is_no_move_of_the_topic_whose_uid_it_names(operated: Operated) -> None:
    """Otherwise it would hold up every move of that topic."""
    spec = {"clusterRef": REF, "topicName": "orders", "partitions": 1, "replicaAssignment": [[1, 2]]}
    theirs = await operated.add("KafkaTopic", "orders", spec, namespace="platform")
    await operated.look(theirs)
    owner = {
        "apiVersion": "kontroller.dev/v1alpha1",
        "kind": "KafkaTopic",
        "name": "orders",
        "uid": (operated.api.peek(theirs) or {})["metadata"]["uid"],
    }
    move = {"clusterRef": REF, "partitions": [{"topic": "payments.nowhere", "partition": 0, "replicas": [1]}]}
    await operated.add("PartitionReassignment", "a", move, namespace=TENANT, ownerReferences=[owner])
    await operated.add(
        "KafkaTopic", "orders", {**spec, "replicaAssignment": [[3, 1]]}, namespace="platform", generation=2
    )
    await operated.look(theirs)
    moves = operated.api.all("PartitionReassignment")
    assert sorted(each["metadata"]["namespace"] for each in moves) == [TENANT, "platform"]


class TestWhoDecides:
    """Two KafkaClusters for one Kafka cluster: the oldest one with a list decides which namespaces may use it."""

    MOVE: dict[str, Any] = MOVES_OF_OTHERS["a move"][1]

    async def test_a_kafkacluster_of_ones_own_gives_no_more_than_that_of_the_platform(
        self, operated: Operated, zookeeper: SimulatedZooKeeper
    ) -> None:
        await operated.cluster("mine", "zk/", None, namespace=TENANT)
        before = requests(zookeeper)
        for ref in ({"name": "mine"}, REF):
            name = f"a-{ref['name']}"
            key = await operated.add("PartitionReassignment", name, {"clusterRef": ref, **self.MOVE}, namespace=TENANT)
            await operated.look(key)
            assert operated.ready(key)["reason"] == Reason.TOPIC_PREFIX_REQUIRED
        assert requests(zookeeper) == before

    async def test_nor_anything_to_a_namespace_that_the_list_does_not_have(
        self, operated: Operated, zookeeper: SimulatedZooKeeper
    ) -> None:
        await operated.cluster("mine", "zk", [{"namespace": "*"}], namespace="elsewhere")
        before = requests(zookeeper)
        move = {"clusterRef": {"name": "mine"}, **self.MOVE}
        key = await operated.add("PartitionReassignment", "a", move, namespace="elsewhere")
        await operated.look(key)
        assert operated.ready(key)["reason"] == Reason.NAMESPACE_NOT_ALLOWED
        assert "platform/demo" in operated.ready(key)["message"]
        assert requests(zookeeper) == before

    async def test_a_younger_list_takes_nothing_from_the_platform(
        self, operated: Operated, zookeeper: SimulatedZooKeeper
    ) -> None:
        await operated.cluster("mine", "zk", [{"namespace": TENANT}], namespace=TENANT)
        before = requests(zookeeper)
        key = await operated.add("PartitionReassignment", "a", {"clusterRef": REF, **self.MOVE}, namespace="platform")
        await operated.look(key)
        assert requests(zookeeper) != before


class TestSteps:
    """Each step knows itself which topics it reaches."""

    HELD = Permission(namespace=TENANT, prefixes=(PREFIX,))
    FOREIGN = TopicPartition(TopicName("orders"), PartitionId(0))

    @pytest.mark.parametrize(
        "step",
        [
            SubmitReassignment(partitions={FOREIGN: (BrokerId(1),)}),
            SubmitPreferredElection(partitions=(FOREIGN,)),
            CancelReassignment(partitions=(FOREIGN,)),
            ElectUnclean(partitions=(FOREIGN,)),
            StartMove(name="m", partitions=((FOREIGN, (BrokerId(1),)),)),
        ],
    )
    def test_one_that_reaches_a_topic_of_others_is_refused(self, step: Step) -> None:
        assert self.HELD.refuse_steps([step]) is not None
        assert Permission(namespace=TENANT).refuse_steps([step]) is None

    def test_every_prefix_of_several_is_to_hold(self) -> None:
        def make_steps(topic: str) -> list[Step]:
            return [SubmitPreferredElection(partitions=(TopicPartition(TopicName(topic), PartitionId(0)),))]

        both = Permission(namespace=TENANT, prefixes=("pay", PREFIX))
        assert both.refuse_steps(make_steps("pay")) is not None
        assert both.refuse_steps(make_steps(MINE)) is None

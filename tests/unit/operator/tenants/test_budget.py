"""A namespace with a budget grows only within it: older objects go first, and what is there stays."""

from collections.abc import Callable
from typing import Any

import pytest

from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from controller_operator.admission.judge import Judge
from controller_operator.kubernetes.object_store import Key
from controller_operator.plans.consent.budget import Allowance, Allowances, show_use
from controller_operator.reconciling.access import Granted
from controller_operator.resources.budget import Budget
from controller_operator.resources.conditions import Reason
from simulation.zookeeper import SimulatedZooKeeper
from tests.unit.operator.clusters import healthy, raw, view
from tests.unit.operator.tenants.operated import Operated, kafka_cluster

REF = {"name": "demo", "namespace": "platform"}
SINCE = "2024-01-01T00:00:00Z"


@pytest.fixture
async def zookeeper() -> SimulatedZooKeeper:
    return await kafka_cluster("orders", "shop.old", "shop.older")


Operate = Callable[..., Operated]


async def operate(
    operating: Operate, zookeeper: SimulatedZooKeeper, prefix: str | None = None, **budget: Any
) -> Operated:
    operator = operating({"zk": zookeeper})
    await set_budget(operator, prefix, **budget)
    return operator


async def set_budget(operator: Operated, prefix: str | None = None, **budget: Any) -> Key:
    entry: dict[str, Any] = {"namespace": "shop", "budget": budget}
    if prefix is not None:
        entry["topicPrefix"] = prefix
    allowed = [{"namespace": "platform"}, entry]
    return await operator.cluster("demo", "zk", allowed, creationTimestamp=SINCE)


async def write(operator: Operated, name: str, created: int = 0, **spec: Any) -> Key:
    """Apply a KafkaTopic and look at it. `created`: the year of its creation after 2024."""
    whole = {"clusterRef": REF, "topicName": name, "partitions": 1, "replicationFactor": 1, **spec}
    key = await add(operator, name, created, whole)
    await operator.look(key)
    return key


async def add(operator: Operated, name: str, created: int, spec: dict[str, Any]) -> Key:
    """Apply a KafkaTopic without a look at it."""
    since = f"{2024 + created}-01-01T00:00:00Z"
    return await operator.add("KafkaTopic", name.replace(".", "-"), spec, namespace="shop", creationTimestamp=since)


def is_refused(operator: Operated, key: Key) -> bool:
    return bool(operator.ready(key)["reason"] == Reason.BUDGET_EXCEEDED)


async def test_further_topics_are_refused_and_the_message_says_what_to_do(
    operating: Operate, zookeeper: SimulatedZooKeeper
) -> None:
    operator = await operate(operating, zookeeper, maxTopics=2)
    written = [await write(operator, name) for name in ("a", "b", "c")]
    assert [is_refused(operator, key) for key in written] == [False, False, True]
    assert operator.ready(written[2])["message"] == (
        "namespace shop has 2 of 2 topics: change the spec, or let the owner of the KafkaCluster raise the budget in "
        "spec.allowedNamespaces"
    )
    assert operator.condition(written[2], "Stalled") is not None
    await set_budget(operator, maxTopics=3)
    await operator.look(written[2])
    assert not is_refused(operator, written[2])


async def test_partitions_of_all_topics_together_are_limited(operating: Operate, zookeeper: SimulatedZooKeeper) -> None:
    operator = await operate(operating, zookeeper, maxPartitions=5)
    first = await write(operator, "a", partitions=3)
    assert is_refused(operator, await write(operator, "b", partitions=50_000))
    assert not is_refused(operator, await write(operator, "c", partitions=1))
    await wait_for_topic(operator, "c")
    await write(operator, "a", partitions=5)
    assert operator.ready(first)["message"].startswith(
        "namespace shop has 4 of 5 partitions, and topic a would get 2 more: "
    )
    await write(operator, "a", partitions=4)
    assert not is_refused(operator, first)


async def wait_for_topic(operator: Operated, name: str) -> None:
    """Wait until the operator sees a topic."""
    cluster = operator.store.get(Key("KafkaCluster", "platform", "demo"))
    assert cluster is not None
    assert cluster.resource is not None
    while True:
        grant = operator.access.find_grant(cluster.resource)
        if isinstance(grant, Granted) and name in grant.view.topics:
            return
        await operator.wait_for_change()


async def test_an_older_object_that_asks_for_too_much_takes_nothing_from_younger_ones(
    operating: Operate, zookeeper: SimulatedZooKeeper
) -> None:
    operator = await operate(operating, zookeeper, maxPartitions=5)
    assert is_refused(operator, await write(operator, "greedy", created=0, partitions=6))
    assert not is_refused(operator, await write(operator, "modest", created=1, partitions=5))


async def test_of_two_that_do_not_fit_together_the_older_one_is_created_whoever_is_looked_at_first(
    operating: Operate, zookeeper: SimulatedZooKeeper
) -> None:
    operator = await operate(operating, zookeeper, maxPartitions=5)
    spec = {"clusterRef": REF, "partitions": 3, "replicationFactor": 1}
    older = await add(operator, "older", 0, spec)
    younger = await add(operator, "younger", 1, spec)
    await operator.look(younger)
    assert is_refused(operator, younger)
    await operator.look(older)
    assert not is_refused(operator, older)


@pytest.mark.parametrize("held", ["paused", "of no meaning"])
async def test_an_older_object_that_cannot_grow_reserves_nothing(
    operating: Operate, zookeeper: SimulatedZooKeeper, held: str
) -> None:
    operator = await operate(operating, zookeeper, maxPartitions=5)
    wrong = {} if held == "paused" else {"config": {"retention.ms": "soon"}}
    spec = {"clusterRef": REF, "partitions": 3, "replicationFactor": 1, **wrong}
    paused = {"annotations": {"kontroller.dev/pause": "true"}} if held == "paused" else {}
    await operator.look(
        await operator.add("KafkaTopic", "held", spec, namespace="shop", creationTimestamp=SINCE, **paused)
    )
    assert not is_refused(operator, await write(operator, "younger", created=1, partitions=3))


async def test_topics_that_are_there_stay_and_may_change_when_the_budget_is_smaller_than_them(
    operating: Operate, zookeeper: SimulatedZooKeeper
) -> None:
    operator = await operate(operating, zookeeper)
    key = await write(operator, "a", partitions=4)
    await wait_for_topic(operator, "a")
    await set_budget(operator, maxPartitions=2, maxTopics=0, minReplicationFactor=2)
    await operator.look(key)
    assert operator.ready(key)["reason"] not in (Reason.BUDGET_EXCEEDED, None)
    await write(operator, "a", partitions=4, config={"retention.ms": "1000"})
    assert not is_refused(operator, key)


async def test_a_kafkatopic_over_the_budget_is_looked_at_again_after_30_s(
    operating: Operate, zookeeper: SimulatedZooKeeper
) -> None:
    operator = await operate(operating, zookeeper, maxTopics=0)
    key = await add(operator, "a", 0, {"clusterRef": REF, "partitions": 1, "replicationFactor": 1})
    result = await operator.look(key)
    assert is_refused(operator, key)
    assert result.look_again_in_s == 30


async def test_the_prefix_of_all_namespaces_belongs_to_none_of_them(
    operating: Operate, zookeeper: SimulatedZooKeeper
) -> None:
    operator = operating({"zk": zookeeper})
    entry = {"namespace": "*", "topicPrefix": "shop.", "budget": {"maxTopics": 1}}
    await operator.cluster("demo", "zk", [entry], creationTimestamp=SINCE)
    assert not is_refused(operator, await write(operator, "shop.new")), "shop.old and shop.older are of no object"
    assert is_refused(operator, await write(operator, "shop.newer"))


@pytest.mark.parametrize(("prefix", "topics"), [(None, 0), ("ord", 1)])
def test_a_topic_that_stays_after_its_object_counts_only_with_a_prefix(prefix: str | None, topics: int) -> None:
    allowance = Allowance(namespace="shop", budget=Budget(), prefix=prefix)
    assert show_use(allowance, (), view(healthy([1, 2]))).topics == topics


async def test_with_a_prefix_all_topics_that_have_it_count(operating: Operate, zookeeper: SimulatedZooKeeper) -> None:
    operator = await operate(operating, zookeeper, "shop.", maxTopics=2)
    key = await write(operator, "shop.new")
    assert "has 2 of 2 topics" in operator.ready(key)["message"]


@pytest.mark.parametrize(
    ("factor", "is_allowed"), [(1, False), (2, True), (3, False)], ids=["too few", "enough", "too many"]
)
async def test_topics_get_a_number_of_replicas_within_the_range(
    operating: Operate, zookeeper: SimulatedZooKeeper, factor: int, is_allowed: bool
) -> None:
    operator = await operate(operating, zookeeper, minReplicationFactor=2, maxReplicationFactor=2)
    key = await write(operator, "a", replicationFactor=factor)
    assert is_refused(operator, key) is not is_allowed
    if not is_allowed:
        assert f"must get 2 to 2 replicas, unlike {factor}" in operator.ready(key)["message"]


@pytest.mark.parametrize(
    ("config", "refusal"),
    [
        ({"retention.ms": "3600000"}, None),
        ({"cleanup.policy": "compact"}, None),
        ({"retention.ms": "-1"}, "retention.ms of namespace shop must be at most 86400000"),
        ({"retention.ms": "86400001"}, "retention.ms of namespace shop must be at most 86400000"),
        ({"retention.ms": "1"}, "retention.ms of namespace shop must be at least 1000"),
        (
            {"segment.bytes": "1000000"},
            "namespace shop may not set segment.bytes in config, but cleanup.policy, retention",
        ),
    ],
)
async def test_configuration_is_limited_to_the_keys_and_their_bounds(
    operating: Operate, zookeeper: SimulatedZooKeeper, config: dict[str, str], refusal: str | None
) -> None:
    bounds = [{"key": "retention.ms", "min": 1000, "max": 86_400_000}, {"key": "cleanup.policy"}]
    operator = await operate(operating, zookeeper, configs=bounds)
    key = await write(operator, "a", config=config)
    assert is_refused(operator, key) is (refusal is not None)
    assert (refusal or "") in operator.ready(key)["message"]


async def test_further_moves_wait_until_one_ends(operating: Operate, zookeeper: SimulatedZooKeeper) -> None:
    operator = await operate(operating, zookeeper, maxMoves=1)

    async def move(name: str, topic: str) -> Key:
        partitions = [{"topic": topic, "partition": 0, "replicas": [3, 1]}]
        spec = {"clusterRef": REF, "partitions": partitions}
        key = await operator.add("PartitionReassignment", name, spec, namespace="shop")
        await operator.look(key)
        return key

    await move("first", "orders")
    second = await move("second", "shop.old")
    assert operator.ready(second)["reason"] == Reason.WAITING_FOR_OTHER_REASSIGNMENT
    assert operator.ready(second)["message"] == (
        "namespace shop may have 1 moves at once: this one begins when another one ends"
    )


def test_a_move_may_keep_a_number_of_replicas_outside_of_the_range_and_not_change_to_one() -> None:
    allowances = Allowances(each=(Allowance(namespace="shop", budget=Budget(min_replication_factor=3)),))
    cluster = view(healthy([1, 2]))
    tp = TopicPartition(TopicName("orders"), PartitionId(0))
    replicas = {number: tuple(cluster.brokers)[:number] for number in (1, 2, 3)}
    assert [allowances.refuse_replicas({tp: replicas[number]}, cluster) is None for number in (1, 2, 3)] == [
        False,
        True,
        True,
    ]


async def test_the_status_of_the_cluster_shows_the_use_of_each_namespace_with_a_budget(
    operating: Operate, zookeeper: SimulatedZooKeeper
) -> None:
    operator = await operate(operating, zookeeper, maxTopics=2, maxPartitions=10)
    await write(operator, "a", partitions=4)
    cluster = Key("KafkaCluster", "platform", "demo")
    await operator.look(cluster)
    assert operator.status(cluster)["namespaces"] == [
        {"namespace": "shop", "topics": 1, "maxTopics": 2, "partitions": 4, "maxPartitions": 10}
    ]


async def test_the_webhook_refuses_what_exceeds_the_budget(operating: Operate, zookeeper: SimulatedZooKeeper) -> None:
    operator = await operate(operating, zookeeper, maxPartitions=5, maxReplicationFactor=1)

    async def clusters() -> Any:
        return operator.access

    judge = Judge(operator.store, clusters, patience_s=0.5, are_callers_known=True)
    partitions = [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}]
    move = raw("PartitionReassignment", {"clusterRef": REF, "partitions": partitions}, name="asked", uid="uid-move")
    assert str((await judge.judge(move)).refusal).startswith(
        "BudgetExceeded: topics of namespace shop must get 1 to 1 replicas, unlike 3"
    )
    spec = {"clusterRef": REF, "topicName": "new", "partitions": 6, "replicationFactor": 1}
    judgement = await judge.judge(raw("KafkaTopic", spec, name="asked", uid="uid-asked"))
    assert judgement.refusal is not None
    assert judgement.refusal.startswith(
        "BudgetExceeded: namespace shop has 0 of 5 partitions, and topic new would get 6 more"
    )
    assert (
        await judge.judge(raw("KafkaTopic", {**spec, "partitions": 5}, name="asked", uid="uid-asked"))
    ).refusal is None

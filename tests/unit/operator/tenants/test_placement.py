"""KafkaClusters, KafkaTopics and moves agree about the places of replicas, even if they refer to different
KafkaClusters."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from controller_operator.kubernetes.object_store import Key
from controller_operator.plans.outcome import Context
from controller_operator.reconciling.access import Granted
from tests.unit.operator.clusters import NOW
from tests.unit.operator.tenants.operated import Operated, kafka_cluster

EVERYBODY = [{"namespace": "*"}]
OLD, YOUNG = "2024-01-01T00:00:00Z", "2024-06-01T00:00:00Z"


def make_spec(cluster: str = "demo", **spec: Any) -> dict[str, Any]:
    return {"clusterRef": {"name": cluster, "namespace": "platform"}, **spec}


def make_pin(*replicas: Sequence[int], cluster: str = "demo", **spec: Any) -> dict[str, Any]:
    return make_spec(cluster, replicaAssignment=[list(each) for each in replicas], driftPolicy="Enforce", **spec)


def make_move(*replicas: int, cluster: str = "demo") -> dict[str, Any]:
    return make_spec(cluster, partitions=[{"topic": "orders", "partition": 0, "replicas": list(replicas)}])


@pytest.fixture
async def operated(operating: Callable[..., Operated]) -> Operated:
    """One Kafka cluster with two KafkaClusters for it, and another one; each has the topic `orders` on brokers 1 and 2."""
    zookeeper, other = await kafka_cluster("orders", "bills"), await kafka_cluster("orders", cluster_id="another")
    operator = operating({"zk": zookeeper, "zk-alias": zookeeper, "other": other})
    for name, host in {"demo": "zk", "alias": "zk-alias", "elsewhere": "other"}.items():
        await operator.cluster(name, host, EVERYBODY, creationTimestamp=OLD if name == "demo" else YOUNG)
    return operator


async def mark(operated: Operated, *brokers: int, name: str = "demo", host: str = "zk") -> Key:
    """Says on a KafkaCluster which brokers are to be removed."""
    spec = {"zookeeper": {"connect": host}, "allowedNamespaces": EVERYBODY, "brokersToRemove": list(brokers)}
    created = OLD if name == "demo" else YOUNG
    key = await operated.add("KafkaCluster", name, spec, namespace="platform", creationTimestamp=created, generation=2)
    await operated.look(key)
    return key


async def read_said(operated: Operated, kind: str, name: str, spec: dict[str, Any], **metadata: Any) -> str:
    key = await operated.add(kind, name, spec, **metadata)
    await operated.look(key)
    ready = operated.ready(key)
    return f"{ready['reason']}: {ready['message']}"


async def test_a_drain_is_refused_by_a_topic_that_pins_the_broker(operated: Operated) -> None:
    assert (await read_said(operated, "KafkaTopic", "orders", make_pin([1, 2]))).startswith("Reconciled")
    drained = await read_said(operated, "PartitionReassignment", "drain-2", make_spec("alias", drainBrokers=[2]))
    assert drained.startswith("PinnedByTopic: KafkaTopic shop/orders would move replicas back to broker 2 ")


async def test_a_topic_that_a_budget_refuses_hinders_no_drain(operated: Operated) -> None:
    allowed: list[dict[str, Any]] = [{"namespace": "shop"}, {"namespace": "tenant", "budget": {"maxTopics": 0}}]
    await operated.cluster("demo", "zk", allowed, creationTimestamp=OLD, generation=2)
    refused = await read_said(operated, "KafkaTopic", "ghost", make_pin([1, 2]), namespace="tenant")
    assert refused.startswith("BudgetExceeded")
    drained = await read_said(operated, "PartitionReassignment", "drain-2", make_spec(drainBrokers=[2]))
    assert drained.startswith("Progressing")


@pytest.mark.parametrize(("policy", "pinned"), [("Always", ["orders"]), ("Never", [])])
async def test_a_rebalance_leaves_out_topics_that_their_objects_have_adopted(
    operated: Operated, policy: str, pinned: list[str]
) -> None:
    await read_said(operated, "KafkaTopic", "orders", make_pin([1, 2], adoptionPolicy=policy))
    plan = operated.store.get(await operated.add("RebalancePlan", "balance", make_spec(mode="rebalance")))
    assert plan is not None
    assert plan.resource is not None
    grant = operated.access.find_grant(plan.resource)
    assert isinstance(grant, Granted)
    situation = operated.reconciler._situations.find(plan.resource, grant, Context(now=NOW))
    assert situation.around.find_pinned() == pinned


@pytest.mark.parametrize(
    "spec",
    [
        make_pin([1, 2], cluster="elsewhere"),
        {**make_pin([1, 2]), "driftPolicy": "Report"},
        {**make_pin([1, 2]), "driftPolicy": "Ignore"},
        make_pin([1, 2], topicName="bills"),
        make_spec(partitions=1, replicationFactor=2),
    ],
    ids=["another cluster", "reported", "ignored", "another topic", "only its number"],
)
async def test_a_move_is_refused_by_no_topic_that_leaves_it_alone(operated: Operated, spec: dict[str, Any]) -> None:
    assert (await read_said(operated, "KafkaTopic", "pinning", {"topicName": "orders", **spec})).startswith(
        "Reconciled"
    )
    assert (await read_said(operated, "PartitionReassignment", "move", make_move(3, 1))).startswith("Progressing")


async def test_a_move_is_refused_by_the_topic_alone_that_has_it(operated: Operated) -> None:
    await read_said(
        operated,
        "KafkaTopic",
        "owner",
        make_spec(topicName="orders", partitions=1, replicationFactor=2),
        creationTimestamp=OLD,
    )
    younger = make_pin([1, 2], topicName="orders")
    assert (await read_said(operated, "KafkaTopic", "younger", younger, creationTimestamp=YOUNG)).startswith(
        "ResourceConflict"
    )
    assert (await read_said(operated, "PartitionReassignment", "move", make_move(3, 1))).startswith("Progressing")


async def test_a_move_goes_on_when_the_topic_says_the_same(operated: Operated) -> None:
    await read_said(operated, "KafkaTopic", "orders", make_pin([1, 2]))
    refused = await read_said(operated, "PartitionReassignment", "move", make_move(3, 1))
    assert refused.startswith("PinnedByTopic: KafkaTopic shop/orders would move orders-0 back")
    await operated.add("KafkaTopic", "orders", {**make_pin([1, 2]), "driftPolicy": "Report"}, generation=2)
    assert (await read_said(operated, "PartitionReassignment", "move", make_move(3, 1))).startswith("Progressing")


async def test_the_move_that_a_topic_makes_itself_is_not_refused_by_it(operated: Operated) -> None:
    key = await operated.add("KafkaTopic", "orders", make_pin([3, 1], adoptionPolicy="Always"))
    await operated.look(key)
    (move,) = [each for each in operated.api.objects if each.kind == "PartitionReassignment"]
    operated.store.put(operated.api.peek(move) or {})
    await operated.add("KafkaTopic", "orders", make_pin([3, 2], adoptionPolicy="Always"), generation=2)
    await operated.look(move)
    assert operated.ready(move)["reason"] == "Progressing"


async def test_what_one_kafka_cluster_marks_holds_for_the_objects_of_the_other(operated: Operated) -> None:
    await mark(operated, 3)
    refused = await read_said(operated, "PartitionReassignment", "move", make_move(3, 1, cluster="alias"))
    assert refused.startswith("BrokerToBeRemoved: orders-0 would get replicas on broker 3, which is to be removed")
    await mark(operated)
    assert (await read_said(operated, "PartitionReassignment", "move", make_move(3, 1, cluster="alias"))).startswith(
        "Progressing"
    )


async def test_whoever_makes_a_younger_kafka_cluster_marks_no_brokers_for_others(operated: Operated) -> None:
    await mark(operated, 3, name="alias", host="zk-alias")
    assert (await read_said(operated, "PartitionReassignment", "move", make_move(3, 1))).startswith("Progressing")


async def test_a_reported_move_is_named_by_the_topic(operated: Operated) -> None:
    key = await operated.add("KafkaTopic", "orders", {**make_pin([1, 2]), "driftPolicy": "Report"})
    await operated.look(key)
    await read_said(operated, "PartitionReassignment", "orders-to-3", make_move(3, 1, cluster="alias"))
    await operated.look(key)
    assert operated.ready(key)["message"].startswith("replicas of 1 partitions move")
    assert (operated.condition(key, "Drifted") or {})["message"].startswith(
        "moved by kpr/orders-to-3 and kept: replicaAssignment[0]: "
    )


async def test_the_kafka_cluster_says_whether_the_broker_can_be_stopped(operated: Operated) -> None:
    key = await mark(operated, 2, 3)
    rows = {each["id"]: each.get("removal") for each in operated.status(key)["brokers"]}
    assert rows == {1: None, 2: "HoldsReplicas", 3: "Empty"}
    assert (
        "broker 3 to be removed has no replicas and gets none: safe to stop for good" in operated.ready(key)["message"]
    )

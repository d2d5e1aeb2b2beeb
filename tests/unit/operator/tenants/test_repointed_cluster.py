"""A KafkaCluster leads to another Kafka cluster: nothing is done there for its objects until a person accepts it."""

from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from typing import Any

import pytest

from controller_core.model.ids import PartitionId, TopicName
from controller_core.zk import codecs, paths
from controller_operator.kubernetes.object_store import KIND_CLASSES, Key, Raw
from controller_operator.resources.common import FINALIZER
from controller_operator.resources.conditions import Reason
from simulation.zookeeper import SimulatedZooKeeper
from tests.unit.operator.clusters import raw
from tests.unit.operator.tenants.operated import Operated, kafka_cluster

ACCEPT = {"kontroller.dev/accept-cluster": "second"}
CLUSTER = Key("KafkaCluster", "platform", "demo")
REF = {"clusterRef": {"name": "demo", "namespace": "platform"}}
ORDERS = {**REF, "partitions": 1, "replicaAssignment": [[1, 2]]}
MOVE = {**REF, "partitions": [{"topic": "bills", "partition": 0, "replicas": [3, 1]}]}
SPECS: Mapping[str, dict[str, Any]] = {
    "KafkaTopic": ORDERS,
    "PartitionReassignment": MOVE,
    "PreferredElection": {**REF, "allPartitions": True},
    "RebalancePlan": {**REF, "mode": "rebalance"},
    "FeatureSet": {**REF, "features": [{"name": "f", "maxVersionLevel": 1}]},
}
EVERYBODY = [{"namespace": "*"}]
Repoint = Callable[[Operated], Awaitable[Key]]


@pytest.fixture
async def first() -> SimulatedZooKeeper:
    return await kafka_cluster("bills", cluster_id="first")


@pytest.fixture
async def second() -> SimulatedZooKeeper:
    return await kafka_cluster("bills", cluster_id="second", brokers=4)


@pytest.fixture
async def operated(
    first: SimulatedZooKeeper, second: SimulatedZooKeeper, operating: Callable[..., Operated]
) -> Operated:
    made = operating({"first": first, "second": second})
    await made.cluster("demo", "first", EVERYBODY)
    return made


async def edit(operated: Operated, connect: str = "second", **metadata: Any) -> Key:
    """Writes another address into the KafkaCluster, and waits until it has been read."""
    known = (operated.api.peek(CLUSTER) or {}).get("metadata", {})
    uid = {"uid": known["uid"]} if known else {}
    return await look_until_read(operated, await operated.cluster("demo", connect, EVERYBODY, **uid, **metadata))


async def create_again(operated: Operated, connect: str = "second", **metadata: Any) -> Key:
    """Deletes the KafkaCluster, and creates it with another address."""
    operated.store.remove(CLUSTER)
    operated.api.objects.pop(CLUSTER)
    return await edit(operated, connect, uid="another", **metadata)


async def look_until_read(operated: Operated, key: Key) -> Key:
    """Looks at an object until its cluster has been read."""
    while (await operated.reconciler.reconcile(key)).word == "withheld":
        await operated.wait_for_change()
    return key


both_ways = pytest.mark.parametrize("repoint", [edit, create_again], ids=["edited", "created again"])


async def add_topic(operated: Operated, **spec: Any) -> Key:
    key = await operated.add("KafkaTopic", "orders", {**ORDERS, **spec})
    await operated.look(key)
    return key


async def accept(operated: Operated, key: Key, spec: Mapping[str, Any]) -> None:
    await operated.add(key.kind, key.name, spec, namespace=key.namespace, annotations=ACCEPT)


async def delete(operated: Operated, key: Key) -> None:
    await operated.api.remove(key)
    operated.store.put(operated.api.peek(key) or {})
    await operated.look(key)


def has_topic(zookeeper: SimulatedZooKeeper, name: str = "orders") -> bool:
    return zookeeper.tree.read(paths.topic(TopicName(name))) is not None


def events(operated: Operated, reason: str) -> list[Raw]:
    return [each for each in operated.api.events if each["reason"] == reason]


@both_ways
async def test_a_topic_is_not_created_in_the_other_cluster(
    operated: Operated, second: SimulatedZooKeeper, repoint: Repoint
) -> None:
    key = await add_topic(operated)
    assert operated.status(key)["clusterId"] == "first"
    before, written = operated.status(key), second.tree.zxid
    await repoint(operated)
    for each in (CLUSTER, key, key):
        await operated.look(each)
        assert operated.ready(each)["reason"] == Reason.CLUSTER_CHANGED
        assert operated.condition(each, "Stalled") is not None
    after = operated.status(key)
    assert {**after, "conditions": ()} == {**before, "conditions": ()}, "what is known of the first cluster stays"
    assert second.tree.zxid == written
    assert events(operated, "TopicDeleted") == []


@pytest.mark.parametrize("kind", SPECS)
async def test_nothing_is_done_for_any_kind(operated: Operated, second: SimulatedZooKeeper, kind: str) -> None:
    known = raw(kind, SPECS[kind], status={"clusterId": "first"}, name="known")
    operated.store.put(await operated.api.keep(known))
    await create_again(operated)
    written, key = second.tree.zxid, Key(kind, "shop", "known")
    result = await operated.look(key)
    assert (result.word, operated.ready(key)["reason"]) == ("settled", Reason.CLUSTER_CHANGED)
    assert second.tree.zxid == written
    assert operated.status(key)["clusterId"] == "first"


def test_every_kind_is_tried() -> None:
    assert {*SPECS, "KafkaCluster"} == set(KIND_CLASSES)


@both_ways
async def test_a_deleted_object_does_not_delete_the_topic_of_the_other_cluster(
    operated: Operated, second: SimulatedZooKeeper, repoint: Repoint
) -> None:
    key = await add_topic(operated, topicName="bills", adoptionPolicy="Always", deletionPolicy="Delete")
    assert (operated.api.peek(key) or {})["metadata"]["finalizers"] == [FINALIZER]
    await repoint(operated)
    await delete(operated, key)
    assert operated.api.peek(key) is None
    assert second.tree.children(paths.DELETE_TOPICS) == ()
    (event,) = (each for each in events(operated, "ClusterChanged") if each["involvedObject"]["kind"] == key.kind)
    assert (event["type"], event["message"]) == (
        "Warning",
        "the topic, if there is one, stays in Kafka cluster first: KafkaCluster platform/demo leads to Kafka cluster second"
        " now, and nothing was deleted there for this object",
    )


async def test_a_deleted_object_that_others_hold_is_left_to_them(operated: Operated) -> None:
    key = await add_topic(operated)
    await create_again(operated)
    held = {**(operated.api.peek(key) or {})}
    await operated.api.keep({**held, "metadata": {**held["metadata"], "finalizers": ["example.com/backup"]}})
    await delete(operated, key)
    assert (operated.api.peek(key) or {})["metadata"]["finalizers"] == ["example.com/backup"]
    assert {each["involvedObject"]["kind"] for each in events(operated, "ClusterChanged")} == {"KafkaCluster"}


async def test_an_object_that_is_deleted_after_the_acceptance_deletes_nothing_in_either_cluster(
    operated: Operated, first: SimulatedZooKeeper, second: SimulatedZooKeeper
) -> None:
    key = await add_topic(operated, topicName="bills", adoptionPolicy="Always", deletionPolicy="Delete")
    await edit(operated, annotations=ACCEPT)
    await delete(operated, key)
    assert operated.api.peek(key) is None
    assert [each.tree.children(paths.DELETE_TOPICS) for each in (first, second)] == [(), ()]


async def test_the_kafka_cluster_counts_the_objects_that_wait(operated: Operated) -> None:
    await add_topic(operated)
    await create_again(operated)
    message = operated.ready(CLUSTER)["message"]
    assert (
        "second is Kafka cluster second, and 1 object that refers to it was carried out in Kafka cluster first"
        in message
    )
    assert "clusterId" not in operated.status(CLUSTER), "a corrected address needs no acceptance"


async def test_a_corrected_address_needs_no_acceptance(operated: Operated, first: SimulatedZooKeeper) -> None:
    key = await add_topic(operated)
    before = operated.status(key)
    await create_again(operated)
    await operated.look(key)
    written = first.tree.zxid
    await edit(operated, "first")
    for each in (key, CLUSTER):
        await operated.look(each)
        assert operated.ready(each)["reason"] != Reason.CLUSTER_CHANGED
        assert operated.status(each)["clusterId"] == "first"
    assert (operated.status(key)["topicId"], first.tree.zxid) == (before["topicId"], written)


async def test_an_object_that_a_person_accepts_begins_in_the_other_cluster_as_if_it_were_new(
    operated: Operated, second: SimulatedZooKeeper
) -> None:
    key = await add_topic(operated)
    before = operated.status(key)
    await create_again(operated)
    await operated.look(key)
    await accept(operated, key, ORDERS)
    await operated.look(key)
    assert has_topic(second)
    after = operated.status(key)
    assert after["clusterId"] == "second"
    assert operated.condition(key, "Stalled") is None
    assert after["topicId"] != before["topicId"]
    assert events(operated, "TopicDeleted") == [], "it is alive in the first cluster"
    await operated.look(CLUSTER)
    assert operated.status(CLUSTER)["clusterId"] == "second"


@both_ways
async def test_a_kafka_cluster_accepts_for_all_of_its_objects(
    operated: Operated, second: SimulatedZooKeeper, repoint: Repoint
) -> None:
    keys = [
        await add_topic(operated),
        await operated.add("KafkaTopic", "more", {**ORDERS, "topicName": "more"}),
    ]
    await operated.look(keys[1])
    await repoint(operated)
    await edit(operated, annotations=ACCEPT)
    for key in keys:
        await operated.look(key)
    assert has_topic(second)
    assert has_topic(second, "more")
    await operated.look(CLUSTER)
    assert operated.status(CLUSTER)["clusterId"] == "second"
    assert operated.ready(CLUSTER)["reason"] != Reason.CLUSTER_CHANGED
    assert events(operated, "BrokersCame") == [], "they are another cluster's"


async def test_an_acceptance_that_names_a_third_cluster_accepts_nothing(
    operated: Operated, second: SimulatedZooKeeper
) -> None:
    key = await add_topic(operated)
    await edit(operated, annotations={"kontroller.dev/accept-cluster": "third"})
    await operated.look(key)
    assert operated.ready(key)["reason"] == Reason.CLUSTER_CHANGED
    assert not has_topic(second)


async def test_an_object_of_an_earlier_release_takes_the_present_cluster(
    operated: Operated, first: SimulatedZooKeeper, operating: Callable[..., Operated]
) -> None:
    key = await add_topic(operated, topicName="bills", adoptionPolicy="Always")
    written, upgraded = first.tree.zxid, operating({"first": first})
    for each in (CLUSTER, key):
        known = deepcopy(operated.api.peek(each) or {})
        known["status"].pop("clusterId" if each == key else "nothing", None)
        upgraded.store.put(await upgraded.api.keep(known))
    await look_until_read(upgraded, key)
    assert upgraded.status(key)["clusterId"] == "first"
    assert (upgraded.api.events, first.tree.zxid) == ([], written)


async def test_an_object_without_a_status_is_carried_out_in_the_cluster_that_answers(
    operated: Operated, second: SimulatedZooKeeper
) -> None:
    """A backup brings objects back without it."""
    await add_topic(operated)
    await create_again(operated)
    restored = await operated.add("KafkaTopic", "restored", ORDERS)
    await operated.look(restored)
    assert has_topic(second, "restored")
    assert operated.status(restored)["clusterId"] == "second"


async def test_a_cluster_that_has_no_id_is_not_remembered(operating: Callable[..., Operated]) -> None:
    operated = operating({"new": await kafka_cluster(cluster_id=None)})
    await operated.cluster("demo", "new", EVERYBODY)
    key = await add_topic(operated)
    assert operated.ready(key)["reason"] == Reason.CLUSTER_NOT_IDENTIFIED
    assert "clusterId" not in operated.status(key)


async def test_a_move_that_had_begun_ends_and_does_not_begin_again(
    operated: Operated, second: SimulatedZooKeeper
) -> None:
    key = await operated.add("PartitionReassignment", "move", MOVE)
    await operated.look(key)
    assert operated.status(key)["phase"] == "Running"
    await create_again(operated)
    await operated.look(key)
    assert (operated.ready(key)["reason"], operated.status(key)["phase"]) == (Reason.CLUSTER_CHANGED, "Running")
    written = second.tree.zxid
    await edit(operated, annotations=ACCEPT)
    await operated.look(key)
    assert (operated.status(key)["phase"], operated.status(key)["clusterId"]) == ("Failed", "first")
    assert operated.condition(key, "Failed") is not None
    assert (operated.api.peek(key) or {})["metadata"]["finalizers"] == []
    assert second.tree.zxid == written
    await operated.look(CLUSTER)
    assert operated.status(CLUSTER)["clusterId"] == "second", "nothing waits for a move that has ended"


async def test_a_move_that_had_not_begun_is_planned_anew(operated: Operated, second: SimulatedZooKeeper) -> None:
    key = await operated.add("PartitionReassignment", "move", {**MOVE, "suspend": True})
    await operated.look(key)
    await create_again(operated, annotations=ACCEPT)
    await operated.add("PartitionReassignment", "move", MOVE)
    await operated.look(key)
    assert (operated.status(key)["phase"], operated.status(key)["clusterId"]) == ("Running", "second")
    node = second.tree.read(paths.topic(TopicName("bills")))
    assert node is not None
    moved = codecs.decode_whole_topic(TopicName("bills"), node.data).partitions[PartitionId(0)]
    assert moved.is_being_reassigned


async def test_a_paused_object_keeps_what_it_knows_until_it_is_resumed(operated: Operated) -> None:
    key = await add_topic(operated)
    before = operated.status(key)
    await create_again(operated, annotations=ACCEPT)
    await operated.add("KafkaTopic", "orders", ORDERS, annotations={"kontroller.dev/pause": "true"})
    await operated.look(key)
    after = operated.status(key)
    assert operated.ready(key)["reason"] == Reason.PAUSED
    assert (after["clusterId"], after["topicId"]) == ("first", before["topicId"])
    assert after["nextSteps"] == ["create topic orders with 1 partition, replication factor 2"]


async def test_an_object_that_waits_does_not_keep_a_topic_of_the_other_cluster_from_others(operated: Operated) -> None:
    await add_topic(operated, topicName="bills", adoptionPolicy="Always")
    await create_again(operated)
    await operated.cluster("other", "second", EVERYBODY)
    spec = {**ORDERS, "clusterRef": {"name": "other", "namespace": "platform"}, "topicName": "bills"}
    younger = await operated.add("KafkaTopic", "younger", spec, creationTimestamp="2026-01-01T00:00:00Z")
    await operated.look(younger)
    assert operated.ready(younger)["status"] == "True"


async def test_an_accepted_cluster_is_the_one_whose_topics_are_claimed(operated: Operated) -> None:
    """The pause keeps the KafkaCluster's status at the first cluster."""
    await edit(operated, annotations={**ACCEPT, "kontroller.dev/pause": "true"})
    await operated.cluster("other", "second", EVERYBODY)
    ref = {"clusterRef": {"name": "other", "namespace": "platform"}}
    older = await operated.add("KafkaTopic", "older", {**ORDERS, **ref}, creationTimestamp="2024-01-01T00:00:00Z")
    younger = await operated.add("KafkaTopic", "younger", {**ORDERS, "topicName": "older"})
    for key in (older, younger):
        await operated.look(key)
    assert operated.status(CLUSTER)["clusterId"] == "first"
    assert operated.ready(younger)["reason"] == Reason.RESOURCE_CONFLICT

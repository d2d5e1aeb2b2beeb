"""Two KafkaClusters for one Kafka cluster, even with different addresses, have one owner for each topic."""

from collections.abc import Callable
from typing import Any

import pytest

from controller_core.model.ids import TopicName
from controller_core.zk import codecs, paths
from controller_core.zk.session import Delete, SetData
from controller_operator.kubernetes.object_store import Key
from controller_operator.resources.conditions import Reason
from simulation.zookeeper import SimulatedZooKeeper
from tests.unit.operator.clusters import feature_set
from tests.unit.operator.tenants.operated import Operated, kafka_cluster, write_cluster_id

ONE_WAY, OTHER_WAY = "zk-0:2181,zk-1:2181", "zk-1:2181,zk-0:2181"
OLDER, YOUNGER = "2025-01-01T00:00:00Z", "2025-01-02T00:00:00Z"


def make_spec(retention_ms: str, cluster: str = "one") -> dict[str, Any]:
    return {
        "clusterRef": {"name": cluster, "namespace": "platform"},
        "partitions": 1,
        "replicaAssignment": [[1, 2]],
        "adoptionPolicy": "Always",
        "config": {"retention.ms": retention_ms},
    }


@pytest.fixture
async def zookeeper() -> SimulatedZooKeeper:
    return await kafka_cluster("orders")


@pytest.fixture
async def operated(zookeeper: SimulatedZooKeeper, operating: Callable[..., Operated]) -> Operated:
    made = operating({"zk-0:2181": zookeeper, "zk-1:2181": zookeeper})
    for name, connect in (("one", ONE_WAY), ("other", OTHER_WAY)):
        await made.cluster(name, connect, [{"namespace": "*"}])
    return made


def retention(zookeeper: SimulatedZooKeeper) -> tuple[str, int]:
    """The topic's configured retention, and how often its configuration was written."""
    node = zookeeper.tree.read(paths.topic_config(TopicName("orders")))
    assert node is not None
    return codecs.decode_config(node.data, "config")["retention.ms"], node.version


async def test_the_older_of_two_topics_has_it_whatever_the_order_of_the_hosts(
    operated: Operated, zookeeper: SimulatedZooKeeper
) -> None:
    older = await operated.add("KafkaTopic", "orders", make_spec("1"), creationTimestamp=OLDER)
    younger = await operated.add(
        "KafkaTopic", "orders", make_spec("2", "other"), namespace="a", creationTimestamp=YOUNGER
    )
    for key in (younger, older, younger, older):
        await operated.look(key)
    assert retention(zookeeper) == ("1", 0)
    assert operated.ready(older)["status"] == "True"
    assert operated.ready(younger)["reason"] == Reason.RESOURCE_CONFLICT
    assert "shop/orders" in operated.ready(younger)["message"]


async def test_nobody_gets_the_topic_of_an_object_that_cannot_be_read(
    operated: Operated, zookeeper: SimulatedZooKeeper
) -> None:
    of_a_later_release = {**make_spec("1"), "partitions": "as many as needed", "unheardOf": True}
    older = await operated.add("KafkaTopic", "orders", of_a_later_release, creationTimestamp=OLDER)
    younger = await operated.add(
        "KafkaTopic", "orders", make_spec("2", "other"), namespace="a", creationTimestamp=YOUNGER
    )
    for key in (younger, older, younger):
        await operated.look(key)
    assert operated.ready(older)["reason"] == Reason.INVALID_SPEC
    assert operated.ready(younger)["reason"] == Reason.RESOURCE_CONFLICT
    assert zookeeper.tree.read(paths.topic_config(TopicName("orders"))) is None


async def test_features_have_one_owner_too(operated: Operated) -> None:
    spec = {"features": [{"name": "f", "maxVersionLevel": 1}]}
    for name, cluster, born in (("a", "one", OLDER), ("b", "other", YOUNGER)):
        ref = {"name": cluster, "namespace": "platform"}
        await operated.add("FeatureSet", name, {"clusterRef": ref, **spec}, creationTimestamp=born)
    younger = feature_set({"f": 1}, {"clusterRef": {"name": "other", "namespace": "platform"}}, name="b",
                          uid="uid-FeatureSet-None-b", creationTimestamp=YOUNGER)  # fmt: skip
    assert operated.access.feature_claims(younger).winners == {"f": "shop/a"}


async def test_a_topic_waits_until_it_is_known_which_cluster_it_is(operating: Callable[..., Operated]) -> None:
    zookeeper = await kafka_cluster("orders", cluster_id=None)
    operated = operating({"zk-0:2181": zookeeper})
    await operated.cluster("one", ONE_WAY, [{"namespace": "*"}])
    key = await operated.add("KafkaTopic", "orders", make_spec("1"))
    await operated.look(key)
    assert operated.ready(key)["reason"] == Reason.CLUSTER_NOT_IDENTIFIED
    assert operated.condition(key, "Reconciling") is not None
    assert zookeeper.tree.read(paths.topic_config(TopicName("orders"))) is None
    await zookeeper.session().transact(write_cluster_id("a-cluster"))
    while operated.ready(key)["reason"] == Reason.CLUSTER_NOT_IDENTIFIED:
        await operated.wait_for_change()
        await operated.look(key)
    assert retention(zookeeper) == ("1", 0)


async def test_another_cluster_behind_the_same_address_gets_nothing(
    operated: Operated, zookeeper: SimulatedZooKeeper
) -> None:
    other = zookeeper.session()
    await other.transact([SetData(path=paths.CLUSTER_ID, data=b'{"version":"1","id":"another"}')])
    cluster = Key("KafkaCluster", "platform", "one")
    while operated.ready(cluster)["reason"] != Reason.CLUSTER_CHANGED:
        await operated.wait_for_change()
        await operated.look(cluster)
    key = await operated.add("KafkaTopic", "orders", make_spec("1"))
    await operated.look(key)
    assert operated.ready(key)["reason"] == Reason.CLUSTER_CHANGED
    assert operated.condition(key, "Stalled") is not None
    await other.transact([Delete(path=paths.CLUSTER_ID)])
    while operated.ready(key).get("reason") != Reason.CLUSTER_NOT_IDENTIFIED:
        await operated.wait_for_change()
        await operated.look(key)
    assert zookeeper.tree.read(paths.topic_config(TopicName("orders"))) is None


async def test_what_an_address_out_of_reach_was_known_to_lead_to_still_counts(
    operated: Operated, zookeeper: SimulatedZooKeeper, operating: Callable[..., Operated]
) -> None:
    """After a restart of the operator one address does not answer. Topics of the other do not inherit."""
    older = await operated.add("KafkaTopic", "orders", make_spec("1"), creationTimestamp=OLDER)
    await operated.look(older)
    again = operating({"zk-1:2181": zookeeper})
    for raw in (*operated.api.all("KafkaCluster"), *operated.api.all("KafkaTopic")):
        again.store.put(await again.api.keep(raw))
    younger = await again.add("KafkaTopic", "orders", make_spec("2", "other"), namespace="a", creationTimestamp=YOUNGER)
    await again.look(younger)
    assert again.ready(younger)["reason"] == Reason.RESOURCE_CONFLICT
    assert retention(zookeeper) == ("1", 0)


async def test_a_copy_in_another_part_of_the_same_zookeeper_is_another_cluster(
    operating: Callable[..., Operated],
) -> None:
    """The copy has the id of its original."""
    original, copy = await kafka_cluster("orders"), await kafka_cluster("orders")
    operated = operating({"zk-0:2181": original, "zk-1:2181": copy})
    await operated.cluster("one", f"{ONE_WAY}/kafka", [{"namespace": "*"}])
    await operated.cluster("other", f"{OTHER_WAY}/copy", [{"namespace": "*"}])
    keys = [
        await operated.add("KafkaTopic", "orders", make_spec("1"), creationTimestamp=OLDER),
        await operated.add("KafkaTopic", "orders", make_spec("2", "other"), namespace="a", creationTimestamp=YOUNGER),
    ]
    for key in keys:
        await operated.look(key)
    assert (retention(original), retention(copy)) == (("1", 0), ("2", 0))


@pytest.mark.parametrize(
    ("own", "overruled"),
    [(None, ""), ([{"namespace": "shop"}], ", so the list of this one has no effect")],
    ids=["without a list", "with a list"],
)
async def test_a_second_object_for_the_same_cluster_says_that_the_list_of_the_first_decides(
    zookeeper: SimulatedZooKeeper,
    operating: Callable[..., Operated],
    own: list[dict[str, str]] | None,
    overruled: str,
) -> None:
    operated = operating({"zk-0:2181": zookeeper, "zk-1:2181": zookeeper})
    first = await operated.cluster("one", ONE_WAY, [{"namespace": "*"}], creationTimestamp=OLDER)
    second = await operated.cluster("other", OTHER_WAY, own, creationTimestamp=YOUNGER)
    for key in (first, second):
        await operated.look(key)
    assert operated.ready(first)["reason"] == Reason.RECONCILED
    said = operated.ready(second)
    assert (said["status"], said["reason"]) == ("True", Reason.OTHER_CLUSTER_DECIDES)
    assert said["message"].endswith(
        "; KafkaCluster platform/one stands for the same Kafka cluster, and its spec.allowedNamespaces also applies to "
        f"this one{overruled}"
    )


async def test_of_two_objects_for_one_cluster_without_a_list_neither_decides_for_the_other(
    zookeeper: SimulatedZooKeeper, operating: Callable[..., Operated]
) -> None:
    operated = operating({"zk-0:2181": zookeeper, "zk-1:2181": zookeeper})
    first = await operated.cluster("one", ONE_WAY, creationTimestamp=OLDER)
    second = await operated.cluster("other", OTHER_WAY, creationTimestamp=YOUNGER)
    for key in (first, second):
        await operated.look(key)
    assert {operated.ready(key)["reason"] for key in (first, second)} == {Reason.RECONCILED}

"""Deletion of a KafkaCluster: it stays until no object needs it, says what it waits for, and can be forced."""

from typing import Any

from controller_core.model.ids import TopicName
from controller_core.zk import paths
from controller_operator.kubernetes.object_store import Key
from controller_operator.resources.common import FINALIZER
from tests.unit.operator.clusters import raw
from tests.unit.operator.running.operating import CLUSTER, Operating, run_operator

ORDERS = Key("KafkaTopic", "shop", "orders")
FORCE = {"kontroller.dev/delete-before-dependents": "true"}


def a_topic(**spec: Any) -> dict[str, Any]:
    return raw("KafkaTopic", {"partitions": 1, "replicationFactor": 1, **spec}, name="orders")


def finalizers(around: Operating) -> list[str]:
    found: list[str] = (around.api.peek(CLUSTER) or {})["metadata"].get("finalizers", [])
    return found


async def wait_until_held(around: Operating) -> None:
    await around.wait_until(lambda: FINALIZER in finalizers(around))


async def test_a_cluster_without_objects_has_no_finalizer_and_gets_it_with_the_first_one() -> None:
    async with run_operator() as around:
        await around.wait_for_reason(CLUSTER, "Reconciled")
        assert finalizers(around) == []
        await around.api.apply(a_topic())
        await wait_until_held(around)


async def test_a_deleted_cluster_says_what_it_waits_for_and_goes_when_that_is_gone() -> None:
    async with run_operator(a_topic()) as around:
        await wait_until_held(around)
        await around.api.remove(CLUSTER)
        await around.wait_for_reason(CLUSTER, "WaitingForDependents")
        message = around.condition(CLUSTER)["message"]
        assert message.startswith("being deleted: 1 KafkaTopic (shop/orders) refers to it. Delete these first.")
        (event,) = around.events("WaitingForDependents")
        assert (event["type"], event["message"]) == ("Warning", message)
        await around.api.remove(ORDERS)
        await around.wait_until(lambda: around.peek_gone(CLUSTER))


async def test_the_topic_of_an_object_that_is_deleted_with_its_cluster_is_deleted_first() -> None:
    async with run_operator(a_topic(deletionPolicy="Delete")) as around:
        await wait_until_held(around)
        await around.wait_until(lambda: around.zookeeper.tree.read(paths.topic(TopicName("orders"))))
        await around.wait_until(lambda: (around.api.peek(ORDERS) or {})["status"].get("counts"))
        for key in (CLUSTER, ORDERS):
            await around.api.remove(key)
        await around.wait_until(lambda: around.zookeeper.tree.read(paths.delete_topic(TopicName("orders"))))
        assert not around.peek_gone(CLUSTER)


async def test_the_annotation_lets_a_cluster_go_before_its_objects_and_an_event_says_what_stays() -> None:
    async with run_operator(a_topic()) as around:
        await wait_until_held(around)
        await around.api.remove(CLUSTER)
        await around.wait_for_reason(CLUSTER, "WaitingForDependents")
        known = around.api.peek(CLUSTER) or {}
        await around.api.keep({**known, "metadata": {**known["metadata"], "annotations": FORCE}})
        await around.wait_until(lambda: around.peek_gone(CLUSTER))
        (event,) = around.events("DeletedBeforeDependents")
        assert "their topics and data stay: 1 KafkaTopic (shop/orders)" in event["message"]


async def test_a_cluster_that_this_version_cannot_read_waits_as_well() -> None:
    async with run_operator(a_topic()) as around:
        await wait_until_held(around)
        known = around.api.peek(CLUSTER) or {}
        await around.api.keep({**known, "spec": {**known["spec"], "fieldOfTomorrow": 1}})
        await around.wait_for_reason(CLUSTER, "InvalidSpec")
        await around.api.remove(CLUSTER)
        await around.wait_until(
            lambda: "1 KafkaTopic (shop/orders) refers to it" in around.condition(CLUSTER)["message"]
        )
        assert "fieldOfTomorrow" in around.condition(CLUSTER)["message"]
        assert not around.peek_gone(CLUSTER)
        await around.api.remove(ORDERS)
        await around.wait_until(lambda: around.peek_gone(CLUSTER))


async def test_a_cluster_that_is_out_of_reach_waits_as_well() -> None:
    async with run_operator(a_topic(), unreachable_grace_seconds=0, objects_unreachable_grace_seconds=0) as around:
        await wait_until_held(around)
        around.take_zookeeper_away()
        await around.api.remove(CLUSTER)
        await around.wait_for_reason(CLUSTER, "WaitingForDependents")
        await around.wait_until_looked_at(CLUSTER)
        assert not around.peek_gone(CLUSTER)

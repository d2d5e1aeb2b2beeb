"""Events about the states of objects: one for each change of a state, however often the object is looked at."""

from typing import Any

import pytest

from controller_operator.kubernetes.object_store import Key
from tests.unit.operator.clusters import raw
from tests.unit.operator.running.operating import CLUSTER, run_operator

ORDERS = Key("KafkaTopic", "shop", "orders")


def a_topic(**spec: Any) -> dict[str, Any]:
    return raw("KafkaTopic", {"partitions": 3, "replicationFactor": 1, **spec}, name="orders")


def annotate(topic: dict[str, Any], pause: str) -> dict[str, Any]:
    return {**topic, "metadata": {**topic["metadata"], "annotations": {"kontroller.dev/pause": pause}}}


async def test_a_topic_that_is_created_is_told_once_and_what_is_usual_is_not() -> None:
    async with run_operator(a_topic()) as around:
        await around.wait_until(lambda: around.events("TopicCreated"))
        await around.wait_until_looked_at(ORDERS)
        (event,) = around.events("TopicCreated")
        assert (event["type"], event["message"]) == (
            "Normal",
            "created topic orders with 3 partitions, replication factor 1",
        )
        assert [each["reason"] for each in around.api.events] == ["TopicCreated"]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"replicationFactor": 4}, "NotEnoughBrokers"),
        ({"config": {"retention": "1"}}, "InvalidConfig"),
        ({"clusterRef": {"name": "nowhere"}}, "ClusterNotFound"),
    ],
)
async def test_what_is_in_the_way_is_one_warning_however_often_it_is_looked_at(
    spec: dict[str, Any], reason: str
) -> None:
    async with run_operator(a_topic(**spec)) as around:
        await around.wait_for_reason(ORDERS, reason)
        await around.wait_until_looked_at(ORDERS)
        (event,) = around.events(reason)
        assert (event["type"], event["message"]) == ("Warning", around.condition(ORDERS)["message"])


async def test_a_new_spec_with_the_same_fault_is_told_again() -> None:
    async with run_operator(a_topic(config={"retention": "1"})) as around:
        await around.wait_for_reason(ORDERS, "InvalidConfig")
        await around.api.apply(a_topic(config={"retention": "2"}))
        await around.wait_until(lambda: len(around.events("InvalidConfig")) == 2)


async def test_a_second_object_for_a_topic_is_told_of_the_conflict() -> None:
    second = raw("KafkaTopic", {"topicName": "orders", "partitions": 3, "replicationFactor": 1}, name="second")
    second["metadata"]["creationTimestamp"] = "2030-01-01T00:00:00Z"
    async with run_operator(a_topic(), second) as around:
        await around.wait_until(lambda: around.events("ResourceConflict"))


async def test_a_pause_is_told_once_and_its_end_is_no_event() -> None:
    async with run_operator(a_topic()) as around:
        await around.wait_until(lambda: around.condition(ORDERS))
        await around.api.apply(annotate(a_topic(), "yes"))
        await around.wait_for_reason(ORDERS, "Paused")
        await around.api.apply(annotate(a_topic(), "false"))
        await around.wait_until(lambda: around.condition(ORDERS)["reason"] != "Paused")
        (event,) = around.events("Paused")
        assert (event["type"], event["message"]) == (
            "Normal",
            "paused by the annotation kontroller.dev/pause: 'yes' pauses, too; only 'false' does not",
        )


async def test_an_outage_is_told_of_the_cluster_alone() -> None:
    async with run_operator(a_topic(), unreachable_grace_seconds=0, objects_unreachable_grace_seconds=0) as around:
        await around.wait_until(lambda: around.events("TopicCreated"))
        await around.wait_until_looked_at(ORDERS, 1)
        around.take_zookeeper_away()
        await around.wait_for_reason(ORDERS, "ZooKeeperUnavailable")
        await around.wait_for_reason(CLUSTER, "ZooKeeperUnavailable")
        assert {each["involvedObject"]["kind"] for each in around.events("ZooKeeperUnavailable")} == {"KafkaCluster"}

"""A standby operator knows what the active one knows, does nothing, and takes over at once."""

from controller_core.model.ids import TopicName
from controller_core.zk import paths
from controller_operator.kubernetes.object_api import ApiUnavailable
from controller_operator.kubernetes.object_store import Key
from tests.unit.operator.clusters import raw
from tests.unit.operator.running.operating import CLUSTER, Operating, watch_objects

READS = {"served_kinds", "schemas", "list", "watch", "get"}


def a_topic(name: str) -> dict[str, object]:
    return raw("KafkaTopic", {"partitions": 1, "replicationFactor": 1}, name=name)


def read_samples(around: Operating, name: str, **labels: str) -> list[float]:
    metrics = around.runtime.metrics.registry.collect()
    samples = [sample for metric in metrics for sample in metric.samples if sample.name == name]
    return [sample.value for sample in samples if labels.items() <= sample.labels.items()]


def count_topics(around: Operating) -> float:
    (count,) = read_samples(around, "kontroller_operator_objects", kind="KafkaTopic")
    return count


async def test_who_stands_by_follows_and_neither_writes_nor_connects() -> None:
    async with watch_objects(a_topic("early")) as around:
        await around.api.apply(a_topic("orders"))
        await around.api.remove(Key("KafkaTopic", "shop", "early"))
        await around.wait_until(lambda: count_topics(around) == 1)
        await around.api.apply(a_topic("another"))
        await around.wait_until(lambda: count_topics(around) == 2)
        assert set(around.api.requests) <= READS
        assert around.sessions == []
        assert around.runtime.trouble is None
        assert read_samples(around, "kontroller_operator_leader") == [0]
        assert read_samples(around, "kontroller_operator_conditions") == []


async def test_who_begins_to_work_does_what_came_meanwhile_without_a_listing() -> None:
    async with watch_objects() as around:
        await around.api.apply(a_topic("orders"))
        listed = around.api.requests["list"]
        around.runtime.begin_work()
        await around.wait_until(lambda: around.zookeeper.tree.read(paths.topic(TopicName("orders"))) is not None)
        await around.wait_for_reason(CLUSTER, "Reconciled")
        assert around.api.requests["list"] == listed
        assert read_samples(around, "kontroller_operator_leader") == [1]
        assert read_samples(around, "kontroller_operator_conditions")


async def test_who_stands_by_and_cannot_follow_is_not_ready() -> None:
    async with watch_objects() as around:
        around.api.missing_kinds.add("FeatureSet")
        for _ in range(5):
            await around.api.interrupt(ApiUnavailable("the watches end"))
        await around.wait_until(lambda: "CustomResourceDefinitions" in (around.runtime.trouble or ""))

"""The operator at work takes up the objects of a KafkaCluster when a person accepts another Kafka cluster for them."""

from controller_operator.kubernetes.object_store import Key
from tests.unit.operator.clusters import raw
from tests.unit.operator.running.operating import CLUSTER, run_operator

ORDERS = Key("KafkaTopic", "shop", "orders")
BEFORE_IT_LOOKS_BY_ITSELF_S = 30.0


async def test_an_annotation_of_the_kafka_cluster_has_its_objects_looked_at() -> None:
    waiting = raw("KafkaTopic", {"partitions": 1, "replicationFactor": 1}, status={"clusterId": "another"})
    async with run_operator(waiting) as around:
        for key in (CLUSTER, ORDERS):
            await around.wait_for_reason(key, "ClusterChanged")
        known = around.api.peek(CLUSTER) or {}
        annotations = {"kontroller.dev/accept-cluster": "a-cluster"}
        await around.api.keep({**known, "metadata": {**known["metadata"], "annotations": annotations}})
        await around.wait_until(
            lambda: (around.api.peek(ORDERS) or {})["status"]["clusterId"] == "a-cluster",
            BEFORE_IT_LOOKS_BY_ITSELF_S,
        )
        await around.wait_until(lambda: around.condition(CLUSTER)["reason"] != "ClusterChanged")

"""A topic of two objects goes from the older one to the younger one with all its records, with ZooKeeper and without."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.parts import Part
from devcluster.running.processes import wait_until
from tests.real.operator.deletion.conftest import WITH_ZOOKEEPER, WITHOUT_ZOOKEEPER, Clusters
from tests.real.operator.operated import NAMESPACE, RECORDS, Objects, fill, operate_namespace, run_operator
from tests.real.operator.witnesses import witness_of

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def objects(servers_folder: RunFolder, kubernetes_api: KubernetesCluster, clusters: Clusters) -> Iterator[Objects]:
    with_zookeeper = clusters[WITH_ZOOKEEPER]
    assert isinstance(with_zookeeper, KafkaCluster)
    with (
        operate_namespace(kubernetes_api, with_zookeeper.zookeeper_connect) as found,
        run_operator(servers_folder, kubernetes_api),
    ):
        found.apply("KafkaCluster", WITH_ZOOKEEPER, {"zookeeper": {"connect": with_zookeeper.zookeeper_connect}})
        without_zookeeper = {"bootstrapServers": clusters[WITHOUT_ZOOKEEPER].bootstrap_servers}
        found.apply("KafkaCluster", WITHOUT_ZOOKEEPER, without_zookeeper)
        yield found


def count_records(kafka: KafkaCluster | KRaftCluster, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "counting"})
    try:
        first, last = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
    finally:
        consumer.close()
    return int(last - first)


@pytest.mark.parametrize("cluster", [WITH_ZOOKEEPER, WITHOUT_ZOOKEEPER])
def test_the_younger_object_takes_the_topic_over_with_its_records(
    objects: Objects, clusters: Clusters, cluster: str
) -> None:
    kafka, topic, older, younger = clusters[cluster], f"khand.{cluster}", f"kh1-{cluster}", f"kh2-{cluster}"
    spec = {
        "clusterRef": {"name": cluster},
        "topicName": topic,
        "partitions": 1,
        "replicationFactor": 1,
        "deletionPolicy": "Delete",
    }
    objects.apply("KafkaTopic", older, spec)
    topic_id = objects.wait_ready("kafkatopic", older)["status"]["topicId"]
    objects.apply("KafkaTopic", younger, {**spec, "config": {"flush.ms": "9000"}, "adoptionPolicy": "Never"})
    objects.wait_ready("kafkatopic", younger, "False", "ResourceConflict")
    owner = f"{NAMESPACE}/{older}"
    said = "which then changes what differs: config.flush.ms is not set instead of 9000"
    wait_until(
        lambda: (
            objects.condition("kafkatopic", younger)["message"]
            == f"topic {topic} belongs to {owner}, which is older: delete this object to keep things as they are; delete "
            f"{owner} to hand the topic with its data over to this object, {said}"
        ),
        "the message says what deleting either of the two does",
    )
    fill(kafka, topic)
    objects.delete("kafkatopic", older)
    objects.wait_gone("kafkatopic", older)
    status = objects.wait_ready("kafkatopic", younger)["status"]
    assert (status["topicId"], "owner" in status) == (topic_id, False)
    assert count_records(kafka, topic) == RECORDS
    for name in (older, younger):
        objects.wait_for_event(name, "TopicHandedOver")
    assert "TopicCreated" not in objects.events(younger)
    with witness_of(kafka) as witness:
        assert witness.topic_id(topic) == topic_id
        objects.delete("kafkatopic", younger)
        objects.wait_gone("kafkatopic", younger)
        wait_until(lambda: not witness.topic_id(topic), "the last object deletes the topic")

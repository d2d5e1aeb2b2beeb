"""Topics that already have a KafkaTopic: of this KafkaCluster, or of another one for the same Kafka cluster."""

import pytest

from controller_operator.kubernetes.object_api import ApiForbidden, Listing
from controller_operator.kubernetes.object_store import Key, Raw
from controller_operator.resources.cluster_address import AtBrokers, AtZooKeeper
from kontroller.importing.managed_topics import NoSuchCluster, read_known_cluster
from tests.unit.operator.clusters import raw
from tests.unit.operator.simulated_api import SimulatedApiServer

DEMO = Key("KafkaCluster", "kafka", "demo")


def kafka_cluster(name: str, cluster_id: str | None) -> Raw:
    spec = {"zookeeper": {"connect": f"{name}:2181/kafka"}}
    status = {"clusterId": cluster_id} if cluster_id else {}
    return {**raw("KafkaCluster", {}, name=name, namespace="kafka", status=status), "spec": spec}


def kafka_topic(name: str, cluster: str, namespace: str = "kafka", **spec: str) -> Raw:
    reference = {"clusterRef": {"name": cluster, "namespace": "kafka"}}
    return raw("KafkaTopic", {**reference, **spec}, name=name, namespace=namespace)


async def server(*objects: Raw) -> SimulatedApiServer:
    api = SimulatedApiServer()
    for each in objects:
        await api.keep(each)
    return api


async def test_topics_of_every_kafka_cluster_object_for_the_same_cluster_are_managed() -> None:
    api = await server(
        *(kafka_cluster("demo", "id-1"), kafka_cluster("twin", "id-1"), kafka_cluster("other", "id-2")),
        *(kafka_topic("a", "demo"), kafka_topic("b", "twin", "shop", topicName="B"), kafka_topic("c", "other")),
    )
    known = await read_known_cluster(api, DEMO, "kafka")
    assert known.address == AtZooKeeper("demo:2181/kafka")
    assert known.managed == {"a", "B"}
    assert known.taken == {"a", "c"}
    assert known.notes == ()


async def test_a_cluster_that_has_not_been_seen_yet_is_the_same_as_no_other() -> None:
    api = await server(kafka_cluster("demo", None), kafka_cluster("new", None), kafka_topic("a", "new"))
    assert (await read_known_cluster(api, DEMO, "kafka")).managed == set()


async def test_a_cluster_without_zookeeper_is_asked_at_its_brokers() -> None:
    cluster = {**kafka_cluster("demo", "id-1"), "spec": {"bootstrapServers": "demo:9092"}}
    known = await read_known_cluster(await server(cluster, kafka_topic("a", "demo")), DEMO, "kafka")
    assert known.address == AtBrokers("demo:9092")
    assert known.managed == {"a"}


async def test_a_cluster_that_says_no_address_is_told() -> None:
    with pytest.raises(NoSuchCluster, match="neither zookeeper nor bootstrapServers"):
        await read_known_cluster(await server({**kafka_cluster("demo", "id-1"), "spec": {}}), DEMO, "kafka")


async def test_a_cluster_that_is_not_there_is_told() -> None:
    with pytest.raises(NoSuchCluster, match="KafkaCluster kafka/demo"):
        await read_known_cluster(await server(), DEMO, "kafka")


async def test_who_may_see_one_namespace_only_is_told_what_that_means(monkeypatch: pytest.MonkeyPatch) -> None:
    api = await server(kafka_cluster("demo", "id-1"), kafka_topic("a", "demo"), kafka_topic("b", "demo", "shop"))
    everywhere = api.list_all

    async def list_all(kind: str, namespace: str | None) -> Listing:
        if namespace is None:
            raise ApiForbidden("no")
        return await everywhere(kind, namespace)

    monkeypatch.setattr(api, "list_all", list_all)
    known = await read_known_cluster(api, DEMO, "kafka")
    assert known.managed == {"a"}
    assert any("KafkaTopics of namespace kafka" in note for note in known.notes)

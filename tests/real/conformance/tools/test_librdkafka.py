"""librdkafka, through confluent-kafka, does all admin tasks, unmodified, with the controller as bootstrap server."""

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import confluent_kafka.admin
import pytest
from confluent_kafka import (
    ElectionType,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)

from tests.real.conformance.clusters import ConformanceCluster

librdkafka: Any = confluent_kafka.admin  # the module does not declare its exports
NewTopic = librdkafka.NewTopic


@pytest.fixture
def admin(cluster: ConformanceCluster) -> Any:
    return librdkafka.AdminClient({**cluster.librdkafka(cluster.bootstrap), "log_level": 2})


def results(futures: Mapping[Any, Future[Any]]) -> dict[Any, Any]:
    """Return the result of each part of a request, or the code of its error."""

    def outcome(future: Future[Any]) -> Any:
        try:
            return future.result(timeout=60)
        except KafkaException as error:
            return error.args[0].code()

    return {key: outcome(future) for key, future in futures.items()}


def test_topics_are_created_described_grown_and_deleted(cluster: ConformanceCluster, admin: Any) -> None:
    wanted = [
        NewTopic("rd-one", num_partitions=2, replication_factor=3, config={"retention.ms": "60000"}),
        NewTopic("rd-two", num_partitions=2, replica_assignment=[[2, 1], [3, 2]]),
        NewTopic("rd-bad", num_partitions=1, replication_factor=9),
    ]
    assert results(admin.create_topics(wanted)) == {
        "rd-one": None,
        "rd-two": None,
        "rd-bad": KafkaError.INVALID_REPLICATION_FACTOR,
    }
    assert results(admin.create_topics(wanted[:1])) == {"rd-one": KafkaError.TOPIC_ALREADY_EXISTS}
    assert [cluster.znodes.read_assignment("rd-two", number) for number in (0, 1)] == [[2, 1], [3, 2]]
    cluster.wait_until_served("rd-one", 2)
    for number in (0, 1):
        cluster.wait_until_everybody_knows("rd-one", number)
    (described,) = results(admin.describe_topics(TopicCollection(["rd-one"]))).values()
    assert len(described.partitions) == 2
    four = [librdkafka.NewPartitions("rd-one", 4)]
    assert results(admin.create_partitions(four)) == {"rd-one": None}
    assert results(admin.create_partitions(four)) == {"rd-one": KafkaError.INVALID_PARTITIONS}
    assert len(cluster.znodes.partitions("rd-one")) == 4
    assert results(admin.delete_topics(["rd-one", "rd-two", "rd-ghost"])) == {
        "rd-one": None,
        "rd-two": None,
        "rd-ghost": KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
    cluster.wait_until_gone("/brokers/topics/rd-one")


def test_validation_alone_creates_nothing(cluster: ConformanceCluster, admin: Any) -> None:
    topic = NewTopic("rd-idea", num_partitions=1, replication_factor=1)
    assert results(admin.create_topics([topic], validate_only=True)) == {"rd-idea": None}
    assert cluster.znodes.read("/brokers/topics/rd-idea") is None


def test_the_cluster_is_described(cluster: ConformanceCluster, admin: Any) -> None:
    described = admin.describe_cluster().result(timeout=60)
    assert described.controller.id == cluster.znodes.controller()
    assert {node.id for node in described.nodes} >= {1, 2, 3}
    assert described.cluster_id == cluster.znodes.read("/cluster/id")["id"]


def test_preferred_leaders_are_elected(cluster: ConformanceCluster, admin: Any) -> None:
    cluster.serve_topic("rd-led", [[1, 2]])
    cluster.znodes.reassign({("rd-led", 0): [2, 1]})
    cluster.wait_until_moved("rd-led", [2, 1])
    partitions = [TopicPartition("rd-led", 0), TopicPartition("rd-ghost", 0)]
    elected = admin.elect_leaders(ElectionType.PREFERRED, partitions).result(timeout=60)
    codes = {partition.topic: error.code() if error else None for partition, error in elected.items()}
    assert codes == {"rd-led": None, "rd-ghost": KafkaError.UNKNOWN_TOPIC_OR_PART}
    assert cluster.znodes.leader("rd-led", 0) == 2


def test_users_get_and_lose_credentials(cluster: ConformanceCluster, admin: Any) -> None:
    mechanism = librdkafka.ScramMechanism.SCRAM_SHA_512
    info = librdkafka.ScramCredentialInfo(mechanism, 8192)
    given = librdkafka.UserScramCredentialUpsertion("rd-user", info, b"pencil")
    assert results(admin.alter_user_scram_credentials([given])) == {"rd-user": None}
    assert "SCRAM-SHA-512" in cluster.znodes.read("/config/users/rd-user")["config"]
    taken = librdkafka.UserScramCredentialDeletion("rd-user", mechanism)
    assert results(admin.alter_user_scram_credentials([taken])) == {"rd-user": None}
    assert results(admin.alter_user_scram_credentials([taken])) == {"rd-user": KafkaError.RESOURCE_NOT_FOUND}


def test_configurations_are_altered_and_described(cluster: ConformanceCluster, admin: Any) -> None:
    cluster.serve_topic("rd-tuned", [[1, 2]])
    cluster.wait_until_everybody_knows("rd-tuned")
    entry = librdkafka.ConfigEntry("retention.ms", "5000", incremental_operation=librdkafka.AlterConfigOpType.SET)
    resource = librdkafka.ConfigResource(librdkafka.ResourceType.TOPIC, "rd-tuned", incremental_configs=[entry])
    assert list(results(admin.incremental_alter_configs([resource])).values()) == [None]
    cluster.wait(
        lambda: next(iter(results(admin.describe_configs([resource])).values()))["retention.ms"].value == "5000",
        "the brokers have the new configuration",
    )

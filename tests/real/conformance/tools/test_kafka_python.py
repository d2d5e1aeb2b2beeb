"""kafka-python's unmodified admin client does all admin tasks with the controller as bootstrap server.

It sends requests about SCRAM credentials to any broker instead of the controller, so they are not here.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import (
    InvalidRequestError,
    NoReassignmentInProgressError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from tests.real.conformance.clusters import ConformanceCluster
from tests.real.conformance.set_ups import mark_since


@pytest.fixture
def admin(cluster: ConformanceCluster) -> Iterator[Any]:
    client = KafkaAdminClient(
        bootstrap_servers=cluster.bootstrap, request_timeout_ms=60_000, **cluster.identity.kafka_python
    )
    yield client
    client.close()


def test_topics_are_created_described_grown_and_deleted(cluster: ConformanceCluster, admin: Any) -> None:
    admin.create_topics({
        "kp-one": {"num_partitions": 2, "replication_factor": 3, "configs": {"retention.ms": "60000"}},
        "kp-two": {"assignments": {0: [2, 1]}},
    })  # fmt: skip
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics({"kp-one": {"num_partitions": 1, "replication_factor": 1}})
    # The client asks any node, and nodes learn of topics one after the other.
    cluster.wait(lambda: {"kp-one", "kp-two"} <= set(admin.list_topics()), "every node lists the topics")
    assert cluster.znodes.read_assignment("kp-two", 0) == [2, 1]
    cluster.wait(lambda: len(admin.describe_topics(["kp-one"])[0]["partitions"]) == 2, "and describes their partitions")
    admin.create_partitions({"kp-one": 3})
    assert len(cluster.znodes.partitions("kp-one")) == 3
    admin.delete_topics(["kp-one", "kp-two"])
    cluster.wait_until_gone("/brokers/topics/kp-one")
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics(["kp-one"])


@mark_since("3.7", "this client misses in their answer what came with version 1 of DescribeCluster")
def test_the_cluster_is_described(cluster: ConformanceCluster, admin: Any) -> None:
    described = admin.describe_cluster()
    assert described["controller_id"] == cluster.znodes.controller()
    assert described["cluster_id"] == cluster.znodes.read("/cluster/id")["id"]


def test_partitions_are_reassigned_and_the_list_of_what_runs_is_empty_again(
    cluster: ConformanceCluster, admin: Any
) -> None:
    cluster.serve_topic("kp-moved", [[1, 2]])
    partition = TopicPartition("kp-moved", 0)
    assert admin.alter_partition_reassignments({partition: [3, 2]}) == {partition: None}
    cluster.wait_until_moved("kp-moved", [3, 2])
    assert admin.list_partition_reassignments([partition]) == {}
    assert admin.alter_partition_reassignments({partition: None}) == {partition: NoReassignmentInProgressError}


def test_leaders_are_elected(cluster: ConformanceCluster, admin: Any) -> None:
    cluster.serve_topic("kp-led", [[1, 2]])
    cluster.znodes.reassign({("kp-led", 0): [2, 1]})
    cluster.wait_until_moved("kp-led", [2, 1])
    admin.elect_leaders(0, {"kp-led": [0]})
    assert cluster.znodes.leader("kp-led", 0) == 2


def test_features_are_described_and_an_unsupported_one_is_refused(cluster: ConformanceCluster, admin: Any) -> None:
    assert admin.describe_features(send_request_to_controller=True) == {}
    if cluster.is_kafkas_own:
        assert "not supported" in str(admin.update_features({"no.such.feature": 1}))
    else:  # it uses the newest version of both, in which ours refuses all updates together
        with pytest.raises(InvalidRequestError, match="not supported"):
            admin.update_features({"no.such.feature": 1})

"""TopicChange and PartitionModifications: topics and partitions appear, grow, change and vanish."""

import json

from controller_core.wire.messages import ErrorCode
from devcluster.waiting.vocabulary import wait_until_served
from tests.real.conformance.clusters import ConformanceCluster
from tests.real.conformance.set_ups import ours_only


def test_a_new_topic_is_led_by_the_first_replica_with_all_in_sync(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("fresh", [[3, 1, 2], [2, 1]])
    seen = [cluster.read_state("fresh", partition) for partition in range(2)]
    assert [(state.leader, state.isr) for state in seen] == [(3, (3, 1, 2)), (2, (2, 1))]
    assert [(state.leader_epoch, state.partition_epoch) for state in seen] == [(0, 0)] * 2


def test_many_topics_created_at_once_are_all_served(cluster: ConformanceCluster) -> None:
    topics = [f"one-of-many-{number}" for number in range(30)]
    for topic in topics:
        cluster.znodes.create_topic(topic, [[1, 2], [3]])
    for topic in topics:
        cluster.wait_until_served(topic, 2)


def test_added_partitions_are_served_and_the_others_left_alone(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("growing", [[1, 2]])
    before, topic_id = cluster.read_state("growing"), cluster.topic_id("growing")
    cluster.znodes.add_partitions("growing", {1: [2, 3], 2: [3, 1]})
    cluster.wait_until_served("growing", 3)
    assert [cluster.read_state("growing", partition).leader for partition in (1, 2)] == [2, 3]
    assert cluster.read_state("growing") == before
    assert cluster.topic_id("growing") == topic_id
    for broker in cluster.znodes.live_brokers():
        cluster.wait(lambda broker=broker: len(cluster.metadata_of(broker, "growing").partitions) == 3, "three")  # type: ignore[misc]  # a lambda with a default


def test_another_assignment_of_a_known_partition_is_no_reassignment(cluster: ConformanceCluster) -> None:
    """Only partitions that are new in the znode are read from it."""
    cluster.serve_topic("edited", [[1, 2]])
    cluster.wait_until_only_replicas_have_logs("edited")
    before = cluster.read_state("edited")
    path = "/brokers/topics/edited"
    content = cluster.znodes.read(path)
    content["partitions"] = {"0": [1, 3], "1": [2, 3]}
    cluster.znodes.client.set(path, json.dumps(content).encode())
    wait_until_served(cluster.znodes, "edited", [1])
    assert cluster.read_state("edited") == before
    assert cluster.brokers_with_a_log("edited") == {1, 2}


def test_a_topic_that_vanishes_from_zookeeper_is_given_up_and_its_logs_are_left(cluster: ConformanceCluster) -> None:
    """Nobody requested its deletion, so no broker gets a StopReplica."""
    cluster.serve_topic("vanished", [[1, 2, 3]])
    cluster.wait_until_only_replicas_have_logs("vanished")
    cluster.znodes.client.delete("/brokers/topics/vanished", recursive=True)
    cluster.znodes.client.delete("/config/topics/vanished")
    cluster.serve_topic("after-vanished", [[1, 2, 3]])
    assert not cluster.exists("/brokers/topics/vanished")
    assert cluster.brokers_with_a_log("vanished") == {1, 2, 3}


@ours_only
def test_a_topic_that_vanishes_is_unknown_to_clients(cluster: ConformanceCluster) -> None:
    """Kafka's brokers list it until they restart."""
    cluster.serve_topic("forgotten", [[1, 2, 3]])
    cluster.wait_until_everybody_knows("forgotten")
    cluster.znodes.client.delete("/brokers/topics/forgotten", recursive=True)
    for broker in cluster.znodes.live_brokers():
        cluster.wait(
            lambda broker=broker: (  # type: ignore[misc]  # a lambda with a default
                cluster.metadata_of(broker, "forgotten").error_code is ErrorCode.unknown_topic_or_partition
            ),
            f"{broker} knows it no more",
        )


def test_a_topic_rewritten_without_its_id_is_the_same_topic(cluster: ConformanceCluster) -> None:
    """As tools before 2.8 write it (KAFKA-12835): the partitions continue, including the ones that are added with it."""
    cluster.serve_topic("stripped", [[1, 2]])
    topic_id = cluster.topic_id("stripped")
    path = "/brokers/topics/stripped"
    content = cluster.znodes.read(path)
    del content["topic_id"]
    content["partitions"]["1"] = [2, 1]
    cluster.znodes.client.set(path, json.dumps(content).encode())
    cluster.wait_until_served("stripped", 2)
    cluster.wait_until_everybody_knows("stripped", 1)
    for broker in cluster.znodes.live_brokers():
        assert cluster.metadata_of(broker, "stripped").topic_id == topic_id


@ours_only
def test_a_topic_rewritten_without_its_id_gets_it_back(cluster: ConformanceCluster) -> None:
    """Kafka's controller leaves it without, and the next one invents another id, which no broker serves."""
    cluster.serve_topic("restored", [[1, 2]])
    path = "/brokers/topics/restored"
    content = cluster.znodes.read(path)
    topic_id = content.pop("topic_id")
    cluster.znodes.client.set(path, json.dumps(content).encode())
    cluster.wait(lambda: cluster.znodes.read(path).get("topic_id") == topic_id, "the id is restored")


@ours_only
def test_a_topic_created_again_between_two_looks_is_another_topic(cluster: ConformanceCluster) -> None:
    """Kafka's controller compares names only, and goes on with the former topic's state."""
    cluster.serve_topic("swapped", [[1, 2]])
    former = cluster.topic_id("swapped")
    client = cluster.znodes.client
    transaction = client.transaction()
    for below in ("/partitions/0/state", "/partitions/0", "/partitions", ""):
        transaction.delete(f"/brokers/topics/swapped{below}")
    content = {"version": 3, "partitions": {"0": [3]}, "adding_replicas": {}, "removing_replicas": {}}
    transaction.create(
        "/brokers/topics/swapped", json.dumps({**content, "topic_id": "AAAAAAAAQACAAAAAAAAAAg"}).encode()
    )
    transaction.commit()
    cluster.wait_until_led("swapped", 3)
    cluster.wait_until_everybody_knows("swapped")
    for broker in cluster.znodes.live_brokers():
        assert cluster.metadata_of(broker, "swapped").topic_id == cluster.topic_id("swapped") != former

"""Logs of replicas that were removed from an unreachable broker: they are deleted when it can be reached."""

import json
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import (
    wait_until_empty,
    wait_until_gone,
    wait_until_in_sync,
    wait_until_led,
    wait_until_moved,
    wait_until_unregistered,
)
from tests.real.controller.clusters import OurCluster

REMOVED_REPLICAS = "/kontroller/removed_replicas"


def log_folder(cluster: OurCluster, broker: int, topic: str) -> Path:
    return cluster.kafka.broker(broker).log_folder / f"{topic}-0"


def move_away_from_killed(cluster: OurCluster, topic: str, broker: int, target: list[int]) -> None:
    cluster.kafka.broker(broker).kill()
    wait_until_unregistered(cluster.znodes, broker)
    cluster.znodes.reassign({(topic, 0): target})
    wait_until_moved(cluster.znodes, topic, target)
    assert log_folder(cluster, broker, topic).exists()
    assert cluster.znodes.client.get_children(REMOVED_REPLICAS) == [f"{broker},{topic},0"]


def test_the_log_on_a_killed_broker_is_deleted_when_it_returns(our_cluster: OurCluster) -> None:
    our_cluster.serve_topic("stray", [[1, 2, 3]])
    move_away_from_killed(our_cluster, "stray", 3, [1, 2, 4])
    our_cluster.kafka.broker(3).start()
    wait_until(lambda: not log_folder(our_cluster, 3, "stray").exists(), "the log is gone")
    wait_until_empty(our_cluster.znodes, REMOVED_REPLICAS)
    assert our_cluster.znodes.is_served("stray", [0])


@pytest.mark.timeout(300)
def test_a_topic_of_the_same_name_is_served_where_the_log_of_its_predecessor_was(our_cluster: OurCluster) -> None:
    our_cluster.serve_topic("again", [[1, 2, 3]])
    move_away_from_killed(our_cluster, "again", 3, [1, 2])
    our_cluster.znodes.mark_for_deletion("again")
    wait_until_gone(our_cluster.znodes, "/brokers/topics/again")
    our_cluster.znodes.create_topic("again", [[3, 4]])
    wait_until_in_sync(our_cluster.znodes, "again", 4)
    our_cluster.kafka.broker(3).start()
    our_cluster.wait_until_served("again")
    assert "INCONSISTENT_TOPIC_ID" not in our_cluster.broker_log(4)
    wait_until_empty(our_cluster.znodes, REMOVED_REPLICAS)
    our_cluster.kafka.broker(3).restart()
    our_cluster.wait_until_served("again")


@pytest.mark.timeout(400)
def test_replicas_that_a_dead_controller_dropped_and_did_not_stop_are_deleted_by_the_next(
    our_cluster: OurCluster,
) -> None:
    """It dies with the write that cancels the reassignment: 5 and 6 never got a StopReplica."""
    znodes, controller = our_cluster.znodes, our_cluster.controller
    our_cluster.serve_topic("dropped", [[1, 2]])
    our_cluster.kafka.broker(4).kill()
    wait_until_unregistered(our_cluster.znodes, 4)
    for _ in range(3):
        begin_a_move_and_cancel_it(our_cluster)
        if die_with_the_write_of_ar(our_cluster):
            break
        controller.restart_whole()
    assert sorted(znodes.client.get_children(REMOVED_REPLICAS)) == [f"{broker},dropped,0" for broker in (4, 5, 6)]
    controller.restart_whole()
    folders = [log_folder(our_cluster, broker, "dropped") for broker in (5, 6)]
    wait_until(lambda: not any(folder.exists() for folder in folders), f"{folders} are gone")
    our_cluster.kafka.broker(4).start()
    wait_until_empty(our_cluster.znodes, REMOVED_REPLICAS)
    our_cluster.wait_until_served("dropped")


def begin_a_move_and_cancel_it(our_cluster: OurCluster) -> None:
    """Start a move that a dead broker delays, and request its cancellation, while there is no controller."""
    znodes, controller = our_cluster.znodes, our_cluster.controller
    controller.kill(ends_session=False)  # no broker may take the role
    running = {
        "partitions": {"0": [4, 5, 6, 1, 2]},
        "adding_replicas": {"0": [4, 5, 6]},
        "removing_replicas": {"0": [1, 2]},
    }
    topic = {**znodes.read("/brokers/topics/dropped"), **running}
    znodes.client.set("/brokers/topics/dropped", json.dumps(topic).encode())
    controller.restart_whole()
    for broker in (5, 6):
        wait_until(log_folder(our_cluster, broker, "dropped").exists, f"{broker} has begun")
    controller.kill(ends_session=False)  # no broker may take the role
    znodes.reassign({("dropped", 0): [1, 2]})


def die_with_the_write_of_ar(our_cluster: OurCluster) -> bool:
    """Start controllers that die with their first, second, ... write, until AR was written.

    Return False if nobody recorded the dropped replicas: on a busy machine a broker may take the role between two of
    them, and cancel the move itself.
    """
    controller, znodes = our_cluster.controller, our_cluster.znodes
    for write in range(1, 20):
        controller.start_to_die(write, applied=True)
        wait_until(lambda: not controller.process.is_running, f"the controller dies at write {write}")
        if znodes.read_assignment("dropped", 0) == [1, 2]:
            return bool(znodes.client.get_children(REMOVED_REPLICAS))
    raise AssertionError("AR was never written")


@pytest.mark.timeout(400)
def test_a_topic_is_deleted_without_a_killed_broker_and_its_messages_never_come_back(our_cluster: OurCluster) -> None:
    """The broker returns to a topic of the same name that it is to serve, and later leads alone."""
    znodes = our_cluster.znodes
    with our_cluster.controller.change_settings(topic_deletion_waits_for_absent_brokers=False):
        our_cluster.serve_topic("hasty", [[1, 2, 3]])
        produce(our_cluster, "hasty", "old", 500)
        our_cluster.kafka.broker(3).kill()
        wait_until_unregistered(znodes, 3)
        znodes.mark_for_deletion("hasty")
        wait_until_gone(znodes, "/brokers/topics/hasty")
        assert log_folder(our_cluster, 3, "hasty").exists()
        assert znodes.client.get_children(REMOVED_REPLICAS) == ["3,hasty,0"]
        znodes.create_topic("hasty", [[3, 4]])
        wait_until_in_sync(znodes, "hasty", 4)
        produce(our_cluster, "hasty", "new", 20)
        our_cluster.kafka.broker(3).start()
        our_cluster.wait_until_served("hasty")
        wait_until_empty(znodes, REMOVED_REPLICAS)
        our_cluster.kafka.broker(4).kill()
        wait_until_led(znodes, "hasty", 3)
        assert consume(our_cluster, "hasty") == [f"new-{number}" for number in range(20)]
        our_cluster.kafka.broker(4).start()
        wait_until_in_sync(znodes, "hasty", 3, 4)


@pytest.mark.timeout(400)
def test_a_broker_deletes_what_it_missed_while_it_was_away_also_if_nothing_has_the_name_any_more(
    our_cluster: OurCluster,
) -> None:
    znodes = our_cluster.znodes
    with our_cluster.controller.change_settings(topic_deletion_waits_for_absent_brokers=False):
        our_cluster.serve_topic("gone", [[1, 5]])
        produce(our_cluster, "gone", "old", 50)
        our_cluster.kafka.broker(5).kill()
        wait_until_unregistered(znodes, 5)
        znodes.mark_for_deletion("gone")
        wait_until_gone(znodes, "/brokers/topics/gone")
        assert znodes.client.get_children("/admin/delete_topics") == []
    assert log_folder(our_cluster, 5, "gone").exists()
    our_cluster.kafka.broker(5).start()
    wait_until(lambda: not log_folder(our_cluster, 5, "gone").exists(), "the log is gone, also without the setting")
    wait_until_empty(znodes, REMOVED_REPLICAS)


def produce(cluster: OurCluster, topic: str, word: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for number in range(count):
        producer.produce(topic, f"{word}-{number}", partition=0)
    assert producer.flush(120) == 0


def consume(cluster: OurCluster, topic: str) -> list[str]:
    """Return all messages of partition 0."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": topic, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[str] = []
    try:
        while True:
            message = consumer.poll(60)
            assert message is not None, "nothing came"
            if (error := message.error()) is None:
                found.append((message.value() or b"").decode())
            elif error.code() == KafkaError._PARTITION_EOF:
                return found
    finally:
        consumer.close()

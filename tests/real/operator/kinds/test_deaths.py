"""An operator that dies after any write of a topic's creation, a reassignment or a cancellation."""

from collections.abc import Callable

import pytest

from devcluster.clusters.kafka import KafkaCluster
from devcluster.running.processes import ConditionTimeoutError, wait_until
from devcluster.waiting.vocabulary import serve_topic
from tests.real.operator.kinds.clusters import MARKS, topic_spec, under_kontroller, with_zookeeper
from tests.real.operator.operated import Objects, Operator, fill, slow_down
from tests.real.operator.witnesses import Znodes

pytestmark = MARKS


@under_kontroller
@pytest.mark.parametrize("die_after", range(1, 8))
def test_an_operator_that_dies_after_any_write_of_a_topics_creation_creates_it_once(
    operator: Operator, objects: Objects, znodes: Znodes, topic: str, die_after: int
) -> None:
    _die_and_go_on(operator, die_after, lambda: objects.apply("KafkaTopic", topic, topic_spec(deletionPolicy="Delete")))
    status = objects.wait_ready("kafkatopic", topic)["status"]
    _, stat = znodes.client.get(f"/brokers/topics/{topic}")
    assert stat.version == 0
    assert status["topicId"] == znodes.read(f"/brokers/topics/{topic}")["topic_id"]
    assert "TopicAdopted" not in objects.events(topic)
    assert "TopicRecreated" not in objects.events(topic)


@under_kontroller
@pytest.mark.parametrize("die_after", range(1, 7))
def test_an_operator_that_dies_after_any_write_of_a_reassignment_asks_for_it_once(
    operator: Operator, objects: Objects, znodes: Znodes, topic: str, die_after: int
) -> None:
    serve_topic(znodes, topic, [[1, 2], [2, 3]])
    partitions = [{"topic": topic, "partition": number, "replicas": [3, 1]} for number in range(2)]
    asked_before = _sequence_of_requests(znodes)
    _die_and_go_on(
        operator, die_after, lambda: objects.apply("PartitionReassignment", topic, {"partitions": partitions})
    )
    status = objects.wait_ready("partitionreassignment", topic)["status"]
    assert status["phase"] == "Completed"
    rows = sorted(status["partitions"], key=lambda row: int(row["partition"]))
    assert [row["originalReplicas"] for row in rows] == [[1, 2], [2, 3]]
    # The move is asked by a request. Broker 1 led and stays, so broker 3 must be elected, which takes one znode.
    assert _sequence_of_requests(znodes) == asked_before + 1


@with_zookeeper
@pytest.mark.parametrize("die_after", [1, 2, 3])
def test_an_operator_that_dies_after_any_write_of_a_cancellation_takes_the_move_back(
    operator: Operator, objects: Objects, znodes: Znodes, kafka: KafkaCluster, topic: str, die_after: int
) -> None:
    serve_topic(znodes, topic, [[1]])
    fill(kafka, topic)
    with slow_down(kafka, topic):
        partitions = [{"topic": topic, "partition": 0, "replicas": [3]}]
        objects.apply("PartitionReassignment", topic, {"partitions": partitions})
        wait_until(lambda: znodes.read_assignment(topic, 0) == [3, 1], "the move runs")
        operator.process.kill()
        objects.delete("partitionreassignment", topic)
        operator.start(die_after=die_after)
        operator.wait_until_dead()
        operator.start()
        objects.wait_gone("partitionreassignment", topic)
        assert znodes.read_assignment(topic, 0) == [1]
        assert not znodes.has_reassignments()


def _die_and_go_on(operator: Operator, die_after: int, act: Callable[[], None]) -> None:
    """Let an operator die after a number of writes, which may be too high, and let a whole one continue."""
    operator.process.stop()
    operator.start(die_after=die_after)
    act()
    wait_until(lambda: not operator.process.is_running or _is_quiet(operator), "the operator died or is done")
    operator.process.kill()
    operator.start()


def _is_quiet(operator: Operator) -> bool:
    """Return True if a running operator has nothing left to write: its log does not change for a while."""
    before = operator.writes()
    if not before:
        return False
    try:
        wait_until(lambda: operator.writes() != before or not operator.process.is_running, "it writes", longest_s=3)
    except ConditionTimeoutError:
        return True
    return False


def _sequence_of_requests(znodes: Znodes) -> int:
    """Return the number of creations under /admin: ZooKeeper counts two changes of children for each."""
    return int(znodes.client.exists("/admin").cversion) // 2

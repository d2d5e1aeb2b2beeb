"""Reassignments: progress, pauses, cancellation, and moves that a topic owns."""

import pytest

from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kraft import KRaftCluster
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import serve_topic
from tests.real.operator.kinds.clusters import MARKS, topic_spec
from tests.real.operator.operated import FINALIZER, Objects, Operator, fill, slow_down
from tests.real.operator.witnesses import Witness

pytestmark = MARKS


def test_a_paused_move_says_what_it_would_do_and_begins_without_its_pause(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    serve_topic(witness, topic, [[1, 2], [2, 3]])
    targets = [{"topic": topic, "partition": number, "replicas": [3, 1]} for number in (0, 1)]
    spec = {"partitions": targets, "throttle": {"bytesPerSecond": 10_000_000}}
    objects.apply("PartitionReassignment", topic, spec, annotations={"kontroller.dev/pause": "true"})
    wait_until(lambda: "nextSteps" in objects.status("partitionreassignment", topic), "it says what would be done")
    assert objects.status("partitionreassignment", topic)["nextSteps"] == [
        "limit the move to 10000000 bytes a second at each broker",
        f"move 2 partitions: {topic}-0, {topic}-1",
    ]
    assert witness.partitions(topic) == {0: [1, 2], 1: [2, 3]}
    objects.annotate("partitionreassignment", topic, "kontroller.dev/pause-")
    objects.wait_for("partitionreassignment", topic, "Complete")
    assert "nextSteps" not in objects.status("partitionreassignment", topic)


def test_a_reassignment_shows_every_partition_until_all_are_done(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    serve_topic(witness, topic, [[1, 2], [2, 3], [3, 1]])
    targets = {0: [2, 3], 1: [3, 1], 2: [3, 1]}
    partitions = [{"topic": topic, "partition": number, "replicas": to} for number, to in targets.items()]
    objects.apply("PartitionReassignment", topic, {"partitions": partitions})
    status = objects.wait_ready("partitionreassignment", topic)["status"]
    assert status["phase"] == "Completed"
    assert status["counts"] == {"total": 3, "waiting": 0, "moving": 0, "done": 3, "failed": 0, "cancelled": 0}
    rows = {row["partition"]: row for row in status["partitions"]}
    assert [rows[number]["originalReplicas"] for number in range(3)] == [[1, 2], [2, 3], [3, 1]]
    for number, to in targets.items():
        assert rows[number]["step"] == "Done"
        assert rows[number]["replicas"] == to == witness.read_assignment(topic, number)
        assert rows[number]["leader"] in to
        assert set(to) <= set(witness.isr(topic, number))
    assert not witness.has_reassignments()


def test_a_reassignment_of_what_is_there_already_is_complete_at_once(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    serve_topic(witness, topic, [[1, 2]])
    spec = {"partitions": [{"topic": topic, "partition": 0, "replicas": [1, 2]}], "ttlSecondsAfterFinished": 1}
    objects.apply("PartitionReassignment", topic, spec)
    wait_until(lambda: objects.get("partitionreassignment", topic) is None, "the finished object deletes itself")
    assert "transact" not in operator.writes()


@pytest.mark.parametrize("is_operator_away", [False, True])
def test_deleting_a_running_reassignment_takes_it_back(
    operator: Operator,
    objects: Objects,
    witness: Witness,
    kafka: KafkaCluster | KRaftCluster,
    topic: str,
    is_operator_away: bool,
) -> None:
    serve_topic(witness, topic, [[1], [2]])
    fill(kafka, topic)
    with slow_down(kafka, topic):
        partitions = [{"topic": topic, "partition": number, "replicas": [3]} for number in range(2)]
        objects.apply("PartitionReassignment", topic, {"partitions": partitions})
        wait_until(
            lambda: objects.status("partitionreassignment", topic).get("counts", {}).get("done") == 1,
            "the empty partition has moved",
        )
        running = objects.get("partitionreassignment", topic) or {}
        assert running["status"]["phase"] == "Running", "it was not slowed"
        assert FINALIZER in running["metadata"]["finalizers"]
        assert witness.read_assignment(topic, 0) == [3, 1]
        wait_until(
            lambda: "bytesLeft" in objects.status("partitionreassignment", topic).get("progress", {}),
            "it is known how much is left",
        )
        if is_operator_away:
            operator.process.kill()
        objects.delete("partitionreassignment", topic)
        if is_operator_away:
            assert witness.read_assignment(topic, 0) == [3, 1], "nobody took it back"
            operator.start()
        objects.wait_gone("partitionreassignment", topic)
        assert witness.read_assignment(topic, 0) == [1]
        assert witness.read_assignment(topic, 1) == [3], "what had moved stays"
        assert not witness.has_reassignments()
    objects.wait_for_event(topic, "ReassignmentCancelled")


def test_a_change_of_the_replication_factor_moves_replicas_with_an_object_that_the_topic_owns(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    objects.apply("KafkaTopic", topic, topic_spec())
    objects.wait_ready("kafkatopic", topic)
    objects.apply("KafkaTopic", topic, topic_spec(replicationFactor=3))
    status = objects.wait_ready("kafkatopic", topic)["status"]
    assert status["replicationFactor"] == 3
    assert all(sorted(witness.read_assignment(topic, number)) == [1, 2, 3] for number in range(3))
    owned = [each for each in objects.every("partitionreassignments") if each["metadata"].get("ownerReferences")]
    assert [each["metadata"]["ownerReferences"][0]["name"] for each in owned if topic in each["metadata"]["name"]] == [
        topic
    ]

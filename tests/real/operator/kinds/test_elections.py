"""Preferred elections, once and by a schedule."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kraft import KRaftCluster
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import serve_topic
from kontroller import BlockingAdminClient
from tests.real.operator.kinds.clusters import MARKS, with_zookeeper
from tests.real.operator.operated import Objects, Operator
from tests.real.operator.witnesses import Witness, Znodes

pytestmark = MARKS
Brokers = KafkaCluster | KRaftCluster


def move_without_operator(brokers: Brokers, witness: Witness, topic: str) -> None:
    """Move partition 0 to brokers 3 and 1. Kafka lets broker 1 lead on, and so does the operator, which did not move it."""
    plan = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [3, 1]}]}
    with BlockingAdminClient({"bootstrap.servers": brokers.bootstrap_servers}) as admin:
        admin.reassign_partitions(json.dumps(plan)).result()
    wait_until(lambda: witness.read_assignment(topic, 0) == [3, 1], "the replicas are on brokers 3 and 1")
    assert witness.leader(topic, 0) == 1


def test_a_preferred_election_gives_the_leaders_back_and_is_deleted(
    operator: Operator, objects: Objects, witness: Witness, kafka: Brokers, topic: str
) -> None:
    serve_topic(witness, topic, [[1, 2], [2, 1]])
    move_without_operator(kafka, witness, topic)
    objects.apply("PreferredElection", topic, {"topics": [topic]})
    objects.wait_for("kpe", topic, "Complete")
    status = objects.status("preferredelection", topic)
    rows = {row["partition"]: (row["result"], row["leaderBefore"], row["leaderAfter"]) for row in status["partitions"]}
    assert rows == {0: ("Elected", 1, 3), 1: ("NotNeeded", 2, 2)}
    assert witness.leader(topic, 0) == 3
    assert status["counts"]["elected"] == status["counts"]["notNeeded"] == 1
    objects.delete("preferredelection", topic)
    objects.wait_gone("preferredelection", topic)
    assert witness.leader(topic, 0) == 3


@with_zookeeper
def test_an_election_with_a_schedule_makes_up_for_a_run_that_was_missed_and_goes_on(
    operator: Operator, objects: Objects, znodes: Znodes, kafka: Brokers, topic: str
) -> None:
    serve_topic(znodes, topic, [[1, 2]])
    move_without_operator(kafka, znodes, topic)

    def status() -> dict[str, Any]:
        return objects.status("preferredelection", topic)

    later = datetime.now(UTC) + timedelta(minutes=30)  # so that no run is due while the test runs
    objects.apply("PreferredElection", topic, {"topics": [topic], "schedule": f"{later.minute} * * * *"})
    planned = objects.wait_ready("preferredelection", topic, "True", "Scheduled")["status"]
    operator.process.stop()
    assert "lastRunTime" not in status()
    # The operator knows a missed run by this time alone.
    missed = datetime.fromisoformat(planned["nextRunTime"]) - timedelta(hours=1)
    due_at = f"{missed:%Y-%m-%dT%H:%M:%SZ}"
    objects.patch("preferredelection", topic, {"status": {"nextRunTime": due_at}}, subresource="status")
    operator.start()
    wait_until(lambda: znodes.leader(topic, 0) == 3, "the run was made up for")
    wait_until(lambda: status().get("lastRunResult") == "Completed", "the run has ended")
    after = status()
    assert (after["phase"], after["counts"]["elected"]) == ("Scheduled", 1)
    assert due_at <= after["lastRunTime"] < after["nextRunTime"]
    objects.wait_for_event(topic, "ElectionCompleted")
    assert objects.events(topic).count("ElectionCompleted") == 1

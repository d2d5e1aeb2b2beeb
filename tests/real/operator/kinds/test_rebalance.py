"""RebalancePlans on real brokers: brokers are drained and filled under load, by the plan that the status shows."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kraft import KRaftCluster
from devcluster.running.processes import wait_until
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import serve_topic
from kontroller import BlockingAdminClient
from tests.real.operator.kinds.clusters import MARKS
from tests.real.operator.operated import Objects, Operator
from tests.real.operator.witnesses import Witness

pytestmark = MARKS
SILENCE_S = 150.0
"""The servers may be silent while a broker's minute, and that of the operator's sight, go by."""


def make_spec(topic: str, mode: str, broker: int, **more: Any) -> dict[str, Any]:
    """Return the spec of a plan for one topic, because the brokers are shared by tests."""
    return {"mode": mode, "brokers": [broker], "scope": {"topics": [topic]}, "betweenLooksSeconds": 1, **more}


def list_owned(objects: Objects, plan: str) -> list[dict[str, Any]]:
    return [
        each
        for each in objects.every("partitionreassignments")
        if any(owner["name"] == plan for owner in each["metadata"].get("ownerReferences", ()))
    ]


def remove_other_topics(objects: Objects, kafka: KafkaCluster | KRaftCluster) -> None:
    """Remove all topics but Kafka's own, because whether a broker is filled depends on the loads of all topics."""
    for each in objects.every("kafkatopics"):
        objects.delete("kafkatopic", each["metadata"]["name"])
    wait_until(lambda: not objects.every("kafkatopics"), "no KafkaTopic creates its topic again")
    with BlockingAdminClient({"bootstrap.servers": kafka.bootstrap_servers}) as admin:

        def list_others() -> list[str]:
            return [each for each in admin.list_topics().alive if not each.startswith("__")]

        for topic in list_others():
            admin.delete_topic(topic)
        wait_until(lambda: not list_others(), "the topics are gone")


def test_a_broker_is_drained_under_load_by_the_plan_that_was_approved(
    operator: Operator, objects: Objects, witness: Witness, kafka: KafkaCluster | KRaftCluster, topic: str
) -> None:
    serve_topic(witness, topic, [[1, 2], [2, 1], [3, 1], [2, 3]])
    spec = make_spec(topic, "drain", 1, approval="Required", throttle={"bytesPerSecond": 50_000_000})
    with nothing_lost(kafka.bootstrap_servers, topic, more_than=100):
        objects.apply("RebalancePlan", topic, spec)
        shown = objects.wait_ready("rebalanceplan", topic, "False", "AwaitingApproval")["status"]
        planned = {row["partition"]: row["after"] for row in shown["moves"]}
        assert planned.keys() == {0, 1, 2}
        assert not any(1 in replicas for replicas in planned.values())
        sizes = [row["bytes"] for row in shown["moves"]]
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[-1] > 0, "the sizes are those of the logs"
        assert witness.read_assignment(topic, 0) == [1, 2]
        objects.apply("RebalancePlan", topic, {**spec, "approvedPlan": shown["planHash"]})
        objects.wait_for("rebalanceplan", topic, "Complete")
        wait_until(
            lambda: {number: witness.read_assignment(topic, number) for number in planned} == planned,
            "the brokers know the replicas of the plan",
        )
        for number, replicas in planned.items():
            wait_until(lambda at=number, first=replicas[0]: witness.leader(topic, at) == first, "the first one leads")  # type: ignore[misc]  # a lambda with defaults
        assert witness.read_assignment(topic, 3) == [2, 3], "it had no replica there"
    status = objects.status("rebalanceplan", topic)
    assert (status["counts"]["done"], status["counts"]["failed"]) == (3, 0)
    assert [row["phase"] for row in status["reassignments"]] == ["Completed"]
    assert not witness.has_reassignments()
    objects.wait_for_event(topic, "PlanCompleted")


def test_a_broker_with_more_bytes_than_its_share_is_relieved_and_nothing_else_moves(
    operator: Operator, objects: Objects, witness: Witness, kafka: KafkaCluster | KRaftCluster, topic: str
) -> None:
    remove_other_topics(objects, kafka)
    partitions = range(4)
    serve_topic(witness, topic, [[1, 2]] * len(partitions))
    with nothing_lost(kafka.bootstrap_servers, topic, more_than=100):
        objects.apply("RebalancePlan", topic, make_spec(topic, "relieve", 1))
        objects.wait_for("rebalanceplan", topic, "Complete")
    held = [witness.read_assignment(topic, number) for number in partitions]
    status = objects.status("rebalanceplan", topic)
    assert 0 < sum(1 not in replicas for replicas in held) == status["counts"]["done"] < len(partitions)
    assert all(2 in replicas for replicas in held), "nothing leaves another broker"
    assert not witness.has_reassignments()


def test_a_broker_is_filled_in_batches_and_an_operator_that_is_killed_goes_on(
    operator: Operator, objects: Objects, witness: Witness, kafka: KafkaCluster | KRaftCluster, topic: str
) -> None:
    remove_other_topics(objects, kafka)
    partitions = 6
    serve_topic(witness, topic, [[1, 2], [2, 1]] * (partitions // 2))
    with nothing_lost(kafka.bootstrap_servers, topic, more_than=100):
        objects.apply("RebalancePlan", topic, make_spec(topic, "expand", 3, limits={"maxBatchBytesPerBroker": 1}))
        wait_until(lambda: bool(list_owned(objects, topic)), "the first batch begins")
        operator.process.kill()
        operator.start()
        objects.wait_for("rebalanceplan", topic, "Complete")
    held = [witness.read_assignment(topic, number) for number in range(partitions)]
    status = objects.status("rebalanceplan", topic)
    # Changes of the preferred leader alone count as moves, too.
    assert 0 < sum(3 in replicas for replicas in held) <= status["counts"]["done"]
    assert sum(each["done"] for each in status["reassignments"]) == status["counts"]["done"]
    assert len(list_owned(objects, topic)) == len(status["reassignments"]) > 1
    assert all(each["status"]["phase"] == "Completed" for each in list_owned(objects, topic))
    assert not witness.has_reassignments()


def measure_percents(kafka: KafkaCluster | KRaftCluster) -> dict[str, int]:
    """Return the highest loads of a broker as percentages of its share, of replicas and of leaders."""
    with BlockingAdminClient({"bootstrap.servers": kafka.bootstrap_servers}) as admin:
        partitions = admin.describe_loads(between_looks_s=0).partitions.values()
    brokers = 3
    held = Counter(broker for each in partitions for broker in each.replicas)
    led = Counter(each.leader for each in partitions)
    return {
        name: round(100 * brokers * max(counts.values()) / counts.total())
        for name, counts in (("replicas", held), ("leaders", led))
    }


def test_a_cluster_is_balanced_under_load_as_the_plan_promised(
    operator: Operator, objects: Objects, witness: Witness, kafka: KafkaCluster | KRaftCluster, topic: str
) -> None:
    remove_other_topics(objects, kafka)
    partitions = range(9)
    serve_topic(witness, topic, [[1, 2]] * len(partitions))
    spec = {"mode": "rebalance", "betweenLooksSeconds": 1, "throttle": {"bytesPerSecond": 50_000_000}}
    with nothing_lost(kafka.bootstrap_servers, topic, more_than=100):
        objects.apply("RebalancePlan", topic, spec)
        objects.wait_for("rebalanceplan", topic, "Complete")
        status = objects.status("rebalanceplan", topic)
        rows = {each["name"]: each for each in status["resources"]}
        promised = {name: rows[name]["afterPercent"] for name in ("replicas", "leaders")}
        assert all(promised[name] < rows[name]["beforePercent"] for name in promised)
        wait_until(lambda: measure_percents(kafka) == promised, "the balance is what the plan promised")
    assert status["counts"]["failed"] == 0
    assert not witness.has_reassignments()


def test_a_plan_that_is_impossible_says_what_is_missing_and_moves_nothing(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    serve_topic(witness, topic, [[1, 2, 3]])
    objects.apply("RebalancePlan", topic, make_spec(topic, "drain", 1))
    status = objects.wait_ready("rebalanceplan", topic, "False", "PlanImpossible")["status"]
    assert any(each["type"] == "Stalled" for each in status["conditions"])
    assert f"{topic}-0: 3 replicas need as many brokers" in objects.condition("rebalanceplan", topic)["message"]
    assert witness.read_assignment(topic, 0) == [1, 2, 3]
    assert not list_owned(objects, topic)


def test_a_plan_with_a_schedule_makes_up_for_a_run_that_was_missed_and_goes_on(
    operator: Operator, objects: Objects, witness: Witness, kafka: KafkaCluster | KRaftCluster, topic: str
) -> None:
    serve_topic(witness, topic, [[1, 2], [2, 1]])

    def status() -> dict[str, Any]:
        return objects.status("rebalanceplan", topic)

    later = datetime.now(UTC) + timedelta(minutes=30)  # so that no run is due while the test runs
    always = [{"schedule": "* * * * *", "durationMinutes": 60}]
    spec = make_spec(topic, "drain", 1, schedule=f"{later.minute} * * * *", windows=always)
    with nothing_lost(kafka.bootstrap_servers, topic, more_than=100):
        objects.apply("RebalancePlan", topic, spec)
        planned = objects.wait_ready("rebalanceplan", topic, "True", "Scheduled")["status"]
        assert (planned["phase"], planned["moves"]) == ("Scheduled", [])
        operator.process.stop()
        missed = datetime.fromisoformat(planned["nextRunTime"]) - timedelta(hours=1)
        due_at = f"{missed:%Y-%m-%dT%H:%M:%SZ}"
        objects.patch("rebalanceplan", topic, {"status": {"nextRunTime": due_at}}, subresource="status")
        operator.start()
        wait_until(lambda: status().get("lastRunResult") == "Completed", "the run was made up for")
    assert not any(1 in witness.read_assignment(topic, number) for number in range(2))
    after = status()
    assert (after["phase"], after["counts"]["done"]) == ("Scheduled", 2)
    assert due_at <= after["lastRunTime"] < after["nextRunTime"]
    assert [each["spec"]["schedule"]["windows"] for each in list_owned(objects, topic)] == [always]
    assert objects.condition("rebalanceplan", topic)["status"] == "True"
    objects.wait_for_event(topic, "PlanCompleted")


def test_a_broker_that_is_lost_is_healed_under_load(
    operator: Operator, objects: Objects, witness: Witness, kafka: KafkaCluster | KRaftCluster, topic: str
) -> None:
    partitions = range(4)
    serve_topic(witness, topic, [[1, 2], [2, 3], [3, 1], [3, 2]])
    spec = {
        "mode": "heal",
        "heal": {"afterMinutes": 1},
        "scope": {"topics": [topic]},
        "betweenLooksSeconds": 1,
    }

    def status() -> dict[str, Any]:
        return objects.status("rebalanceplan", topic)

    with nothing_lost(kafka.bootstrap_servers, topic, more_than=100):
        objects.apply("RebalancePlan", topic, spec)
        assert "no broker is gone" in str(objects.wait_ready("rebalanceplan", topic)["status"]["conditions"])
        assert status()["knownBrokers"] == [1, 2, 3]
        kafka.broker(3).kill()
        try:
            wait_until(lambda: "gone since" in str(status()["conditions"]), "the operator sees that it is gone")
            operator.process.kill()  # the time of the loss is on record
            operator.start()
            healed = "the broker is healed"
            wait_until(lambda: status().get("lastRunResult") == "Completed", healed, silence_s=SILENCE_S)
            held = [witness.read_assignment(topic, number) for number in partitions]
            assert all(sorted(replicas) == [1, 2] for replicas in held), held
            assert all(sorted(witness.isr(topic, number)) == [1, 2] for number in partitions)
        finally:
            kafka.broker(3).start()
    shown = status()
    assert shown["healing"] == {"mode": "drain", "brokers": [3]}
    assert (shown["phase"], shown["counts"]["done"], shown["counts"]["failed"]) == ("Scheduled", 3, 0)
    objects.wait_for_event(topic, "HealingBegins")
    objects.delete("rebalanceplan", topic)
    objects.wait_gone("rebalanceplan", topic)


def test_a_move_that_was_planned_before_the_replicas_changed_is_refused(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    serve_topic(witness, topic, [[1, 2]])
    entry = {"topic": topic, "partition": 0, "replicas": [2, 3]}
    objects.apply("PartitionReassignment", f"{topic}-old", {"partitions": [{**entry, "expectedReplicas": [1, 3]}]})
    objects.wait_ready("partitionreassignment", f"{topic}-old", "False", "PlanOutdated")
    said = objects.condition("partitionreassignment", f"{topic}-old")["message"]
    assert f"{topic}-0 has replicas [1,2] and not [1,3]" in said
    assert witness.read_assignment(topic, 0) == [1, 2]
    objects.delete("partitionreassignment", f"{topic}-old")
    objects.apply("PartitionReassignment", f"{topic}-new", {"partitions": [{**entry, "expectedReplicas": [1, 2]}]})
    objects.wait_for("partitionreassignment", f"{topic}-new", "Complete")
    assert witness.read_assignment(topic, 0) == [2, 3]

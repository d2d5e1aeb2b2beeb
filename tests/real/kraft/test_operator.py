"""The operator on a cluster without ZooKeeper whose brokers need a login: real features, and failures.

Its work on topics, moves and elections is in `tests/real/operator`, the same as with ZooKeeper.
"""

from typing import Any

import pytest

from devcluster.clusters.kraft import KRaftCluster
from devcluster.filling.parts import Part
from devcluster.running.processes import wait_until
from tests.real.operator.operated import Objects, Operator

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(300)]

OF_4_0, OF_4_1 = 25, 27


def levels(**features: int) -> dict[str, Any]:
    names = {name.replace("_", "."): level for name, level in features.items()}
    return {"features": [{"name": name, "maxVersionLevel": level} for name, level in names.items()]}


def list_finalized(objects: Objects) -> dict[str, int]:
    """Return the finalized levels in the KafkaCluster's status."""
    shown = objects.status("kafkacluster", "demo").get("features", {}).get("finalized", [])
    return {each["name"]: each["maxVersionLevel"] for each in shown}


def test_features_are_tried_upgraded_and_never_lowered_where_kafka_refuses_it(
    operator: Operator, objects: Objects
) -> None:
    objects.wait_ready("kafkacluster", "demo")
    assert list_finalized(objects)["metadata.version"] == OF_4_0
    upgraded = levels(metadata_version=OF_4_1, kraft_version=1, group_version=1, transaction_version=2)
    objects.apply("FeatureSet", "levels", {**upgraded, "dryRun": True})
    dry = objects.wait_ready("featureset", "levels", "False", "DryRun")["status"]
    assert dry["features"][0]["message"] == f"to be changed: metadata.version from {OF_4_0} to {OF_4_1}"
    assert list_finalized(objects)["metadata.version"] == OF_4_0

    objects.apply("FeatureSet", "levels", upgraded)
    status = objects.wait_ready("featureset", "levels")["status"]
    assert {each["name"]: each["finalizedLevel"] for each in status["features"]} == {
        "metadata.version": OF_4_1,
        "kraft.version": 1,
        "group.version": 1,
        "transaction.version": 2,
    }
    wait_until(lambda: list_finalized(objects).get("metadata.version") == OF_4_1, "the KafkaCluster shows it")

    lower = {**levels(metadata_version=20, transaction_version=1), "allowDowngrade": True}
    for dry_run, reason in ((True, "DryRun"), (False, "RequestRefused")):
        objects.apply("FeatureSet", "levels", {**lower, "dryRun": dry_run})
        refused = objects.wait_ready("featureset", "levels", "False", reason)["status"]["features"]
        assert "it might delete metadata information" in refused[0]["message"]
    wait_until(lambda: list_finalized(objects).get("transaction.version") == 1, "what is not refused is done")
    assert list_finalized(objects)["metadata.version"] == OF_4_1
    objects.delete("featureset", "levels")


def test_a_topic_that_leaves_a_broker_that_is_down_is_limited(
    operator: Operator, objects: Objects, kafka: KRaftCluster
) -> None:
    reported = {"driftPolicy": "Report"}  # another test empties broker 1
    objects.apply("KafkaTopic", "limited", {"replicaAssignment": [[1, 2]], **reported})
    objects.wait_ready("kafkatopic", "limited")
    kafka.broker(2).kill()
    limit = {"reassignment": {"throttle": {"bytesPerSecond": 1_000_000}}}
    objects.apply("KafkaTopic", "limited", {"replicaAssignment": [[1, 3]], **reported, **limit})
    objects.wait_ready("kafkatopic", "limited")
    (name,) = [
        each["metadata"]["name"]
        for each in objects.every("partitionreassignment")
        if each["metadata"]["name"].startswith("limited-")
    ]
    move = objects.wait_ready("partitionreassignment", name)
    assert move["spec"]["throttle"] == limit["reassignment"]["throttle"]
    assert (move["status"]["phase"], "throttle" in move["status"]) == ("Completed", False)
    assert "SetThrottle" in operator.log()
    kafka.broker(2).start()


def test_work_goes_on_over_the_death_of_the_active_controller_and_of_a_broker(
    operator: Operator, objects: Objects, kafka: KRaftCluster
) -> None:
    active = objects.wait_ready("kafkacluster", "demo")["status"]["controller"]["id"]
    kafka.controller(active).kill()
    objects.apply(
        "KafkaTopic", "lasting", {"partitions": 2, "replicationFactor": 1, "config": {"retention.ms": "9000"}}
    )
    kafka.broker(1).kill()
    objects.wait_ready("kafkatopic", "lasting")
    objects.apply("KafkaTopic", "lasting", {"partitions": 4, "replicationFactor": 2})
    kafka.start()
    status = objects.wait_ready("kafkatopic", "lasting")["status"]
    assert (status["counts"]["partitions"], status["replicationFactor"]) == (4, 2)
    after = objects.wait_ready("kafkacluster", "demo")["status"]
    assert after["controller"]["kind"] == "KRaft"
    wait_until(
        lambda: [broker["id"] for broker in objects.status("kafkacluster", "demo")["brokers"]] == [1, 2, 3],
        "the cluster has all brokers",
    )
    assert "TopicAdopted" not in objects.events("lasting")


def test_a_partition_whose_last_replica_in_sync_is_gone_gets_another_leader_where_a_person_takes_the_loss(
    operator: Operator, objects: Objects, kafka: KRaftCluster
) -> None:
    def leader() -> int:
        return int(objects.status("kafkatopic", "lossy")["partitions"][0]["leader"])

    objects.apply("KafkaTopic", "lossy", {"replicaAssignment": [[2, 3]], "config": {"min.insync.replicas": "1"}})
    objects.wait_ready("kafkatopic", "lossy")
    kafka.broker(3).kill()
    wait_until(lambda: objects.status("kafkatopic", "lossy")["partitions"][0]["isr"] == [2], "3 is out of sync")
    kafka.broker(2).kill()
    wait_until(lambda: leader() == -1, "nobody leads it")
    kafka.broker(3).start()
    objects.wait_ready("kafkatopic", "lossy", "False", "PartitionsOffline")
    objects.apply(
        "PreferredElection",
        "lossy",
        {"electionType": "Unclean", "acknowledgeDataLoss": True, "partitions": [{"topic": "lossy", "partition": 0}]},
    )
    objects.wait_for("preferredelection", "lossy", "Complete")
    wait_until(lambda: leader() == 3, "3 leads")
    kafka.broker(2).start()
    objects.wait_ready("kafkatopic", "lossy")


def test_a_broker_is_emptied_of_what_it_has(operator: Operator, objects: Objects) -> None:
    def replicas() -> list[set[int]]:
        return [set(each["replicas"]) for each in objects.status("kafkatopic", "leaving")["partitions"]]

    objects.apply("KafkaTopic", "leaving", {"replicaAssignment": [[1, 2], [3, 1]], "driftPolicy": "Report"})
    objects.wait_ready("kafkatopic", "leaving")
    objects.apply("PartitionReassignment", "leaving", {"drainBrokers": [1]})
    objects.wait_for("partitionreassignment", "leaving", "Complete")
    wait_until(lambda: replicas() == [{2, 3}, {2, 3}], "nothing is on broker 1")

"""One test of each kind of object, from creation to deletion, on the usual clusters; other releases run at night."""

import pytest

from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kraft import KRaftCluster
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import serve_topic
from tests.real.operator.kinds.clusters import CLUSTERS, MARKS, OTHER, OTHER_RELEASES, on_every_release, topic_spec
from tests.real.operator.operated import FINALIZER, RECORD_BYTES, Objects, Operator, fill
from tests.real.operator.witnesses import Witness

pytestmark = MARKS


@on_every_release
def test_a_retained_topic_outlives_its_object_and_a_deleted_one_does_not(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    objects.apply("KafkaTopic", topic, topic_spec())
    retained = objects.wait_ready("kafkatopic", topic)
    assert "finalizers" not in retained["metadata"]
    objects.delete("kafkatopic", topic)
    objects.wait_gone("kafkatopic", topic)
    assert witness.is_served(topic, range(3))

    objects.apply("KafkaTopic", topic, topic_spec(deletionPolicy="Delete"))
    held = objects.wait_ready("kafkatopic", topic)
    assert held["metadata"]["finalizers"] == [FINALIZER]
    objects.delete("kafkatopic", topic)
    objects.wait_gone("kafkatopic", topic)
    assert witness.topic_id(topic) is None
    objects.wait_for_event(topic, "TopicDeleted")


@on_every_release
def test_a_finished_reassignment_is_deleted_and_nothing_is_cancelled(
    operator: Operator, objects: Objects, witness: Witness, topic: str
) -> None:
    serve_topic(witness, topic, [[1]])
    objects.apply("PartitionReassignment", topic, {"partitions": [{"topic": topic, "partition": 0, "replicas": [2]}]})
    objects.wait_ready("partitionreassignment", topic)
    wait_until(
        lambda: not (objects.get("partitionreassignment", topic) or {})["metadata"].get("finalizers"),
        "the finalizer is released",
    )
    objects.delete("partitionreassignment", topic)
    objects.wait_gone("partitionreassignment", topic)
    assert witness.read_assignment(topic, 0) == [2]


@pytest.mark.parametrize(
    ("operated_cluster", "policy"),
    [
        *((cluster, policy) for cluster in CLUSTERS for policy in ("Enforce", "Report", "Ignore")),
        *(pytest.param(release, "Enforce", marks=OTHER) for release in OTHER_RELEASES),
    ],
    indirect=["operated_cluster"],
)
def test_a_change_that_is_taken_back_while_its_move_runs_takes_the_move_back(
    operator: Operator, objects: Objects, kafka: KafkaCluster | KRaftCluster, witness: Witness, topic: str, policy: str
) -> None:
    how = {"throttle": {"bytesPerSecond": RECORD_BYTES}, "maxConcurrentPartitions": 1}
    objects.apply("KafkaTopic", topic, topic_spec(driftPolicy=policy, reassignment=how))
    objects.wait_ready("kafkatopic", topic)
    before = witness.partitions(topic)
    fill(kafka, topic)
    objects.apply("KafkaTopic", topic, topic_spec(replicationFactor=3, driftPolicy=policy, reassignment=how))
    wait_until(lambda: len(witness.read_assignment(topic, 0)) == 3, "the first partition moves")
    objects.apply("KafkaTopic", topic, topic_spec(driftPolicy=policy, reassignment=how))
    assert objects.wait_ready("kafkatopic", topic, reason="Reconciled")["status"].get("drift", []) == []
    assert (witness.partitions(topic), witness.has_reassignments()) == (before, False)
    assert not witness.throttles(topic).is_remembered
    assert "MoveCancelled" in objects.events(topic)
    assert "DriftCorrected" not in objects.events(topic)
    assert objects.condition("kafkatopic", topic, "Drifted")["status"] == "False"


@on_every_release
def test_a_feature_set_that_no_broker_supports_says_so_and_is_deleted(
    operator: Operator, objects: Objects, topic: str
) -> None:
    levels = [{"name": topic, "maxVersionLevel": 1}]
    objects.apply("FeatureSet", topic, {"features": levels, "deletionPolicy": "Delete"})
    blocked = objects.wait_ready("featureset", topic, "False", "FeatureUnsupported")
    assert blocked["metadata"]["finalizers"] == [FINALIZER]
    assert blocked["status"]["features"][0]["blockedBy"] == [1, 2, 3]
    objects.delete("featureset", topic)
    objects.wait_gone("featureset", topic)

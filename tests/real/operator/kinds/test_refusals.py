"""Topics that cannot be: their reasons, and their deletion."""

from typing import Any

import pytest

from tests.real.operator.kinds.clusters import MARKS, topic_spec, with_zookeeper
from tests.real.operator.operated import FINALIZER, Objects, Operator
from tests.real.operator.witnesses import Witness

pytestmark = MARKS


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (topic_spec(replicationFactor=5), "NotEnoughBrokers"),
        ({"replicaAssignment": [[1, 9]]}, "UnknownBroker"),
        (topic_spec(config={"retention.ms": "for ever"}), "InvalidConfig"),
        (topic_spec(config={"retention": "1"}), "InvalidConfig"),
        (topic_spec(clusterRef={"name": "nowhere"}), "ClusterNotFound"),
        (topic_spec(clusterRef={"name": "demo", "namespace": "default"}), "ClusterNotFound"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason_and_nothing_is_written(
    operator: Operator, objects: Objects, witness: Witness, topic: str, spec: dict[str, Any], reason: str
) -> None:
    objects.apply("KafkaTopic", topic, spec)
    objects.wait_ready("kafkatopic", topic, "False", reason)
    assert witness.topic_id(topic) is None


@with_zookeeper
def test_an_object_whose_cluster_is_gone_can_be_deleted(operator: Operator, objects: Objects, topic: str) -> None:
    spec = topic_spec(clusterRef={"name": "nowhere"}, deletionPolicy="Delete")
    objects.apply("KafkaTopic", topic, spec, finalizers=[FINALIZER])
    objects.wait_ready("kafkatopic", topic, "False", "ClusterNotFound")
    objects.delete("kafkatopic", topic)
    objects.wait_gone("kafkatopic", topic)
    objects.wait_for_event(topic, "ClusterGone")

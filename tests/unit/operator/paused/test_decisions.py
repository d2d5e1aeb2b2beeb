"""A decision follows from the object and its situation alone, and that about a paused object leaves no memory."""

from typing import Any

import pytest

from controller_operator.kubernetes.object_store import AnyResource
from controller_operator.plans.cluster.planner import Surroundings as ClusterSurroundings
from controller_operator.plans.decision import Situation, decide
from controller_operator.plans.feature_set import planner as of_features
from controller_operator.plans.outcome import Context
from controller_operator.plans.permission import Permission
from controller_operator.plans.reassignment import planner as of_move
from controller_operator.plans.topic import planner as of_topic
from controller_operator.resources import KafkaCluster, PartitionReassignment
from controller_operator.resources.conditions import ConditionType, Reason
from tests.unit.operator.clusters import NOW, election, feature_set, healthy, kafka_topic, raw, reassignment, view

CLUSTER = KafkaCluster.model_validate({**raw("KafkaCluster", {}, name="demo"), "spec": {"bootstrapServers": "b:1"}})
PAUSED = {"annotations": {"kontroller.dev/pause": "true"}}
SEEN = view(healthy([1, 2], [1, 2]))
DECIDED: dict[str, tuple[AnyResource, Any]] = {
    "KafkaCluster": (CLUSTER, ClusterSurroundings()),
    "KafkaTopic": (kafka_topic({"topicName": "bills"}), of_topic.ALONE),
    "PartitionReassignment": (reassignment({0: [4, 5]}), of_move.ALONE),
    "PreferredElection": (election({"topics": ["orders"]}), None),
    "FeatureSet": (feature_set({"f": 4}), of_features.ALONE),
}


def make_situation(around: Any) -> Situation:
    context = Context(now=NOW, is_view_fresh=True)
    return Situation(
        cluster=CLUSTER, view=SEEN, permission=Permission(namespace="shop"), context=context, around=around
    )


@pytest.mark.parametrize(("resource", "around"), DECIDED.values(), ids=DECIDED)
def test_the_same_object_in_the_same_situation_gets_the_same_decision(resource: AnyResource, around: Any) -> None:
    seen = make_situation(around)
    assert decide(resource, seen) == decide(resource, seen)
    assert resource.status.conditions == ()


def test_a_move_is_remembered_once_it_is_requested_and_not_while_it_is_paused() -> None:
    seen = make_situation(of_move.ALONE)
    asked = decide(reassignment({0: [4, 5]}), seen).memory
    assert isinstance(asked, PartitionReassignment)
    assert asked.status.is_under_way
    paused = decide(reassignment({0: [4, 5]}, **PAUSED), seen)
    assert (paused.steps, paused.memory) == ((), None)
    assert paused.status.next_steps == ("move 1 partition: orders-0",)


def test_a_decision_names_the_kafka_cluster_before_anything_is_done_there() -> None:
    plan = decide(kafka_topic({"topicName": "bills"}), make_situation(of_topic.ALONE))
    assert (len(plan.steps), plan.status.cluster_id) == (1, SEEN.cluster_id)


def test_nothing_is_decided_for_an_object_of_another_kafka_cluster() -> None:
    elsewhere = kafka_topic({"topicName": "bills"}, status={"clusterId": "another"})
    plan = decide(elsewhere, make_situation(of_topic.ALONE))
    ready = plan.status.condition(ConditionType.READY)
    assert ready is not None
    assert (plan.steps, ready.reason, plan.status.cluster_id) == ((), Reason.CLUSTER_CHANGED, "another")

"""A move that a KafkaTopic would undo does not begin. Its status names the KafkaTopic and the change to make there."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from controller_core.model.ids import BrokerId
from controller_core.model.snapshot import Snapshot
from controller_operator.plans.outcome import Context, Plan
from controller_operator.plans.reassignment.planner import Surroundings
from controller_operator.plans.reassignment.planner import decide as decide_move
from controller_operator.plans.topic.planner import decide as decide_topic
from controller_operator.resources import KafkaTopic, PartitionReassignment
from controller_operator.resources.common import PAUSE_ANNOTATION
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.reassignment import ReassignmentPhase
from tests.unit.operator.clusters import NOW, healthy, kafka_topic, raw, ready, reassignment, status_of, view

FRESH = replace(Context(now=NOW), is_view_fresh=True)
BROKERS = (1, 2, 3, 4)
PINNED_TO_4: dict[str, Any] = {
    "partitions": None,
    "replicationFactor": None,
    "replicaAssignment": [[4, 1], [1, 2]],
    "driftPolicy": "Enforce",
}
MARKED = frozenset({BrokerId(4)})


def make_drain(*brokers: int, status: Mapping[str, Any] | None = None, **spec: Any) -> PartitionReassignment:
    body = raw("PartitionReassignment", {"drainBrokers": [*brokers], **spec}, status=status, name="drain-4")
    return PartitionReassignment.model_validate(body)


def look(move: PartitionReassignment, seen: Snapshot, *topics: KafkaTopic) -> Plan[Any]:
    def find(_counts: Mapping[str, Collection[int]], _brokers: Collection[BrokerId]) -> Sequence[KafkaTopic]:
        return topics

    return decide_move(move, seen, FRESH, Surroundings(find_pins=find))


@pytest.mark.parametrize(
    "spec", [{}, {"suspend": True}, {"approval": "Required"}], ids=["at once", "suspended", "held"]
)
def test_a_drain_names_the_topics_that_pin_the_broker_before_anything_moves(spec: dict[str, Any]) -> None:
    other = kafka_topic({**PINNED_TO_4, "topicName": "bills"}, name="bills")
    plan = look(make_drain(4, **spec), view(healthy([4, 1], [1, 2]), brokers=BROKERS), kafka_topic(PINNED_TO_4), other)
    assert (plan.steps, plan.status.phase) == ((), ReassignmentPhase.PENDING)
    assert plan.status.condition(ConditionType.STALLED)
    assert (ready(plan).reason, ready(plan).message) == (
        Reason.PINNED_BY_TOPIC,
        "KafkaTopic shop/orders, shop/bills would move replicas back to broker 4 (driftPolicy Enforce): name other brokers "
        "in spec.replicaAssignment there; or add the broker to spec.brokersToRemove of the KafkaCluster, then nothing is "
        "moved back",
    )
    assert plan.look_again_in_s


def test_a_drain_of_a_broker_without_replicas_names_the_topics_that_would_put_some_there() -> None:
    plan = look(make_drain(4), view(healthy([3, 1], [1, 2]), brokers=BROKERS), kafka_topic(PINNED_TO_4))
    assert ready(plan).reason is Reason.PINNED_BY_TOPIC


def test_a_drain_of_a_broker_that_is_to_be_removed_begins_and_an_event_names_the_topics() -> None:
    seen = view(healthy([4, 1], [1, 2]), brokers=BROKERS, to_remove=MARKED)
    plan = look(make_drain(4), seen, kafka_topic(PINNED_TO_4))
    assert (len(plan.steps), plan.status.phase) == (1, ReassignmentPhase.RUNNING)
    (notice,) = plan.notices
    assert (notice.reason, notice.is_warning) == ("AssignmentOverruled", True)
    assert notice.message == (
        "replicas leave broker 4 although spec.replicaAssignment of KafkaTopic shop/orders names it: it is to be removed, "
        "so nothing is moved back; change replicaAssignment there"
    )
    assert not look(make_drain(4, status=status_of(plan)), seen, kafka_topic(PINNED_TO_4)).notices


def test_a_move_of_pinned_partitions_is_told_so_before_it_begins() -> None:
    plan = look(reassignment({0: [3, 1]}), view(healthy([4, 1], [1, 2])), kafka_topic(PINNED_TO_4))
    assert plan.steps == ()
    assert ready(plan).message == (
        "KafkaTopic shop/orders would move orders-0 back (driftPolicy Enforce): change spec.replicaAssignment there, which "
        "moves them, or set its driftPolicy to Report"
    )


def test_a_move_to_where_the_topic_wants_its_replicas_begins() -> None:
    assert look(reassignment({0: [4, 1]}), view(healthy([3, 1], [1, 2])), kafka_topic(PINNED_TO_4)).steps


def test_a_move_to_another_number_of_replicas_is_told_of_the_replication_factor() -> None:
    enforced = kafka_topic({"driftPolicy": "Enforce"})
    plan = look(reassignment({0: [1, 2, 3]}), view(healthy([1, 2], [2, 3])), enforced)
    assert (plan.steps, ready(plan).reason) == ((), Reason.PINNED_BY_TOPIC)
    assert "would move orders-0 back (driftPolicy Enforce): change spec.replicationFactor there" in ready(plan).message


def test_a_move_of_as_many_replicas_disturbs_no_replication_factor() -> None:
    enforced = kafka_topic({"driftPolicy": "Enforce", "replicationFactor": 3})
    assert look(reassignment({0: [3, 1]}), view(healthy([1, 2], [2, 3])), enforced).steps


def test_a_topic_that_is_not_adopted_pins_nothing() -> None:
    seen = view(healthy([3, 1], [1, 2]))
    fresh = kafka_topic(PINNED_TO_4)
    left = kafka_topic(PINNED_TO_4, status=status_of(decide_topic(fresh, seen, FRESH)))
    assert look(reassignment({0: [2, 1]}), seen, fresh).steps == ()
    assert look(reassignment({0: [2, 1]}), seen, left).steps


@pytest.mark.parametrize(
    ("metadata", "spec", "cluster", "reason"),
    [
        ({}, {"config": {"retention.ms": "soon"}}, {}, Reason.INVALID_CONFIG),
        ({}, {"replicaAssignment": [[4, 1], [1, 99]]}, {}, Reason.UNKNOWN_BROKER),
        ({}, {}, {"controller": None}, Reason.NO_CONTROLLER),
        ({"annotations": {PAUSE_ANNOTATION: "true"}}, {}, {}, Reason.PAUSED),
    ],
)
def test_a_topic_that_does_not_exist_and_is_not_created_pins_nothing(
    metadata: dict[str, Any], spec: dict[str, Any], cluster: dict[str, Any], reason: Reason
) -> None:
    ghost = {**PINNED_TO_4, "topicName": "ghost", **spec}
    looked_at = decide_topic(kafka_topic(ghost, **metadata), view(brokers=BROKERS, **cluster), FRESH)
    assert ready(looked_at).reason is reason
    left = kafka_topic(ghost, name="ghost", status=status_of(looked_at), **metadata)
    seen = view(healthy([4, 1], [1, 2]), brokers=BROKERS)
    assert look(make_drain(4), seen, left).steps
    marked = replace(seen, to_remove=MARKED)
    assert not look(make_drain(4), marked, left).notices


def test_a_topic_that_is_being_created_pins_its_replicas() -> None:
    created = decide_topic(kafka_topic(PINNED_TO_4), view(brokers=BROKERS), FRESH)
    assert created.steps
    begun = kafka_topic(PINNED_TO_4, status=status_of(created))
    assert ready(look(make_drain(4), view(brokers=BROKERS), begun)).reason is Reason.PINNED_BY_TOPIC


def test_a_move_that_has_begun_is_not_stopped() -> None:
    seen = view(healthy([4, 1], [1, 2]))
    begun = look(reassignment({0: [3, 1]}), seen)
    assert begun.status.phase is ReassignmentPhase.RUNNING
    plan = look(reassignment({0: [3, 1]}, status=status_of(begun)), seen, kafka_topic(PINNED_TO_4))
    assert plan.status.phase is ReassignmentPhase.RUNNING


def test_a_drain_that_leaves_too_few_brokers_names_the_topics() -> None:
    whole, small = healthy([4, 1, 2, 3]), healthy([4, 1], name="bills")
    plan = look(make_drain(4), view(whole, small, brokers=BROKERS))
    assert (plan.steps, ready(plan).reason) == ((), Reason.NOT_ENOUGH_BROKERS)
    assert ready(plan).message.endswith("; topics with too many replicas for the brokers that remain: orders")

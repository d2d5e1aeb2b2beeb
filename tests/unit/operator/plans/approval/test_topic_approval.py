"""A topic that needs approval is deleted, and its replicas move, only when a person has approved that."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from controller_operator.kafka.actions import MarkTopicForDeletion
from controller_operator.kubernetes.object_store import StoredObject
from controller_operator.plans.outcome import Context, FinalizerWish, Plan, StartMove
from controller_operator.plans.topic.case import Surroundings
from controller_operator.plans.topic.planner import decide
from controller_operator.reconciling.applying import make_move
from controller_operator.resources import KafkaTopic
from controller_operator.resources.conditions import ConditionType, Reason
from tests.unit.operator.clusters import NOW, ORDERS, ORDERS_ID, healthy, kafka_topic, raw, ready, status_of, view

LIVE = view(healthy([1, 2], [2, 3]))
SPEC = {"deletionPolicy": "Delete", "approval": "Required"}
DELETED: dict[str, Any] = {"deletionTimestamp": "2025-01-01T00:00:00Z", "finalizers": ["kontroller.dev/finalizer"]}
"""It was deleted a year ago: approval has no deadline."""


def plan(resource: KafkaTopic, *, hours: int = 0, is_namespace_ending: bool = False) -> Plan[Any]:
    context = Context(now=NOW + timedelta(hours=hours), is_namespace_ending=is_namespace_ending)
    return decide(resource, LIVE, context, Surroundings(moves={}))


def delete(status: Any = None, spec: dict[str, Any] | None = None, **metadata: Any) -> Plan[Any]:
    """Return the plan for the object of a topic that was as the spec says, and is being deleted."""
    whole = {**SPEC, **(spec or {})}
    seen = status or status_of(plan(kafka_topic(whole)))
    return plan(kafka_topic(whole, status=seen, **{**DELETED, **metadata}))


def test_a_deletion_waits_for_approval_and_says_how_to_give_it() -> None:
    waiting = delete()
    assert (waiting.steps, waiting.finalizer) == ((), FinalizerWish.KEEP_AS_IS)
    assert ready(waiting).reason is Reason.AWAITING_APPROVAL
    due = waiting.status.plan_hash
    assert ready(waiting).message == (
        f"the deletion of topic orders with its data waits for approval: set approvedPlan to {due}, as `kubectl "
        "kontroller approve` does. With the chart's approvalPolicy, only users with the verb approve may. Without "
        "approval: set deletionPolicy to Retain, or pause this object, and the topic stays"
    )
    assert waiting.status.condition(ConditionType.PAUSED) is not None
    assert [(each.action, each.key, each.live) for each in waiting.status.plan.changes] == [
        ("DeleteTopic", ORDERS, "2 partitions")
    ]


def test_the_approved_deletion_is_asked_for() -> None:
    waiting = delete()
    approved = delete(status_of(waiting), {"approvedPlan": waiting.status.plan_hash})
    assert approved.steps == (MarkTopicForDeletion(topic=ORDERS, topic_id=ORDERS_ID),)


def test_an_approval_of_something_else_does_not_count() -> None:
    refused = delete(spec={"approvedPlan": "0123456789abcdef"})
    assert refused.steps == ()
    assert "approvedPlan 0123456789abcdef is another plan" in ready(refused).message


@pytest.mark.parametrize(
    ("spec", "metadata"),
    [({"deletionPolicy": "Retain"}, {}), ({}, {"annotations": {"kontroller.dev/pause": "true"}})],
    ids=["the topic is to stay", "the object is paused"],
)
def test_a_deletion_that_leaves_the_topic_needs_no_approval(spec: dict[str, Any], metadata: dict[str, Any]) -> None:
    assert delete(spec=spec, **metadata).finalizer is FinalizerWish.RELEASE


def test_the_wait_is_an_event_that_is_renewed_each_hour() -> None:
    waiting = delete()
    later = plan(kafka_topic(SPEC, status=status_of(waiting), **DELETED), hours=3)
    assert [(each.reason, each.count) for each in (*waiting.notices, *later.notices)] == [
        (Reason.AWAITING_APPROVAL, 1),
        (Reason.AWAITING_APPROVAL, 4),
    ]
    assert waiting.look_again_in_s == 60


class TestNamespace:
    """The object's namespace is being deleted."""

    def test_the_object_is_released_and_the_topic_stays(self) -> None:
        found = plan(kafka_topic(SPEC, status=status_of(delete()), **DELETED), is_namespace_ending=True)
        assert (found.steps, found.finalizer) == ((), FinalizerWish.RELEASE)
        (notice,) = found.notices
        assert (notice.reason, notice.is_leftover) == ("DeletionNotApproved", True)
        assert notice.message == (
            "topic orders stays with its data: its namespace is being deleted, and nobody has approved its deletion"
        )

    def test_an_approved_deletion_is_carried_out(self) -> None:
        waiting = delete()
        spec = {**SPEC, "approvedPlan": waiting.status.plan_hash}
        approved = plan(kafka_topic(spec, status=status_of(waiting), **DELETED), is_namespace_ending=True)
        assert approved.steps == (MarkTopicForDeletion(topic=ORDERS, topic_id=ORDERS_ID),)

    def test_a_deletion_that_needs_no_approval_is_carried_out(self) -> None:
        spec = {"deletionPolicy": "Delete"}
        seen = status_of(plan(kafka_topic(spec)))
        found = plan(kafka_topic(spec, status=seen, **DELETED), is_namespace_ending=True)
        assert found.steps == (MarkTopicForDeletion(topic=ORDERS, topic_id=ORDERS_ID),)


@pytest.mark.parametrize("approval", ["Required", "Automatic"])
@pytest.mark.parametrize(
    "changed",
    [
        {"replicationFactor": 3},
        {"replicationFactor": 1},
        {"replicationFactor": None, "replicaAssignment": [[1, 2], [4, 5]]},
        {"replicationFactor": None, "replicaAssignment": [[2, 1], [2, 3]]},
    ],
    ids=["more replicas", "fewer replicas", "other brokers", "another order"],
)
def test_a_move_of_the_topic_needs_the_approval_that_the_topic_needs(approval: str, changed: dict[str, Any]) -> None:
    spec = {"approval": approval}
    before = plan(kafka_topic(spec))
    (step,) = plan(kafka_topic({**spec, **changed}, status=status_of(before), generation=2)).steps
    assert isinstance(step, StartMove)
    made = make_move(StoredObject(raw("KafkaTopic", {"partitions": 1})), step)
    assert made["spec"].get("approval") == ("Required" if approval == "Required" else None)


def test_what_is_no_hash_is_refused() -> None:
    with pytest.raises(ValidationError, match="approvedPlan"):
        kafka_topic({"approvedPlan": "yes"})

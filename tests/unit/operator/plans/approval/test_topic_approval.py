"""A topic that needs approval is deleted, and its replicas move, only when a person has approved that."""

from typing import Any

import pytest
from pydantic import ValidationError

from controller_core.model.snapshot import Snapshot
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


def plan(resource: KafkaTopic, cluster: Snapshot = LIVE) -> Plan[Any]:
    return decide(resource, cluster, Context(now=NOW), Surroundings(moves={}))


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
        "kontroller approve` does"
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


@pytest.mark.parametrize("approval", ["Required", "Automatic"])
def test_a_move_of_the_topic_needs_the_approval_that_the_topic_needs(approval: str) -> None:
    spec = {"approval": approval}
    before = plan(kafka_topic(spec))
    grown = kafka_topic({**spec, "replicationFactor": 3}, status=status_of(before), generation=2)
    (step,) = plan(grown).steps
    assert isinstance(step, StartMove)
    made = make_move(StoredObject(raw("KafkaTopic", {"partitions": 1})), step)
    assert made["spec"].get("approval") == ("Required" if approval == "Required" else None)


def test_what_is_no_hash_is_refused() -> None:
    with pytest.raises(ValidationError, match="approvedPlan"):
        kafka_topic({"approvedPlan": "yes"})

"""A move that needs approval begins with the approval of the very plan that it would carry out, and with no other."""

from collections.abc import Sequence
from typing import Any

import pytest

from controller_core.model.snapshot import Snapshot
from controller_operator.plans.outcome import Context, Plan
from controller_operator.plans.reassignment.planner import decide
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.reassignment import ReassignmentPhase
from tests.unit.operator.clusters import NOW, healthy, ready, reassignment, status_of, view
from tests.unit.operator.plans.reassignment.test_reassignment import list_asked, make_request

LOOK = Context(now=NOW, is_view_fresh=True)
TARGETS: dict[int, Sequence[int]] = {0: [4, 5], 1: [4, 5]}
BEFORE = view(healthy([1, 2], [1, 2]))
PHASE = ReassignmentPhase


def make_plan(cluster: Snapshot, status: Any = None, targets: Any = None, **spec: Any) -> Plan[Any]:
    spec = {"approval": "Required", **spec}
    return decide(reassignment(targets or TARGETS, spec, status=status or {}), cluster, LOOK)


def hash_of(cluster: Snapshot, targets: Any = None) -> str:
    found: str | None = make_plan(cluster, targets=targets).status.plan_hash
    assert found is not None
    return found


def test_nothing_begins_without_it_and_the_status_says_what_to_do() -> None:
    plan = make_plan(BEFORE)
    assert (plan.status.phase, plan.steps) == (PHASE.AWAITING_APPROVAL, ())
    assert ready(plan).reason is Reason.AWAITING_APPROVAL
    assert f"set approvedPlan to {plan.status.plan_hash}" in ready(plan).message
    assert plan.status.condition(ConditionType.PAUSED) is not None
    assert plan.status.condition(ConditionType.STALLED) is None
    assert plan.status.start_time is None


def test_the_approved_plan_begins() -> None:
    plan = make_plan(BEFORE, approvedPlan=hash_of(BEFORE))
    assert plan.status.phase is PHASE.RUNNING
    assert list_asked(plan) == [{0: (4, 5), 1: (4, 5)}]


@pytest.mark.parametrize(
    "cluster",
    [view(healthy([1, 3], [1, 2])), view(healthy([2, 1], [1, 2])), view(healthy([4, 5], [1, 2]))],
    ids=["another broker has a replica", "another replica is preferred", "one partition is there already"],
)
def test_an_approval_does_not_hold_for_another_plan(cluster: Snapshot) -> None:
    plan = make_plan(cluster, approvedPlan=hash_of(BEFORE))
    assert (plan.status.phase, plan.steps) == (PHASE.AWAITING_APPROVAL, ())
    assert "is another plan" in ready(plan).message


def test_other_targets_are_another_plan_and_their_order_in_the_spec_is_not() -> None:
    assert hash_of(BEFORE, {0: [4, 5], 1: [4, 6]}) != hash_of(BEFORE)
    assert hash_of(BEFORE, {0: [5, 4], 1: [4, 5]}) != hash_of(BEFORE)
    assert hash_of(BEFORE, {1: [4, 5], 0: [4, 5]}) == hash_of(BEFORE)


def test_once_begun_it_goes_on_whatever_becomes_of_the_approval() -> None:
    begun = make_plan(BEFORE, approvedPlan=hash_of(BEFORE))
    running = view(healthy([1, 2], [1, 2]), reassignment=make_request({0: [4, 5], 1: [4, 5]}))
    plan = make_plan(running, status_of(begun))
    assert plan.status.phase is PHASE.RUNNING
    assert plan.status.plan_hash == begun.status.plan_hash


def test_what_waits_for_another_move_needs_a_new_approval_where_the_other_one_changes_its_plan() -> None:
    given = hash_of(BEFORE)
    busy = view(healthy([1, 2], [1, 2]), reassignment=make_request({0: [6], 1: [6]}))
    waiting = make_plan(busy, approvedPlan=given)
    assert waiting.status.phase is PHASE.PENDING
    changed = make_plan(view(healthy([1, 3], [1, 2])), status_of(waiting), approvedPlan=given)
    assert changed.status.phase is PHASE.AWAITING_APPROVAL


def test_a_move_with_nothing_to_do_needs_no_approval() -> None:
    plan = make_plan(view(healthy([4, 5], [4, 5])))
    assert (plan.status.phase, plan.status.plan_hash) == (PHASE.COMPLETED, None)


def test_a_move_that_needs_none_has_no_hash() -> None:
    plan = make_plan(BEFORE, approval="Automatic")
    assert (plan.status.phase, plan.status.plan_hash) == (PHASE.RUNNING, None)


def test_suspended_goes_before_approval_and_shows_the_plan_to_approve() -> None:
    plan = make_plan(BEFORE, suspend=True)
    assert (plan.status.phase, plan.status.plan_hash) == (PHASE.SUSPENDED, hash_of(BEFORE))

"""What a status says when nothing more is done for the object: it is paused, or its one run is over."""

from datetime import timedelta
from typing import Any

import pytest

from controller_operator.plans.election import plan_election
from controller_operator.plans.outcome import Context, Verdict, conditions, ended_status, seconds_left
from controller_operator.plans.reassignment.planner import plan_reassignment
from controller_operator.resources.common import ObjectMeta, Status
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason
from tests.unit.operator.clusters import NOW, ORDERS, assigned, election, led, reassignment, topic, view

LOOK = Context(now=NOW)
CHANGED = ObjectMeta(name="changed", namespace="kafka", generation=2)
WHERE_IT_SHOULD_BE = view(topic((assigned([1, 2]), led(1, [1, 2]))))


def status_with(verdict: Verdict) -> Status:
    meta = ObjectMeta(name="first", namespace="kafka", generation=1)
    return Status(observed_generation=1, conditions=conditions(verdict, Status(), meta, NOW))


@pytest.mark.parametrize(
    ("generation", "ready"), [(1, ConditionStatus.TRUE), (2, ConditionStatus.UNKNOWN), (3, ConditionStatus.UNKNOWN)]
)
def test_a_paused_object_stays_ready_only_for_the_spec_that_it_was_ready_for(
    generation: int, ready: ConditionStatus
) -> None:
    before = status_with(Verdict.good(Reason.RECONCILED, "all is well"))
    meta = ObjectMeta(name="paused", namespace="kafka", generation=generation)
    assert Verdict.paused(before, meta).ready is ready


def test_a_paused_object_is_not_ready_at_its_second_look_either() -> None:
    before = status_with(Verdict.good(Reason.RECONCILED, "all is well"))
    said = conditions(Verdict.paused(before, CHANGED), before, CHANGED, NOW)
    again = Verdict.paused(Status(observed_generation=2, conditions=said), CHANGED)
    assert again.ready is ConditionStatus.UNKNOWN


@pytest.mark.parametrize(
    "ended",
    [
        plan_reassignment(reassignment({0: [1, 2]}), WHERE_IT_SHOULD_BE, LOOK).status,
        plan_election(election({"topics": [ORDERS]}), WHERE_IT_SHOULD_BE, LOOK).status,
        plan_election(election({"topics": ["missing"]}), WHERE_IT_SHOULD_BE, LOOK).status,
    ],
    ids=["completed move", "completed election", "failed election"],
)
def test_what_has_ended_only_follows_the_generation(ended: Any) -> None:
    followed = ended_status(ended, CHANGED)
    assert followed.observed_generation == 2
    assert {each.observed_generation for each in followed.conditions} == {2}
    told = [(each.type, each.status, each.reason, each.message, each.last_transition_time) for each in ended.conditions]
    assert told == [
        (each.type, each.status, each.reason, each.message, each.last_transition_time) for each in followed.conditions
    ]
    assert followed.phase == ended.phase
    assert followed.condition(ConditionType.READY) is not None


@pytest.mark.parametrize(
    ("ttl_s", "age_s", "left_s"), [(10, 9, 1), (10, 10, 0), (10, 60, 0), (0, 0, 0), (None, 60, None)]
)
def test_what_has_ended_has_its_time_to_live(ttl_s: int | None, age_s: int, left_s: float | None) -> None:
    assert seconds_left(NOW, ttl_s, NOW + timedelta(seconds=age_s)) == left_s

"""The status of an object for which nothing more is done: it is paused, or its one run is over."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from controller_core.model.snapshot import Snapshot
from controller_operator.plans.election.planner import decide as decide_election
from controller_operator.plans.outcome import Context, Plan, Verdict, conditions, make_ended_status, seconds_left
from controller_operator.plans.reassignment.planner import decide as decide_move
from controller_operator.resources.common import Ending, ObjectMeta, Status
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason
from tests.unit.operator.clusters import NOW, ORDERS, assign, election, lead, reassignment, status_of, topic, view

LOOK = Context(now=NOW)
CHANGED = ObjectMeta(name="changed", namespace="kafka", generation=2)
WHERE_IT_SHOULD_BE = view(topic((assign([1, 2]), lead(1, [1, 2]))))


def _fail_election() -> Plan[Any]:
    """The controller took the request and did nothing."""
    wrong = view(topic((assign([1, 2]), lead(2, [1, 2]))))
    first = decide_election(election({"topics": [ORDERS]}), wrong, LOOK)
    asked = election({"topics": [ORDERS]}, status=status_of(first))
    return decide_election(asked, wrong, Context(now=NOW, done=first.steps, is_view_fresh=True))


def _fail_move() -> Plan[Any]:
    """The topic is gone during the move."""
    first = decide_move(reassignment({0: [3, 4]}), WHERE_IT_SHOULD_BE, LOOK)
    return decide_move(reassignment({0: [3, 4]}, status=status_of(first)), view(), LOOK)


def status_with(verdict: Verdict) -> Status:
    meta = ObjectMeta(name="first", namespace="kafka", generation=1)
    return Status(observed_generation=1, conditions=conditions(verdict, Status(), meta, NOW))


@pytest.mark.parametrize(
    ("generation", "ready"), [(1, ConditionStatus.TRUE), (2, ConditionStatus.UNKNOWN), (3, ConditionStatus.UNKNOWN)]
)
def test_a_paused_object_stays_ready_only_for_the_spec_that_it_was_ready_for(
    generation: int, ready: ConditionStatus
) -> None:
    before = status_with(Verdict.make_good(Reason.RECONCILED, "all is well"))
    meta = ObjectMeta(name="paused", namespace="kafka", generation=generation)
    assert Verdict.make_paused(before, meta).ready is ready


def test_a_paused_object_is_not_ready_at_its_second_look_either() -> None:
    before = status_with(Verdict.make_good(Reason.RECONCILED, "all is well"))
    said = conditions(Verdict.make_paused(before, CHANGED), before, CHANGED, NOW)
    again = Verdict.make_paused(Status(observed_generation=2, conditions=said), CHANGED)
    assert again.ready is ConditionStatus.UNKNOWN


@pytest.mark.parametrize("status", [ConditionStatus.TRUE, ConditionStatus.FALSE])
@pytest.mark.parametrize(
    "verdict",
    [
        Verdict.make_stalled(Reason.TOPIC_DELETED, "the topic is gone"),
        Verdict.make_stalled(Reason.NOT_ADOPTED, "the topic is another one"),
        Verdict.make_unknown(Reason.ZOOKEEPER_UNAVAILABLE, "ZooKeeper does not answer"),
    ],
)
def test_drift_is_unknown_while_nothing_is_compared_and_still_says_that_it_was_known(
    verdict: Verdict, status: ConditionStatus
) -> None:
    meta = ObjectMeta(name="first", namespace="kafka", generation=1)
    compared = replace(
        Verdict.make_good(Reason.RECONCILED, "all is well"),
        others=((ConditionType.DRIFTED, status, Reason.IN_SYNC, "the topic is as the spec says"),),
    )
    said = conditions(verdict, status_with(compared), meta, NOW)
    (drifted,) = (each for each in said if each.type is ConditionType.DRIFTED)
    assert (drifted.status, drifted.reason) == (ConditionStatus.UNKNOWN, verdict.reason)
    assert drifted.message == f"not known at present: {verdict.message}"
    changed = conditions(verdict, status_with(compared), CHANGED, NOW)
    assert [each for each in changed if each.type is ConditionType.DRIFTED] == []


ENDED = {
    "completed move": (decide_move(reassignment({0: [1, 2]}), WHERE_IT_SHOULD_BE, LOOK), ConditionType.COMPLETE),
    "completed election": (
        decide_election(election({"topics": [ORDERS]}), WHERE_IT_SHOULD_BE, LOOK),
        ConditionType.COMPLETE,
    ),
    "failed election": (_fail_election(), ConditionType.FAILED),
    "failed move": (_fail_move(), ConditionType.FAILED),
}


@pytest.mark.parametrize(("plan", "ending"), ENDED.values(), ids=ENDED)
def test_what_runs_once_ends_with_one_word_for_who_waits(plan: Plan[Any], ending: Ending) -> None:
    said = {each.type: each for each in plan.status.conditions}
    assert said[ending].status is ConditionStatus.TRUE
    assert said[ending].reason is said[ConditionType.READY].reason
    assert len(said.keys() & {ConditionType.COMPLETE, ConditionType.FAILED}) == 1


@pytest.mark.parametrize("cluster", [view(), view(topic((assign([3, 4]), lead(3, [3, 4]))))], ids=["waits", "runs"])
def test_what_has_not_ended_says_neither(cluster: Snapshot) -> None:
    plans: list[Plan[Any]] = [
        decide_move(reassignment({0: [1, 2]}), cluster, LOOK),
        decide_election(election({"topics": ["missing"]}), cluster, LOOK),
    ]
    said = {each.type for plan in plans for each in plan.status.conditions}
    assert not said & {ConditionType.COMPLETE, ConditionType.FAILED}


@pytest.mark.parametrize(("plan", "ending"), ENDED.values(), ids=ENDED)
def test_what_has_ended_only_follows_the_generation(plan: Plan[Any], ending: Ending) -> None:
    ended = plan.status
    followed = make_ended_status(ended, CHANGED, ending)
    assert followed.observed_generation == 2
    assert {each.observed_generation for each in followed.conditions} == {2}
    told = [(each.type, each.status, each.reason, each.message, each.last_transition_time) for each in ended.conditions]
    assert told == [
        (each.type, each.status, each.reason, each.message, each.last_transition_time) for each in followed.conditions
    ]
    assert followed.phase == ended.phase
    assert followed.condition(ConditionType.READY) is not None


@pytest.mark.parametrize(("plan", "ending"), ENDED.values(), ids=ENDED)
def test_what_ended_before_there_was_a_word_for_it_says_it_now(plan: Plan[Any], ending: Ending) -> None:
    silent = tuple(each for each in plan.status.conditions if each.type is not ending)
    followed = make_ended_status(plan.status.model_copy(update={"conditions": silent}), CHANGED, ending)
    found = followed.condition(ending)
    ready = followed.condition(ConditionType.READY)
    assert found is not None
    assert ready is not None
    assert (found.status, found.reason, found.observed_generation) == (ConditionStatus.TRUE, ready.reason, 2)
    assert make_ended_status(followed, CHANGED, ending) == followed


@pytest.mark.parametrize(
    ("ttl_s", "age_s", "left_s"), [(10, 9, 1), (10, 10, 0), (10, 60, 0), (0, 0, 0), (None, 60, None)]
)
def test_what_has_ended_has_its_time_to_live(ttl_s: int | None, age_s: int, left_s: float | None) -> None:
    assert seconds_left(NOW, ttl_s, NOW + timedelta(seconds=age_s)) == left_s

"""A plan with a schedule runs when it is due, makes up for one run that was missed, and never ends."""

from datetime import timedelta
from typing import Any

import pytest

from controller_operator.plans.outcome import Context, StartMove
from controller_operator.plans.rebalance.looking import Look
from controller_operator.plans.rebalance.planner import decide
from controller_operator.plans.rebalance.run import Surroundings
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason
from controller_operator.resources.rebalancing.rebalance_plan import PlanPhase, PlanResult
from tests.unit.operator.clusters import ready, rebalance_plan
from tests.unit.operator.plans.rebalance.lasting import AFTER, NOTHING, Operated, make_time
from tests.unit.operator.plans.rebalance.test_decisions import make_owned


class TestTheTime:
    def test_before_it_nothing_is_asked_and_the_status_says_when(self) -> None:
        plan = Operated().decide()
        assert (plan.look, plan.status.phase) == (None, PlanPhase.SCHEDULED)
        assert plan.status.next_run_time == make_time(13)
        assert (ready(plan).status, ready(plan).reason) == (ConditionStatus.TRUE, Reason.SCHEDULED)
        assert ready(plan).message == "the next run is due at 2026-01-15T13:00:00Z"

    def test_each_due_time_is_one_run_from_a_new_look(self) -> None:
        operated = Operated()
        operated.look_until(make_time(15, 30))
        assert operated.runs == [make_time(13), make_time(14), make_time(15)]
        assert len({each.name for each in operated.begun}) == 3
        assert operated.status.last_run_result is PlanResult.COMPLETED
        assert operated.status.counts is not None
        assert operated.status.counts.done == 2, "they are counts of the last run"

    def test_a_time_zone_moves_it(self) -> None:
        plan = Operated(schedule="0 3 * * *", timeZone="Asia/Kolkata").decide()
        assert plan.status.next_run_time == make_time(21, 30)

    @pytest.mark.parametrize(
        "spec", [{"schedule": "61 * * * *"}, {"timeZone": "Mars/Olympus"}, {"schedule": "0 0 31 2 *"}]
    )
    def test_one_that_never_comes_needs_a_person(self, spec: dict[str, Any]) -> None:
        plan = Operated(**spec).decide()
        assert ready(plan).reason is Reason.INVALID_SCHEDULE
        assert plan.status.condition(ConditionType.STALLED) is not None

    def test_times_that_the_operator_missed_are_one_run(self) -> None:
        operated = Operated()
        operated.settle()
        operated.now = make_time(17, 20)
        operated.look_until(make_time(18, 30))
        assert operated.runs == [make_time(17, 20), make_time(18)]

    def test_a_clock_that_is_set_back_repeats_nothing(self) -> None:
        operated = Operated(schedule="0 3 * * *")
        operated.look_until(make_time(3, 1, day=16))
        operated.now -= timedelta(minutes=20)
        operated.look_until(make_time(3, day=17))
        assert operated.runs == [make_time(3, day=16)]


class TestARun:
    def test_that_finds_nothing_says_so_and_makes_no_event(self) -> None:
        operated = Operated(NOTHING)
        operated.settle()
        operated.now = make_time(13)
        plan = operated.settle()
        assert plan.status.last_run_result is PlanResult.NOTHING_TO_MOVE
        assert (plan.status.last_run_time, plan.status.next_run_time) == (make_time(13), make_time(14))
        assert "NothingToMove: nothing is left to move" in ready(plan).message
        assert (plan.status.phase, operated.notices) == (PlanPhase.SCHEDULED, [])

    def test_is_never_beside_another_one(self) -> None:
        operated = Operated()
        operated.settle()
        operated.now = make_time(13)
        operated.decide()
        operated.decide()
        (begun,) = operated.begun
        operated.moves = make_owned(begun.name, "Running", 0, 2)
        for minutes in (1, 70, 200):
            operated.now = make_time(13) + timedelta(minutes=minutes)
            plan = operated.decide()
            assert (plan.steps, plan.look, plan.status.phase) == ((), None, PlanPhase.RUNNING)
        assert operated.status.next_run_time == make_time(17), "the times that have passed are skipped"
        operated.moves = make_owned(begun.name, "Completed", 2, 2)
        operated.cluster = AFTER
        operated.settle()
        assert operated.runs == [make_time(13)]

    def test_is_ready_while_it_goes_on_as_tools_of_gitops_wait_for_ready(self) -> None:
        operated = Operated()
        operated.settle()
        operated.now = make_time(13)
        operated.decide()
        plan = operated.decide()
        assert (ready(plan).status, ready(plan).reason) == (ConditionStatus.TRUE, Reason.PROGRESSING)
        assert plan.status.condition(ConditionType.RECONCILING) is None

    def test_that_failed_leaves_the_next_one_to_run(self) -> None:
        operated = Operated()
        operated.settle()
        operated.now = make_time(13)
        operated.decide()
        operated.decide()
        operated.moves = make_owned(operated.begun[0].name, "Failed", 0, 2)
        plan = operated.decide()
        assert (plan.status.phase, plan.status.last_run_result) == (PlanPhase.SCHEDULED, PlanResult.FAILED)
        assert [(each.reason, each.is_warning) for each in plan.notices] == [("PlanFailed", True)]
        assert plan.status.condition(ConditionType.FAILED) is None
        operated.look_until(make_time(14, 10))
        assert operated.runs == [make_time(13), make_time(14)]

    def test_is_cancelled_by_the_deletion_of_its_reassignment_and_the_plan_is_not(self) -> None:
        operated = Operated()
        operated.settle()
        operated.now = make_time(13)
        operated.decide()
        operated.decide()
        operated.moves = make_owned(operated.begun[0].name, "Running", 0, 2)
        operated.decide()
        operated.moves = {}
        plan = operated.settle()
        assert (plan.status.phase, plan.status.last_run_result) == (PlanPhase.SCHEDULED, PlanResult.CANCELLED)
        assert "the next run goes on" in ready(plan).message

    def test_has_its_own_limits(self) -> None:
        operated = Operated(limits={"maxMoves": 2})
        operated.look_until(make_time(14, 30))
        assert len(operated.begun) == 2
        assert operated.status.last_run_result is PlanResult.COMPLETED

    def test_does_not_take_the_answer_to_the_look_of_another_one(self) -> None:
        operated = Operated(limits={"maxMoves": 2})
        operated.settle()
        operated.now = make_time(13)
        plan = operated.decide()
        assert isinstance(plan.look, Look)
        old = operated.found
        operated.written["lastRunTime"] = "2026-01-15T12:00:00Z"
        operated.found = old
        assert not operated.decide().steps


class TestAPerson:
    def test_approves_each_run_and_a_plan_that_nobody_approved_gives_way_to_a_new_look(self) -> None:
        operated = Operated(approval="Required")
        operated.settle()
        operated.now = make_time(13)
        waiting = operated.settle()
        assert (waiting.status.phase, waiting.steps) == (PlanPhase.AWAITING_APPROVAL, ())
        assert waiting.look_again_in_s is not None
        assert waiting.look_again_in_s <= 60, "the clock may be set"
        operated.now = make_time(14)
        assert isinstance(operated.decide().look, Look)
        assert operated.settle().status.phase == PlanPhase.AWAITING_APPROVAL
        operated.spec["approvedPlan"] = operated.status.plan_hash
        operated.settle()
        assert operated.status.last_run_result is PlanResult.COMPLETED
        assert operated.runs == [make_time(13), make_time(14)]

    def test_suspends_it_and_the_runs_of_that_time_are_skipped(self) -> None:
        operated = Operated()
        operated.settle()
        operated.spec["suspend"] = True
        plan = operated.settle()
        assert (plan.status.phase, plan.status.next_run_time) == (PlanPhase.SUSPENDED, None)
        assert (ready(plan).status, ready(plan).reason) == (ConditionStatus.TRUE, Reason.SUSPENDED)
        operated.now = make_time(15, 20)
        operated.settle()
        operated.spec["suspend"] = False
        operated.look_until(make_time(16, 10))
        assert operated.runs == [make_time(16)]

    def test_pauses_everything(self) -> None:
        operated = Operated()
        operated.settle()
        operated.now = make_time(13)
        paused = rebalance_plan(operated.spec, status=operated.written, annotations={"kontroller.dev/pause": "true"})
        plan = decide(paused, operated.cluster, Context(now=operated.now), Surroundings())
        assert (plan.look, plan.steps, ready(plan).reason) == (None, (), Reason.PAUSED)


class TestWindows:
    NIGHT = ({"schedule": "0 22 * * *", "durationMinutes": 60},)

    def test_without_approval_it_looks_when_one_opens(self) -> None:
        operated = Operated(schedule=None, windows=self.NIGHT)
        plan = operated.settle()
        assert (plan.look, plan.status.phase, ready(plan).reason) == (None, PlanPhase.SUSPENDED, Reason.OUTSIDE_WINDOW)
        assert plan.status.next_window_time == make_time(22)
        operated.now = make_time(22)
        assert isinstance(operated.decide().look, Look)
        assert operated.status.next_window_time is None
        (step,) = operated.decide().steps
        assert isinstance(step, StartMove)
        assert [each.duration_minutes for each in step.windows] == [60], "its partitions begin in them, too"

    def test_a_plan_that_is_made_too_late_is_dropped(self) -> None:
        operated = Operated(schedule=None, windows=self.NIGHT)
        operated.now = make_time(22, 59)
        operated.decide()
        operated.now = make_time(23)
        plan = operated.decide()
        assert (plan.steps, plan.status.moves, ready(plan).reason) == ((), (), Reason.OUTSIDE_WINDOW)

    def test_a_plan_is_approved_before_one_opens_and_begins_then(self) -> None:
        operated = Operated(schedule=None, windows=self.NIGHT, approval="Required")
        assert operated.settle().status.phase == PlanPhase.AWAITING_APPROVAL
        operated.spec["approvedPlan"] = operated.status.plan_hash
        held = operated.settle()
        assert (held.steps, ready(held).reason) == ((), Reason.OUTSIDE_WINDOW)
        assert held.status.moves
        operated.now = make_time(22)
        assert len(operated.decide().steps) == 1

    def test_one_that_never_opens_needs_a_person(self) -> None:
        operated = Operated(schedule=None, windows=({"schedule": "0 0 31 2 *", "durationMinutes": 60},))
        plan = operated.settle()
        assert ready(plan).reason is Reason.INVALID_SCHEDULE
        assert "window 1 of spec.windows" in ready(plan).message

    def test_a_scheduled_run_waits_for_one(self) -> None:
        operated = Operated(windows=self.NIGHT, schedule="0 13 * * *")
        operated.look_until(make_time(23))
        assert operated.runs == [make_time(13)]
        assert len(operated.begun) == 1
        assert operated.status.last_run_result is PlanResult.COMPLETED

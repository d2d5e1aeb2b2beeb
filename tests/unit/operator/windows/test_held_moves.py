"""Partitions begin to move only inside a window. Moves that have begun, and deletions, wait for none."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controller_core.model.ids import TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.actions import SubmitReassignment
from controller_operator.kafka.requests.cancellations import CancelReassignment
from controller_operator.kafka.requests.moves import MoveReply
from controller_operator.kafka.throttle_steps import SetThrottle
from controller_operator.plans.outcome import Context, Plan
from controller_operator.plans.reassignment.planner import decide
from controller_operator.resources.common import FINALIZER
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason
from controller_operator.resources.reassignment import ReassignmentPhase
from tests.unit.operator.clusters import ORDERS, healthy, ready, reassignment, status_of, view
from tests.unit.operator.plans.reassignment.test_reassignment import list_asked, make_request
from tests.unit.operator.plans.reassignment.test_turns import start_moves

TARGETS: dict[int, Sequence[int]] = {0: [4, 5], 1: [4, 5]}
BEFORE = view(healthy([1, 2], [1, 2]))
OPEN_AT, CLOSED_AT = datetime(2026, 1, 15, 22, tzinfo=UTC), datetime(2026, 1, 16, 0, tzinfo=UTC)
DAY, NIGHT = OPEN_AT - timedelta(hours=4), OPEN_AT + timedelta(minutes=30)
NIGHTLY = {"windows": [{"schedule": "0 22 * * *", "durationMinutes": 120}]}
FEBRUARY_31 = {"windows": [{"schedule": "0 0 31 2 *", "durationMinutes": 60}]}
PHASE = ReassignmentPhase


class Operated:
    """An object whose status is written after each look."""

    def __init__(self, **spec: Any) -> None:
        self.spec: dict[str, Any] = {"schedule": NIGHTLY, **spec}
        self.status: dict[str, Any] = {}

    def look(self, now: datetime, cluster: Snapshot = BEFORE, **metadata: Any) -> Plan[Any]:
        """Look once, with the step that precedes a request, and stop before the request."""
        context = Context(now=now, is_view_fresh=True)
        move = reassignment(TARGETS, self.spec, status=self.status, **metadata)
        plan = decide(move, cluster, context)
        self.status = status_of(plan)
        if any(isinstance(step, SetThrottle) for step in plan.steps):
            move = reassignment(TARGETS, self.spec, status=self.status, **metadata)
            plan = decide(move, cluster, replace(context, done=plan.steps))
            self.status = status_of(plan)
        return plan


def begin_move(now: datetime = NIGHT, **spec: Any) -> Operated:
    """Return a move of two partitions of which one has begun."""
    move = Operated(maxConcurrentPartitions=1, **spec)
    assert list_asked(move.look(now)) == [{0: (4, 5)}]
    move.look(now, start_moves(BEFORE, 0))
    return move


class TestBeforeItOpens:
    def test_nothing_begins_and_the_status_says_when_it_will(self) -> None:
        plan = Operated().look(DAY)
        assert (plan.status.phase, plan.steps, plan.status.start_time) == (PHASE.SUSPENDED, (), None)
        assert (ready(plan).status, ready(plan).reason) == (ConditionStatus.FALSE, Reason.OUTSIDE_WINDOW)
        assert "2026-01-15T22:00:00Z" in ready(plan).message
        paused = plan.status.condition(ConditionType.PAUSED)
        assert (paused.status, paused.reason) == (ConditionStatus.TRUE, Reason.OUTSIDE_WINDOW)
        assert plan.status.condition(ConditionType.STALLED) is None
        assert plan.status.next_window_time == OPEN_AT

    @pytest.mark.parametrize("before", [timedelta(hours=4), timedelta(minutes=1), timedelta(seconds=1)])
    def test_it_is_looked_at_when_the_window_opens_and_not_before(self, before: timedelta) -> None:
        assert Operated().look(OPEN_AT - before).look_again_in_s == before.total_seconds()

    def test_it_writes_nothing_anew_meanwhile(self) -> None:
        move = Operated()
        before = move.look(DAY).status
        assert move.look(DAY + timedelta(hours=3)).status == before

    def test_what_would_be_in_the_way_then_is_said_now(self) -> None:
        plan = Operated().look(DAY, view(healthy([1, 2], [1, 2]), brokers=(1, 2, 4)))
        assert (plan.status.phase, ready(plan).reason) == (PHASE.PENDING, Reason.UNKNOWN_BROKER)
        assert plan.status.next_window_time == OPEN_AT

    def test_what_only_time_has_to_bring_is_not(self) -> None:
        busy = view(healthy([1, 2], [1, 2]), reassignment=make_request({0: [6], 1: [6]}))
        move = Operated()
        assert ready(move.look(DAY, busy)).reason is Reason.OUTSIDE_WINDOW
        assert ready(move.look(NIGHT, busy)).reason is Reason.WAITING_FOR_OTHER_REASSIGNMENT
        assert ready(move.look(CLOSED_AT, busy)).reason is Reason.OUTSIDE_WINDOW

    def test_a_limit_is_not_set_yet(self) -> None:
        move = Operated(throttle={"bytesPerSecond": 5000})
        assert (move.look(DAY).steps, move.look(DAY).status.throttle) == ((), None)

    def test_with_nothing_to_do_it_is_done(self) -> None:
        plan = Operated().look(DAY, view(healthy([4, 5], [4, 5])))
        assert (plan.status.phase, plan.status.next_window_time) == (PHASE.COMPLETED, None)

    def test_its_schedule_may_change(self) -> None:
        move = Operated()
        move.look(DAY)
        move.spec = {}
        plan = move.look(DAY)
        assert list_asked(plan) == [{0: (4, 5), 1: (4, 5)}]
        assert (plan.status.next_window_time, plan.not_after) == (None, None)


class TestWhileItIsOpen:
    @pytest.mark.parametrize("now", [OPEN_AT, NIGHT, CLOSED_AT - timedelta(seconds=1)])
    def test_the_move_begins_and_not_after_it_closes(self, now: datetime) -> None:
        move = Operated()
        move.look(DAY)
        plan = move.look(now)
        assert list_asked(plan) == [{0: (4, 5), 1: (4, 5)}]
        assert (plan.not_after, plan.status.next_window_time) == (CLOSED_AT, None)
        assert plan.status.condition(ConditionType.PAUSED) is None

    def test_so_does_what_comes_before_it(self) -> None:
        move = Operated(throttle={"bytesPerSecond": 5000})
        context = Context(now=NIGHT, is_view_fresh=True)
        plan = decide(reassignment(TARGETS, move.spec), BEFORE, context)
        assert [type(step) for step in plan.steps] == [SetThrottle]
        assert plan.not_after == CLOSED_AT
        assert list_asked(move.look(NIGHT)) == [{0: (4, 5), 1: (4, 5)}]

    def test_a_controller_that_did_not_answer_is_asked_again_long_before_it_closes(self) -> None:
        move = Operated()
        (step,) = move.look(NIGHT).steps
        assert isinstance(step, SubmitReassignment)
        reply = MoveReply(step=step, trouble="nobody answers")
        context = Context(now=NIGHT, is_view_fresh=True, submissions=(reply,))
        plan = decide(reassignment(TARGETS, move.spec, status=move.status), BEFORE, context)
        assert (plan.steps, plan.look_again_in_s, plan.not_after) == ((), 5.0, CLOSED_AT)

    def test_suspend_and_approval_hold_it_back_all_the_same(self) -> None:
        assert ready(Operated(suspend=True).look(NIGHT)).reason is Reason.SUSPENDED
        assert ready(Operated(approval="Required").look(NIGHT)).reason is Reason.AWAITING_APPROVAL


class TestAfterItHasClosed:
    def test_what_moves_goes_on_and_the_next_one_waits_for_the_next_window(self) -> None:
        move = begin_move()
        plan = move.look(CLOSED_AT, start_moves(BEFORE, 0))
        assert (plan.status.phase, ready(plan).reason) == (PHASE.SUSPENDED, Reason.OUTSIDE_WINDOW)
        assert "; 1 that have begun go on to their end" in ready(plan).message
        half = view(healthy([4, 5], [1, 2]))
        plan = move.look(CLOSED_AT, half)
        assert (plan.steps, plan.status.counts.done, plan.status.next_window_time) == (
            (), 1, OPEN_AT + timedelta(days=1),
        )  # fmt: skip
        assert list_asked(move.look(OPEN_AT + timedelta(days=1), half)) == [{1: (4, 5)}]

    def test_it_is_looked_at_then_as_its_status_is_another_one(self) -> None:
        move = begin_move()
        assert move.look(NIGHT, start_moves(BEFORE, 0)).look_again_in_s == 90 * 60

    def test_a_move_of_which_all_has_begun_runs_on_and_waits_for_nothing(self) -> None:
        move = Operated()
        move.look(NIGHT)
        both = start_moves(BEFORE, 0, 1)
        move.look(NIGHT, both)
        plan = move.look(CLOSED_AT, both)
        assert (plan.status.phase, plan.look_again_in_s) == (PHASE.RUNNING, None)
        assert plan.status.condition(ConditionType.PAUSED) is None
        assert move.look(CLOSED_AT, view(healthy([4, 5], [4, 5]))).status.phase is PHASE.COMPLETED

    def test_a_request_of_which_nothing_is_seen_is_not_written_again(self) -> None:
        move = Operated()
        move.look(NIGHT)
        plan = move.look(CLOSED_AT)
        assert (plan.steps, plan.status.phase) == ((), PHASE.SUSPENDED)
        assert list_asked(move.look(OPEN_AT + timedelta(days=1))) == [{0: (4, 5), 1: (4, 5)}]

    def test_a_limit_of_what_moves_may_change(self) -> None:
        move = begin_move(throttle={"bytesPerSecond": 5000})
        move.look(CLOSED_AT, start_moves(BEFORE, 0))
        move.spec = {**move.spec, "throttle": {"bytesPerSecond": 6000}}
        assert move.look(CLOSED_AT, start_moves(BEFORE, 0)).status.throttle.bytes_per_second == 6000


class TestApproval:
    def test_is_asked_for_before_the_window_opens_and_holds_when_it_does(self) -> None:
        move = Operated(approval="Required")
        plan = move.look(DAY)
        assert (plan.status.phase, ready(plan).reason) == (PHASE.AWAITING_APPROVAL, Reason.AWAITING_APPROVAL)
        assert plan.status.next_window_time == OPEN_AT
        move.spec = {**move.spec, "approvedPlan": plan.status.plan_hash}
        assert ready(move.look(DAY)).reason is Reason.OUTSIDE_WINDOW
        assert list_asked(move.look(NIGHT)) == [{0: (4, 5), 1: (4, 5)}]

    def test_of_a_plan_that_changes_until_then_does_not(self) -> None:
        move = Operated(approval="Required")
        move.spec["approvedPlan"] = move.look(DAY).status.plan_hash
        move.look(DAY)
        assert ready(move.look(NIGHT, view(healthy([1, 3], [1, 2])))).reason is Reason.AWAITING_APPROVAL


class TestADeletion:
    DELETED: dict[str, Any] = {"deletionTimestamp": DAY.isoformat(), "finalizers": [FINALIZER]}  # noqa: RUF012

    def test_takes_back_what_moves_whenever_it_comes(self) -> None:
        move = begin_move()
        move.look(CLOSED_AT, start_moves(BEFORE, 0))
        plan = move.look(CLOSED_AT, start_moves(BEFORE, 0), **self.DELETED)
        assert plan.steps == (CancelReassignment(partitions=(TopicPartition(ORDERS, 0),)),)  # type: ignore[arg-type]
        assert plan.status.next_window_time is None

    def test_of_a_move_whose_windows_are_none_does_too(self) -> None:
        move = begin_move()
        move.spec = {**move.spec, "schedule": FEBRUARY_31}
        plan = move.look(CLOSED_AT, start_moves(BEFORE, 0), **self.DELETED)
        assert [type(step) for step in plan.steps] == [CancelReassignment]


class TestAWindowThatNeverOpens:
    def test_needs_a_person_and_lets_nothing_begin(self) -> None:
        move = Operated(schedule=FEBRUARY_31)
        plan = move.look(NIGHT)
        assert (ready(plan).reason, plan.steps) == (Reason.INVALID_SCHEDULE, ())
        assert "window 1 of spec.schedule: schedule '0 0 31 2 *'" in ready(plan).message
        assert plan.status.condition(ConditionType.STALLED) is not None
        move.spec = {"schedule": NIGHTLY}
        assert list_asked(move.look(NIGHT)) == [{0: (4, 5), 1: (4, 5)}]

    def test_lets_what_has_begun_go_on_to_its_end(self) -> None:
        move = begin_move()
        move.spec = {**move.spec, "schedule": FEBRUARY_31}
        plan = move.look(NIGHT, start_moves(BEFORE, 0))
        assert (ready(plan).reason, plan.steps) == (Reason.INVALID_SCHEDULE, ())
        assert move.look(NIGHT, view(healthy([4, 5], [4, 5]))).status.phase is PHASE.COMPLETED


class TestAClockThatIsSet:
    def test_begins_and_holds_back_by_what_it_says_now(self) -> None:
        move = Operated()
        ahead = OPEN_AT + timedelta(days=365)
        assert move.look(ahead - timedelta(hours=1)).status.next_window_time == ahead
        plan = move.look(DAY)
        assert (plan.status.next_window_time, plan.look_again_in_s) == (OPEN_AT, 4 * 3600)
        assert list_asked(move.look(NIGHT)) == [{0: (4, 5), 1: (4, 5)}]

    def test_back_out_of_a_window_lets_nothing_more_begin(self) -> None:
        move = begin_move()
        half = view(healthy([4, 5], [1, 2]))
        plan = move.look(DAY, half)
        assert (plan.steps, plan.status.next_window_time) == ((), OPEN_AT)
        assert list_asked(move.look(NIGHT, half)) == [{1: (4, 5)}]

    def test_a_year_ahead_wedges_nothing(self) -> None:
        move = begin_move(NIGHT + timedelta(days=365))
        assert not [each for each in move.look(DAY).steps if isinstance(each, SubmitReassignment)]
        assert list_asked(move.look(NIGHT, view(healthy([4, 5], [1, 2])))) == [{1: (4, 5)}]

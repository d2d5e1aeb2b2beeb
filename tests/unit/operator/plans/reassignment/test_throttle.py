"""A limit is set before the moves begin, changed while they run, and gone before the object ends."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from controller_core.model.ids import BrokerId, PartitionId, TopicPartition
from controller_core.model.metadata import ReassignmentPlan
from controller_core.model.snapshot import ControllerKind, Snapshot
from controller_core.model.throttles import Move
from controller_operator.kafka.actions import SubmitReassignment
from controller_operator.kafka.requests.cancellations import CancelReassignment, CancelReply
from controller_operator.kafka.requests.moves import MoveReply
from controller_operator.kafka.throttle_steps import RemoveThrottle, SetThrottle, ThrottleReply
from controller_operator.plans.outcome import Context, FinalizerWish, Plan
from controller_operator.plans.reassignment.planner import decide
from controller_operator.resources.common import FINALIZER, PAUSE_ANNOTATION
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.reassignment import PartitionReassignment, ReassignmentPhase
from tests.unit.operator.clusters import NOW, ORDERS, assign, healthy, lead, raw, ready, status_of, topic, view

LOOK = Context(now=NOW)
FRESH = replace(LOOK, is_view_fresh=True)
BEFORE = view(healthy([1, 2]))
MOVING = view(topic((assign([3, 4, 1, 2], [3, 4], [1, 2]), lead(1, [1, 2]))))
THERE = view(healthy([3, 4]))
ZERO = TopicPartition(ORDERS, PartitionId(0))
DELETED: dict[str, Any] = {"deletionTimestamp": NOW.isoformat(), "finalizers": [FINALIZER]}


def make_limited(rate: int | None, status: dict[str, Any] | None = None, **metadata: Any) -> PartitionReassignment:
    """A move of one partition to 3 and 4."""
    spec: dict[str, Any] = {"partitions": [{"topic": ORDERS, "partition": 0, "replicas": [3, 4]}]}
    if rate is not None:
        spec["throttle"] = {"bytesPerSecond": rate}
    return PartitionReassignment.model_validate(raw("PartitionReassignment", spec, status=status or {}, **metadata))


def kinds(plan: Plan[Any]) -> list[type]:
    return [type(step) for step in plan.steps]


def add_done(plan: Plan[Any], context: Context = FRESH) -> Context:
    return replace(context, done=(*context.done, *plan.steps))


def make_running_status(rate: int = 5000, cluster: Snapshot = MOVING) -> dict[str, Any]:
    """The status of a move that was asked for with this limit."""
    began = decide(make_limited(rate), BEFORE, LOOK)
    asked = decide(make_limited(rate, status_of(began)), BEFORE, add_done(began))
    seen = decide(make_limited(rate, status_of(asked)), cluster, add_done(asked, add_done(began)))
    return status_of(seen)


class TestBeforeTheMoves:
    def test_the_limit_is_set_first_and_on_record_before_that(self) -> None:
        plan = decide(make_limited(5000), BEFORE, LOOK)
        move = Move(origin=(BrokerId(1), BrokerId(2)), target=(BrokerId(3), BrokerId(4)))
        (step,) = plan.steps
        assert isinstance(step, SetThrottle)
        assert (step.bytes_per_second, dict(step.moves)) == (5000, {ZERO: move})
        assert status_of(plan)["throttle"] == {"bytesPerSecond": 5000, "isSet": False}
        assert plan.finalizer is FinalizerWish.HOLD

    def test_the_moves_are_asked_for_once_it_is_set(self) -> None:
        began = decide(make_limited(5000), BEFORE, LOOK)
        plan = decide(make_limited(5000, status_of(began)), BEFORE, add_done(began))
        assert kinds(plan) == [SubmitReassignment]
        assert status_of(plan)["throttle"] == {"bytesPerSecond": 5000, "isSet": True}

    def test_another_look_sets_it_again_before_it_asks(self) -> None:
        began = decide(make_limited(5000), BEFORE, LOOK)
        asked = decide(make_limited(5000, status_of(began)), BEFORE, add_done(began))
        assert kinds(decide(make_limited(5000, status_of(asked)), BEFORE, FRESH)) == [SetThrottle]

    def test_a_move_that_waits_has_no_limit_yet(self) -> None:
        other = ReassignmentPlan(partitions={ZERO: (BrokerId(1),)})
        plan = decide(make_limited(5000), view(healthy([1, 2]), reassignment=other), LOOK)
        assert plan.steps == ()
        assert "throttle" not in status_of(plan)

    def test_a_move_without_a_limit_is_asked_for_at_once(self) -> None:
        assert kinds(decide(make_limited(None), BEFORE, LOOK)) == [SubmitReassignment]


class TestWhileTheyRun:
    def test_what_is_set_is_left_alone(self) -> None:
        assert decide(make_limited(5000, make_running_status()), MOVING, LOOK).steps == ()

    @pytest.mark.parametrize("rate", [4000, 6000])
    def test_another_limit_is_set(self, rate: int) -> None:
        plan = decide(make_limited(rate, make_running_status()), MOVING, LOOK)
        assert [step.bytes_per_second for step in plan.steps if isinstance(step, SetThrottle)] == [rate]
        assert status_of(plan)["throttle"] == {"bytesPerSecond": rate, "isSet": False}
        done = decide(make_limited(rate, status_of(plan)), MOVING, add_done(plan))
        assert (done.steps, status_of(done)["throttle"]) == ((), {"bytesPerSecond": rate, "isSet": True})

    def test_one_can_be_added(self) -> None:
        status = {name: value for name, value in make_running_status().items() if name != "throttle"}
        assert kinds(decide(make_limited(5000, status), MOVING, LOOK)) == [SetThrottle]

    def test_one_that_is_taken_out_of_the_spec_is_removed_also_where_it_was_only_begun(self) -> None:
        status = {**make_running_status(), "throttle": {"bytesPerSecond": 5000, "isSet": False}}
        plan = decide(make_limited(None, status), MOVING, LOOK)
        assert kinds(plan) == [RemoveThrottle]
        assert "throttle" not in status_of(decide(make_limited(None, status_of(plan)), MOVING, add_done(plan)))


class TestWhileNothingOfItMoves:
    ELSEWHERE = view(topic((assign([6, 1, 2], [6], [1, 2]), lead(1, [1, 2])), (assign([3, 4]), lead(3, [3, 4]))))

    def two(self, status: dict[str, Any] | None = None, rate: int = 5000) -> PartitionReassignment:
        partitions = [{"topic": ORDERS, "partition": number, "replicas": [3, 4]} for number in (0, 1)]
        spec = {"partitions": partitions, "throttle": {"bytesPerSecond": rate}}
        return PartitionReassignment.model_validate(raw("PartitionReassignment", spec, status=status or {}))

    def test_it_slows_nobody_else(self) -> None:
        began = decide(self.two(), view(healthy([1, 2], [1, 2])), FRESH)
        plan = decide(self.two(status_of(began)), self.ELSEWHERE, FRESH)
        assert kinds(plan) == [RemoveThrottle]
        gone = decide(self.two(status_of(plan)), self.ELSEWHERE, add_done(plan))
        assert (gone.steps, "throttle" in status_of(gone)) == ((), False)
        again = decide(self.two(status_of(gone)), view(healthy([6], [3, 4])), FRESH)
        assert kinds(again) == [SetThrottle]

    def test_it_stays_where_a_request_may_be_carried_out_late(self) -> None:
        began = decide(make_limited(5000), BEFORE, FRESH)
        asked = decide(make_limited(5000, status_of(began)), BEFORE, add_done(began))
        (step,) = asked.steps
        assert isinstance(step, SubmitReassignment)
        context = replace(add_done(began), submissions=(MoveReply(step=step, trouble="no answer"),))
        plan = decide(make_limited(5000, status_of(asked)), BEFORE, context)
        assert (plan.steps, status_of(plan)["throttle"]) == ((), {"bytesPerSecond": 5000, "isSet": True})


class TestWhatKafkaDoesNotDo:
    def add_trouble(self, step: SetThrottle | RemoveThrottle, reason: Reason, context: Context = FRESH) -> Context:
        return replace(context, throttles=(ThrottleReply(step=step, trouble="no rights", reason=reason),))

    def begin(self) -> tuple[PartitionReassignment, SetThrottle]:
        began = decide(make_limited(5000), BEFORE, FRESH)
        (step,) = began.steps
        assert isinstance(step, SetThrottle)
        return make_limited(5000, status_of(began)), step

    @pytest.mark.parametrize(
        ("reason", "condition"),
        [
            (Reason.BROKERS_UNAVAILABLE, ConditionType.RECONCILING),
            (Reason.REQUEST_REFUSED, ConditionType.RECONCILING),
            (Reason.TOO_LARGE, ConditionType.STALLED),
        ],
    )
    def test_a_limit_that_cannot_be_set_holds_the_move_back_and_says_why(
        self, reason: Reason, condition: ConditionType
    ) -> None:
        move, step = self.begin()
        plan = decide(move, BEFORE, self.add_trouble(step, reason))
        assert (plan.steps, ready(plan).reason, plan.look_again_in_s) == ((), reason, 5)
        assert ready(plan).message == "its limit cannot be set: no rights"
        assert plan.status.condition(condition) is not None
        assert status_of(plan)["throttle"] == {"bytesPerSecond": 5000, "isSet": False}
        assert kinds(decide(make_limited(5000, status_of(plan)), BEFORE, FRESH)) == [SetThrottle]

    def test_what_came_of_it_after_that_counts(self) -> None:
        move, step = self.begin()
        context = self.add_trouble(step, Reason.BROKERS_UNAVAILABLE, replace(FRESH, done=(step,)))
        context = replace(context, throttles=(*context.throttles, ThrottleReply(step=step)))
        assert kinds(decide(move, BEFORE, context)) == [SubmitReassignment]

    def test_one_that_cannot_be_removed_holds_up_the_end_of_the_object_and_a_deletion_for_a_while(self) -> None:
        move = make_limited(5000, make_running_status())
        (step,) = decide(move, THERE, FRESH).steps
        assert isinstance(step, RemoveThrottle)
        held = decide(move, THERE, self.add_trouble(step, Reason.REQUEST_REFUSED))
        assert (held.steps, held.status.phase) == ((), ReassignmentPhase.RUNNING)
        assert ready(held).message == "its limit cannot be removed: no rights"
        deleted = make_limited(5000, make_running_status(), **DELETED)
        for later, phase in ((1, ReassignmentPhase.RUNNING), (11, ReassignmentPhase.CANCELLED)):
            now = NOW + timedelta(minutes=later)
            plan = decide(deleted, BEFORE, self.add_trouble(step, Reason.REQUEST_REFUSED, replace(FRESH, now=now)))
            assert (plan.steps, plan.status.phase) == ((), phase)
            assert ("ThrottleLeft" in [each.reason for each in plan.notices]) is (later == 11)


class TestAtTheEnd:
    ENDS: ClassVar[Sequence[Any]] = [
        pytest.param(THERE, {}, ReassignmentPhase.COMPLETED, id="success"),
        pytest.param(view(healthy([1, 2])), {}, ReassignmentPhase.FAILED, id="cancelled by another tool"),
        pytest.param(view(), {}, ReassignmentPhase.FAILED, id="topic deleted"),
        pytest.param(view(healthy([1, 2])), DELETED, ReassignmentPhase.CANCELLED, id="object deleted"),
    ]

    @pytest.mark.parametrize(("cluster", "metadata", "phase"), ENDS)
    def test_the_object_ends_when_the_limit_is_gone(
        self, cluster: Snapshot, metadata: dict[str, Any], phase: ReassignmentPhase
    ) -> None:
        status = make_running_status()
        plan = decide(make_limited(5000, status, **metadata), cluster, FRESH)
        assert kinds(plan) == [RemoveThrottle]
        assert plan.status.phase is ReassignmentPhase.RUNNING
        assert plan.notices == ()
        end = decide(make_limited(5000, status_of(plan), **metadata), cluster, add_done(plan))
        assert (end.steps, end.status.phase) == ((), phase)
        assert "throttle" not in status_of(end)

    REFUSED: ClassVar[tuple[tuple[TopicPartition, str], ...]] = ((ZERO, "CLUSTER_AUTHORIZATION_FAILED"),)

    @pytest.mark.parametrize(
        ("minutes", "said"),
        [
            pytest.param(11, {"trouble": "nobody answers"}, id="not answered for too long"),
            pytest.param(0, {"refused": REFUSED}, id="refused"),
        ],
    )
    def test_a_move_that_cannot_be_cancelled_goes_on_with_its_limit_and_an_event_says_so(
        self, minutes: int, said: dict[str, Any]
    ) -> None:
        deleted = make_limited(5000, make_running_status(), **DELETED)
        (step,) = decide(deleted, MOVING, FRESH).steps
        assert isinstance(step, CancelReassignment)
        assert MOVING.controller is not None
        context = replace(FRESH, now=NOW + timedelta(minutes=minutes), cancellations=(CancelReply(step=step, **said),))
        kontroller = replace(MOVING, controller=replace(MOVING.controller, kind=ControllerKind.KONTROLLER))
        plan = decide(deleted, kontroller, context)
        assert (plan.steps, plan.status.phase) == ((), ReassignmentPhase.FAILED)
        assert status_of(plan)["throttle"] == {"bytesPerSecond": 5000, "isSet": True}
        assert [each.reason for each in plan.notices] == ["CancellationFailed", "ThrottleLeft"]
        kafka = replace(MOVING, controller=replace(MOVING.controller, kind=ControllerKind.KAFKA))
        assert kinds(decide(deleted, kafka, context)) == [RemoveThrottle], "nobody else would end it"

    def test_nothing_is_removed_where_no_limit_ever_was(self) -> None:
        status = {name: value for name, value in make_running_status().items() if name != "throttle"}
        plan = decide(make_limited(None, status), THERE, FRESH)
        assert (plan.steps, plan.status.phase) == ((), ReassignmentPhase.COMPLETED)

    @pytest.mark.parametrize(
        ("kind", "cluster", "is_removed"),
        [
            (ControllerKind.KONTROLLER, MOVING, False),
            (ControllerKind.KONTROLLER, BEFORE, True),
            (ControllerKind.KAFKA, MOVING, True),
        ],
    )
    def test_a_move_that_goes_on_without_its_object_keeps_the_limit_where_the_controller_will_end_it(
        self, kind: ControllerKind, cluster: Snapshot, is_removed: bool
    ) -> None:
        assert cluster.controller is not None
        seen = replace(cluster, controller=replace(cluster.controller, kind=kind))
        paused = make_limited(5000, make_running_status(), **DELETED, annotations={PAUSE_ANNOTATION: "true"})
        plan = decide(paused, seen, FRESH)
        assert kinds(plan) == ([RemoveThrottle] if is_removed else [])
        assert plan.finalizer is (FinalizerWish.KEEP_AS_IS if is_removed else FinalizerWish.RELEASE)

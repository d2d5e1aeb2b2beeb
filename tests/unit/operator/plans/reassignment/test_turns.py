"""At most as many partitions move as the spec allows, no move begins during a suspension, and none is requested
twice."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from controller_core.model.ids import TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.actions import SubmitReassignment
from controller_operator.plans.outcome import Context, Plan
from controller_operator.plans.reassignment.planner import decide
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason
from controller_operator.resources.reassignment import ReassignmentPhase, ReassignmentStep
from tests.unit.operator.clusters import (
    NOW,
    ORDERS,
    assign,
    healthy,
    lead,
    ready,
    reassignment,
    status_of,
    topic,
    view,
)
from tests.unit.operator.plans.reassignment.test_reassignment import list_asked, make_request

FRESH = Context(now=NOW, is_view_fresh=True)
TARGETS: dict[int, Sequence[int]] = {0: [4, 5], 1: [4, 5], 2: [4, 5]}
BEFORE = view(healthy([1, 2], [1, 2], [1, 2]))
PHASE, STEP = ReassignmentPhase, ReassignmentStep
MOVING_AWAY = (assign([6, 1, 2], [6], [1, 2]), lead(1, [1, 2]))
AT_HOME = (assign([1, 2]), lead(1, [1, 2]))


class Operated:
    """An object whose status is written after each look."""

    def __init__(self, targets: dict[int, Sequence[int]] = TARGETS, **spec: Any) -> None:
        self.targets, self.spec, self.status = targets, spec, dict[str, Any]()

    def look(self, cluster: Snapshot, context: Context = FRESH) -> Plan[Any]:
        move = reassignment(self.targets, self.spec, status=self.status)
        plan = decide(move, cluster, context)
        self.status = status_of(plan)
        return plan

    def steps(self) -> list[str]:
        return [row["step"] for row in sorted(self.status["partitions"], key=lambda row: int(row["partition"]))]


def start_moves(cluster: Snapshot, *numbers: int) -> Snapshot:
    return replace(cluster, reassignment=make_request({number: [4, 5] for number in numbers}))


class TestSoManyAtATime:
    def test_so_many_begin_at_a_time_and_the_next_ones_when_they_are_done(self) -> None:
        move = Operated(maxConcurrentPartitions=2)
        assert list_asked(move.look(BEFORE)) == [{0: (4, 5), 1: (4, 5)}]
        plan = move.look(start_moves(BEFORE, 0, 1))
        assert (plan.steps, move.steps()) == ((), ["CatchingUp", "CatchingUp", "Waiting"])
        assert ready(plan).reason is Reason.PROGRESSING
        assert list_asked(move.look(view(healthy([4, 5], [4, 5], [1, 2])))) == [{2: (4, 5)}]
        move.look(start_moves(view(healthy([4, 5], [4, 5], [1, 2])), 2))
        last = move.look(view(healthy([4, 5], [4, 5], [4, 5])))
        assert last.status.phase is PHASE.COMPLETED

    def test_a_request_that_was_not_written_is_written_after_a_restart_and_no_more_than_that(self) -> None:
        move = Operated(maxConcurrentPartitions=1)
        move.look(BEFORE)
        assert list_asked(move.look(BEFORE)) == [{0: (4, 5)}]

    def test_the_number_may_change_while_it_runs(self) -> None:
        move = Operated(maxConcurrentPartitions=1)
        move.look(BEFORE)
        move.look(start_moves(BEFORE, 0))
        move.spec = {"maxConcurrentPartitions": 2}
        assert list_asked(move.look(start_moves(BEFORE, 0))) == [{1: (4, 5)}]
        move.look(start_moves(BEFORE, 0, 1))
        move.spec = {"maxConcurrentPartitions": 1}
        assert move.look(start_moves(view(healthy([4, 5], [1, 2], [1, 2])), 1)).steps == ()

    def test_whenever_one_is_done_the_next_one_begins_though_others_still_move(self) -> None:
        move = Operated({number: [4, 5] for number in range(4)}, maxConcurrentPartitions=2)
        replicas = [[1, 2]] * 4
        assert list_asked(move.look(view(healthy(*replicas)))) == [{0: (4, 5), 1: (4, 5)}]
        for done, next_one in ((1, 2), (2, 3)):
            move.look(start_moves(view(healthy(*replicas)), 0, done))
            replicas[done] = [4, 5]
            assert list_asked(move.look(start_moves(view(healthy(*replicas)), 0))) == [{next_one: (4, 5)}]
        assert move.steps() == ["CatchingUp", "Done", "Done", "Waiting"]

    def test_by_the_znode_the_next_ones_begin_when_it_is_gone(self) -> None:
        context = replace(FRESH, can_ask_controller=False)
        move = Operated(maxConcurrentPartitions=2)
        move.look(BEFORE, context)
        move.look(start_moves(BEFORE, 0, 1), context)
        half = view(healthy([1, 2], [4, 5], [1, 2]))
        assert move.look(start_moves(half, 0), context).steps == ()
        assert list_asked(move.look(view(healthy([4, 5], [4, 5], [1, 2])), context)) == [{2: (4, 5)}]

    def test_what_another_tool_cancelled_is_not_asked_for_again_and_the_others_go_on(self) -> None:
        move = Operated(maxConcurrentPartitions=1)
        move.look(BEFORE)
        move.look(start_moves(BEFORE, 0))
        assert list_asked(move.look(BEFORE)) == [{1: (4, 5)}]
        assert move.steps() == ["Failed", "Waiting", "Waiting"]

    def test_a_failure_is_believed_of_a_fresh_view_alone(self) -> None:
        move = Operated(maxConcurrentPartitions=1)
        move.look(BEFORE)
        move.look(start_moves(BEFORE, 0))
        plan = move.look(BEFORE, Context(now=NOW))
        assert (plan.steps, plan.needs_fresh_view) == ((), True)

    def test_more_failures_than_a_status_lists_let_nothing_more_begin(self) -> None:
        count = 600
        before = view(healthy(*[[1, 2]] * count))
        move = Operated({number: [4, 5] for number in range(count)}, maxConcurrentPartitions=500)
        first = move.look(before)
        (step,) = first.steps
        assert isinstance(step, SubmitReassignment)
        assert len(step.partitions) == 500
        move.look(replace(before, reassignment=make_request({tp.partition: to for tp, to in step.partitions.items()})))
        plan = move.look(before)
        assert (plan.status.phase, plan.steps, plan.status.counts.failed) == (PHASE.RUNNING, (), 500)
        assert move.look(before).status.phase is PHASE.FAILED


class TestSomebodyElse:
    def test_who_moves_one_partition_elsewhere_does_not_hold_up_the_others(self) -> None:
        move = Operated()
        plan = move.look(view(topic(MOVING_AWAY, AT_HOME, AT_HOME)))
        assert list_asked(plan) == [{1: (4, 5), 2: (4, 5)}]
        there = (assign([4, 5]), lead(4, [4, 5]))
        plan = move.look(view(topic(MOVING_AWAY, there, there)))
        assert (plan.steps, ready(plan).reason) == ((), Reason.WAITING_FOR_OTHER_REASSIGNMENT)
        assert list_asked(move.look(view(healthy([6], [4, 5], [4, 5])))) == [{0: (4, 5)}]


class TestSuspended:
    def test_nothing_begins_until_it_may(self) -> None:
        move = Operated(suspend=True)
        plan = move.look(BEFORE)
        assert (plan.status.phase, plan.steps, plan.status.start_time) == (PHASE.SUSPENDED, (), None)
        assert (ready(plan).status, ready(plan).reason) == (ConditionStatus.FALSE, Reason.SUSPENDED)
        assert plan.status.condition(ConditionType.PAUSED) is not None
        move.spec = {"suspend": False}
        assert list_asked(move.look(BEFORE)) == [{0: (4, 5), 1: (4, 5), 2: (4, 5)}]

    def test_what_moves_goes_on_and_the_rest_waits(self) -> None:
        move = Operated(maxConcurrentPartitions=2)
        move.look(BEFORE)
        move.look(start_moves(BEFORE, 0, 1))
        move.spec = {**move.spec, "suspend": True}
        plan = move.look(start_moves(BEFORE, 0, 1))
        assert (plan.status.phase, plan.is_progress) == (PHASE.SUSPENDED, False)
        half = view(healthy([4, 5], [4, 5], [1, 2]))
        assert (move.look(half).steps, move.steps()) == ((), ["Done", "Done", "Waiting"])
        move.spec = {}
        assert list_asked(move.look(half)) == [{2: (4, 5)}]

    def test_a_request_of_which_nothing_is_seen_is_not_written_again(self) -> None:
        move = Operated()
        move.look(BEFORE)
        move.spec = {"suspend": True}
        assert move.look(BEFORE).steps == ()

    def test_it_ends_when_all_that_had_begun_has_ended(self) -> None:
        move = Operated()
        move.look(BEFORE)
        move.look(start_moves(BEFORE, 0, 1, 2))
        move.spec = {"suspend": True}
        move.look(start_moves(BEFORE, 0, 1, 2))
        assert move.look(view(healthy([4, 5], [4, 5], [4, 5]))).status.phase is PHASE.COMPLETED

    def test_one_that_is_deleted_takes_back_what_still_moves(self) -> None:
        move = Operated(maxConcurrentPartitions=1)
        move.look(BEFORE)
        move.spec = {**move.spec, "suspend": True}
        seen = start_moves(BEFORE, 0)
        move.look(seen)
        deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["kontroller.dev/finalizer"]}
        plan = decide(reassignment(TARGETS, move.spec, status=move.status, **deleted), seen, FRESH)
        assert [getattr(step, "partitions", None) for step in plan.steps] == [(TopicPartition(ORDERS, 0),)]  # type: ignore[arg-type]

"""A reassignment is requested once, with any events in between, and the status shows every step of seed 000's table."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from controller_core.model.ids import BrokerId, PartitionId, TopicPartition
from controller_core.model.metadata import PartitionState, ReassignmentPlan, ReplicaAssignment
from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.actions import SubmitReassignment
from controller_operator.plans.outcome import Context, Plan
from controller_operator.plans.reassignment.planner import decide
from controller_operator.resources.conditions import ConditionType, Reason
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

LOOK = Context(now=NOW)
FRESH = replace(LOOK, is_view_fresh=True)
BY_ZNODE = replace(FRESH, can_ask_controller=False)
STEP = ReassignmentStep


def make_request(targets: dict[int, Sequence[int]]) -> ReassignmentPlan:
    partitions = {
        TopicPartition(ORDERS, PartitionId(number)): tuple(map(BrokerId, to)) for number, to in targets.items()
    }
    return ReassignmentPlan(partitions=partitions)


def list_asked(plan: Plan[Any]) -> list[dict[int, tuple[int, ...]]]:
    """Return the requests of the plan."""
    return [
        {tp.partition: to for tp, to in step.partitions.items()}
        for step in plan.steps
        if isinstance(step, SubmitReassignment)
    ]


def make_running_status(targets: dict[int, Sequence[int]], before: Snapshot) -> dict[str, Any]:
    """The status of a move that was about to be asked for."""
    plan = decide(reassignment(targets), before, LOOK)
    assert plan.status.phase is ReassignmentPhase.RUNNING
    return status_of(plan)


@pytest.mark.parametrize(
    ("assignment", "state", "step"),
    [
        (assign([1, 2, 3]), lead(1, [1, 2, 3]), STEP.WAITING),
        (assign([4, 5, 6, 1, 2, 3], [4, 5, 6], [1, 2, 3]), lead(1, [1, 2, 3]), STEP.CATCHING_UP),
        (assign([4, 5, 6, 1, 2, 3], [4, 5, 6], [1, 2, 3]), lead(1, [1, 2, 3, 4]), STEP.CATCHING_UP),
        (assign([4, 5, 6, 1, 2, 3], [4, 5, 6], [1, 2, 3]), lead(1, [1, 2, 3, 4, 5, 6]), STEP.MOVING_LEADER),
        (assign([4, 5, 6, 1, 2, 3], [4, 5, 6], [1, 2, 3]), lead(4, [1, 2, 3, 4, 5, 6]), STEP.REMOVING_REPLICAS),
        (assign([4, 5, 6, 1, 2, 3], [4, 5, 6], [1, 2, 3]), lead(4, [4, 5, 6]), STEP.REMOVING_REPLICAS),
        (assign([4, 5, 6]), lead(4, [4, 5, 6]), STEP.DONE),
    ],
)
def test_every_row_of_the_seeds_table_has_its_step(
    assignment: ReplicaAssignment, state: PartitionState, step: ReassignmentStep
) -> None:
    targets: dict[int, Sequence[int]] = {0: [4, 5, 6]}
    status = make_running_status(targets, view(healthy([1, 2, 3])))
    plan = decide(reassignment(targets, status=status), view(topic((assignment, state))), LOOK)
    (row,) = plan.status.partitions
    assert row.step is step
    assert row.original_replicas == (1, 2, 3)
    assert row.target_replicas == (4, 5, 6)
    assert (row.replicas, row.isr) == (assignment.replicas, state.leader_and_isr.isr)


def test_the_intent_is_in_the_status_that_goes_before_the_request() -> None:
    plan = decide(reassignment({0: [2, 3], 1: [3, 1]}), view(healthy([1, 2], [2, 3])), LOOK)
    assert list_asked(plan) == [{0: (2, 3), 1: (3, 1)}]
    assert plan.status.phase is ReassignmentPhase.RUNNING
    assert {row.partition: row.original_replicas for row in plan.status.partitions} == {0: (1, 2), 1: (2, 3)}


def test_partitions_that_are_there_already_are_not_asked_for() -> None:
    plan = decide(reassignment({0: [1, 2], 1: [3, 1]}), view(healthy([1, 2], [2, 3])), LOOK)
    assert list_asked(plan) == [{1: (3, 1)}]


def test_a_move_to_where_everything_is_completes_at_once() -> None:
    plan = decide(reassignment({0: [1, 2]}), view(healthy([1, 2])), LOOK)
    assert plan.status.phase is ReassignmentPhase.COMPLETED
    assert plan.steps == ()
    assert ready(plan).status == "True"


def test_a_change_of_order_alone_is_a_move() -> None:
    plan = decide(reassignment({0: [2, 1]}), view(healthy([1, 2])), LOOK)
    assert list_asked(plan) == [{0: (2, 1)}]


@pytest.mark.parametrize(
    ("cluster", "reason"),
    [
        (view(), Reason.UNKNOWN_TOPIC),
        (view(healthy([1, 2]), deleting=frozenset({ORDERS})), Reason.TOPIC_BEING_DELETED),
        (view(topic()), Reason.UNKNOWN_PARTITION),
        (view(healthy([1, 2]), brokers=(1, 2)), Reason.UNKNOWN_BROKER),
        (view(healthy([1, 2]), controller=None), Reason.NO_CONTROLLER),
        (view(healthy([1, 2]), reassignment=make_request({0: [1]})), Reason.WAITING_FOR_OTHER_REASSIGNMENT),
        (
            view(topic((assign([5, 1, 2], [5], [1, 2]), lead(1, [1, 2])))),
            Reason.WAITING_FOR_OTHER_REASSIGNMENT,
        ),
    ],
)
def test_a_move_that_cannot_begin_waits_and_says_why(cluster: Snapshot, reason: Reason) -> None:
    plan = decide(reassignment({0: [2, 3]}), cluster, LOOK)
    assert plan.status.phase is ReassignmentPhase.PENDING
    assert plan.steps == ()
    assert ready(plan).reason is reason


def test_a_topic_that_comes_late_is_moved_then() -> None:
    targets = {0: [2, 3]}
    waiting = decide(reassignment(targets), view(), LOOK)
    plan = decide(reassignment(targets, status=status_of(waiting)), view(healthy([1, 2])), LOOK)
    assert list_asked(plan) == [{0: (2, 3)}]


class TestAfterARestart:
    """The intent is in the status; whether the request was written is not known."""

    TARGETS: ClassVar[dict[int, Sequence[int]]] = {0: [2, 3], 1: [3, 1]}
    BEFORE = view(healthy([1, 2], [2, 3]))

    def plan(self, cluster: Snapshot, context: Context = FRESH, targets: Any = None) -> Plan[Any]:
        wanted = targets or self.TARGETS
        return decide(reassignment(wanted, status=make_running_status(wanted, self.BEFORE)), cluster, context)

    def test_a_request_that_was_not_written_is_written(self) -> None:
        assert self.plan(self.BEFORE, LOOK).needs_fresh_view
        assert list_asked(self.plan(self.BEFORE)) == [{0: (2, 3), 1: (3, 1)}]

    def test_a_request_that_waits_in_the_cluster_is_not_written_again(self) -> None:
        plan = self.plan(replace(self.BEFORE, reassignment=make_request(self.TARGETS)))
        assert plan.steps == ()
        assert {row.step for row in plan.status.partitions} == {STEP.CATCHING_UP}

    def test_a_move_under_way_is_not_asked_for_again(self) -> None:
        moving = topic((assign([2, 3, 1], [3], [1]), lead(1, [1, 2])), (assign([3, 1, 2], [1], [2]), lead(2, [2, 3])))
        assert self.plan(view(moving)).steps == ()

    def test_a_move_that_is_over_is_complete(self) -> None:
        plan = self.plan(view(healthy([2, 3], [3, 1])))
        assert (plan.status.phase, plan.steps) == (ReassignmentPhase.COMPLETED, ())
        assert [row.original_replicas for row in plan.status.partitions] == [(1, 2), (2, 3)]

    def test_a_znode_that_is_in_the_way_is_waited_for_where_there_is_no_other_way(self) -> None:
        busy = replace(self.BEFORE, reassignment=make_request({7: [1]}))
        plan = self.plan(busy, BY_ZNODE)
        assert plan.steps == ()
        assert ready(plan).reason is Reason.WAITING_FOR_OTHER_REASSIGNMENT
        assert list_asked(self.plan(busy)) == [{0: (2, 3), 1: (3, 1)}]

    def test_a_znode_that_asks_for_some_is_not_written_beside(self) -> None:
        plan = self.plan(replace(self.BEFORE, reassignment=make_request({0: [2, 3]})), BY_ZNODE)
        assert (plan.steps, ready(plan).reason) == ((), Reason.PROGRESSING)


def make_moving_status(targets: dict[int, Sequence[int]], before: Snapshot) -> dict[str, Any]:
    """The status of a move whose partitions have all been seen under way."""
    seen = replace(before, reassignment=make_request(targets))
    return status_of(decide(reassignment(targets, status=make_running_status(targets, before)), seen, LOOK))


def test_a_move_that_another_tool_cancelled_fails_and_is_not_asked_for_again() -> None:
    targets: dict[int, Sequence[int]] = {0: [2, 3]}
    before = view(healthy([1, 2]))
    move = reassignment(targets, status=make_moving_status(targets, before))
    assert decide(move, before, LOOK).needs_fresh_view
    plan = decide(move, before, FRESH)
    assert (plan.status.phase, plan.steps) == (ReassignmentPhase.FAILED, ())
    assert ready(plan).reason is Reason.PARTITIONS_FAILED
    assert plan.status.condition(ConditionType.STALLED) is not None


def test_a_topic_deleted_during_the_move_fails_its_partitions_and_the_others_go_on() -> None:
    gone = {"topic": "gone", "partition": 0, "replicas": [2, 3]}
    move = reassignment({0: [2, 3]})
    both = move.model_copy(
        update={
            "spec": type(move.spec).model_validate(
                {
                    "clusterRef": {"name": "demo"},
                    "partitions": [{"topic": ORDERS, "partition": 0, "replicas": [2, 3]}, gone],
                }
            )
        }
    )
    before = view(healthy([1, 2]), healthy([1, 2], name="gone"))
    first = decide(both, before, LOOK)
    moving = topic((assign([2, 3, 1], [3], [1]), lead(1, [1, 2])))
    both = both.model_copy(update={"status": first.status})
    plan = decide(both, view(moving), replace(FRESH, done=first.steps))
    assert plan.status.phase is ReassignmentPhase.RUNNING
    assert {row.topic: row.step for row in plan.status.partitions} == {"gone": STEP.FAILED, ORDERS: STEP.CATCHING_UP}

    both = both.model_copy(update={"status": plan.status})
    plan = decide(both, view(healthy([2, 3])), FRESH)
    assert plan.status.phase is ReassignmentPhase.FAILED
    assert ready(plan).reason is Reason.TOPIC_DELETED_DURING_MOVE
    assert plan.status.counts is not None
    assert (plan.status.counts.done, plan.status.counts.failed) == (1, 1)


def test_what_is_done_stays_done_though_it_moves_on_later() -> None:
    targets: dict[int, Sequence[int]] = {0: [2, 3], 1: [3, 1]}
    before = view(healthy([1, 2], [2, 3]))
    half = view(topic((assign([2, 3]), lead(2, [2, 3])), (assign([3, 1, 2], [1], [2]), lead(2, [2, 3]))))
    first = decide(reassignment(targets, status=make_moving_status(targets, before)), half, LOOK)
    moved_on = view(topic((assign([5, 6]), lead(5, [5, 6])), (assign([3, 1, 2], [1], [2]), lead(2, [2, 3]))))
    plan = decide(reassignment(targets, status=status_of(first)), moved_on, FRESH)
    assert plan.steps == ()
    assert {row.partition: row.step for row in plan.status.partitions} == {0: STEP.DONE, 1: STEP.CATCHING_UP}


def test_a_long_move_lists_what_is_unfinished_first_and_counts_everything() -> None:
    replicas = [[1, 2]] * 700
    targets: dict[int, Sequence[int]] = {number: [2, 3] for number in range(700)}
    status = make_moving_status(targets, view(healthy(*replicas)))
    assert len(status["partitions"]) == 500
    halfway = [(assign([2, 3]), lead(2, [2, 3]))] * 690 + [(assign([2, 3, 1], [3], [1]), lead(1, [1, 2]))] * 10
    plan = decide(reassignment(targets, status=status), view(topic(*halfway)), FRESH)
    assert plan.steps == ()
    assert [row.partition for row in plan.status.partitions[:10]] == list(range(690, 700))
    assert plan.status.counts is not None
    assert (plan.status.counts.total, plan.status.counts.done, plan.status.counts.moving) == (700, 690, 10)

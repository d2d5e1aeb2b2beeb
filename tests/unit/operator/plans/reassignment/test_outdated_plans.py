"""A move that names the replicas that it was planned for does not begin from others, at its start and in its turns."""

from collections.abc import Sequence
from typing import Any

from controller_core.model.snapshot import Snapshot
from controller_operator.plans.outcome import Context, Plan
from controller_operator.plans.reassignment.planner import decide
from controller_operator.resources.conditions import Reason
from controller_operator.resources.reassignment import ReassignmentPhase
from tests.unit.operator.clusters import NOW, ORDERS, assign, healthy, lead, ready, reassignment, status_of, topic, view
from tests.unit.operator.plans.reassignment.test_reassignment import list_asked, make_request

FRESH = Context(now=NOW, is_view_fresh=True)
PHASE = ReassignmentPhase


class Planned:
    """A move of partitions of `orders` from [1, 2] to [4, 5], whose status is written after each look."""

    def __init__(self, partitions: int = 2, expected: Sequence[int] = (1, 2), **spec: Any) -> None:
        entries = [
            {"topic": ORDERS, "partition": number, "replicas": [4, 5], "expectedReplicas": list(expected)}
            for number in range(partitions)
        ]
        self.spec, self.status = {"partitions": entries, **spec}, dict[str, Any]()

    def look(self, cluster: Snapshot, context: Context = FRESH) -> Plan[Any]:
        plan = decide(reassignment({}, self.spec, status=self.status), cluster, context)
        self.status = status_of(plan)
        return plan


def test_it_begins_from_the_replicas_that_it_was_planned_for() -> None:
    plan = Planned().look(view(healthy([1, 2], [1, 2])))
    assert list_asked(plan) == [{0: (4, 5), 1: (4, 5)}]


def test_nothing_begins_if_a_partition_has_others_or_another_order_and_the_message_says_what_to_do() -> None:
    for now in ([1, 3], [2, 1]):
        plan = Planned().look(view(healthy([1, 2], now)))
        assert (plan.steps, plan.status.phase, ready(plan).reason) == ((), PHASE.PENDING, Reason.PLAN_OUTDATED)
        assert ready(plan).message == (
            f"orders-1 has replicas [{now[0]},{now[1]}] and not [1,2] as when its move was planned: make a new plan"
            " (kontroller plan), and apply that instead of this one"
        )


def test_a_suspended_one_is_refused_when_it_is_to_go_on() -> None:
    changed, move = view(healthy([1, 2], [1, 3])), Planned(suspend=True)
    assert move.look(changed).status.phase is PHASE.SUSPENDED
    move.spec["suspend"] = False
    assert ready(move.look(changed)).reason is Reason.PLAN_OUTDATED


def test_partitions_that_are_at_their_targets_already_do_not_count_as_changed() -> None:
    assert list_asked(Planned().look(view(healthy([4, 5], [1, 2])))) == [{1: (4, 5)}]
    assert Planned().look(view(healthy([4, 5], [4, 5]))).status.phase is PHASE.COMPLETED


def test_a_partition_that_still_moves_counts_with_the_replicas_that_it_moves_to() -> None:
    there = (assign([1, 2, 3], [1], [3]), lead(2, [2, 3]))
    elsewhere = (assign([1, 2, 3], [3], [1]), lead(1, [1, 2]))
    plan = Planned(1).look(view(topic(there)))
    assert (plan.steps, ready(plan).reason) == ((), Reason.WAITING_FOR_OTHER_REASSIGNMENT)
    assert ready(Planned(1).look(view(topic(elsewhere)))).reason is Reason.PLAN_OUTDATED


def test_a_partition_that_changes_while_it_waits_for_its_turn_fails_and_the_others_go_on() -> None:
    move = Planned(3, maxConcurrentPartitions=1)
    assert list_asked(move.look(view(healthy([1, 2], [1, 2], [1, 2])))) == [{0: (4, 5)}]
    plan = move.look(view(healthy([4, 5], [1, 3], [1, 2])))
    assert list_asked(plan) == [{2: (4, 5)}]
    assert [row.message for row in plan.status.partitions if row.step == "Failed"] == [
        "has replicas [1,3] and not [1,2] as when its move was planned"
    ]
    plan = move.look(view(healthy([4, 5], [1, 3], [4, 5])))
    assert (plan.status.phase, plan.status.counts.done, plan.status.counts.failed) == (PHASE.FAILED, 2, 1)
    assert ready(plan).reason is Reason.PARTITIONS_FAILED


def test_a_move_whose_partitions_all_change_before_their_requests_ends_as_outdated() -> None:
    move = Planned(2, maxConcurrentPartitions=1)
    move.look(view(healthy([1, 2], [1, 2])))
    plan = move.look(view(healthy([1, 3], [1, 3])))
    assert (plan.status.phase, ready(plan).reason) == (PHASE.FAILED, Reason.PLAN_OUTDATED)


def test_a_move_that_another_one_cancelled_is_not_outdated() -> None:
    move = Planned(1)
    move.look(view(healthy([1, 2])))
    move.look(view(healthy([1, 2]), reassignment=make_request({0: [4, 5]})))
    plan = move.look(view(healthy([1, 2])))
    assert (plan.status.phase, ready(plan).reason) == (PHASE.FAILED, Reason.PARTITIONS_FAILED)


def test_a_change_during_the_move_is_believed_of_a_fresh_view_alone() -> None:
    move = Planned(2, maxConcurrentPartitions=1)
    move.look(view(healthy([1, 2], [1, 2])))
    plan = move.look(view(healthy([4, 5], [1, 3])), Context(now=NOW))
    assert (plan.steps, plan.needs_fresh_view) == ((), True)


def test_a_requested_partition_that_others_sent_back_was_cancelled_and_is_not_outdated() -> None:
    move = Planned(1)
    before = view(healthy([1, 2]))
    move.look(before)
    move.look(view(healthy([1, 2]), reassignment=make_request({0: [4, 5]})))
    (row,) = move.look(before).status.partitions
    assert row.message == "was sent back to its original replicas: another tool cancelled the move"

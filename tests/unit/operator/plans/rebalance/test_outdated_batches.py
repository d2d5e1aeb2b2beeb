"""A batch whose partitions got other replicas after its plan is dropped, and the RebalancePlan makes a new plan."""

from datetime import timedelta
from typing import Any

import pytest

from controller_operator.kubernetes.object_store import StoredObject
from controller_operator.plans.outcome import CancelMove, Context, Plan
from controller_operator.plans.rebalance.looking import Look
from controller_operator.plans.rebalance.planner import decide
from controller_operator.plans.rebalance.run import Surroundings
from controller_operator.reconciling.applying import make_move
from controller_operator.resources import PartitionReassignment, RebalancePlan
from controller_operator.resources.conditions import Reason
from controller_operator.resources.schema import MAX_REPLICAS
from tests.unit.operator.clusters import NOW, healthy, raw, ready, rebalance_plan, view
from tests.unit.operator.plans.rebalance.test_decisions import (
    REQUIRED,
    TO_3,
    TWO_BATCHES,
    answer,
    later,
    make_owned,
    make_planned,
    make_view,
    see,
    start,
)

CHANGED = make_view([1, 3], [2, 1])
REFUSED = Reason.PLAN_OUTDATED


def make_batch(name: str, phase: str, reason: str = REFUSED, **metadata: Any) -> dict[str, PartitionReassignment]:
    """Return the PartitionReassignment of a batch, of which nothing has moved."""
    message = "orders-0 has replicas [1,3] and not [1,2] as when its move was planned"
    return make_owned(name, phase, 0, 2, says=(reason, message), **metadata)


class Begun:
    """A RebalancePlan whose first batch was created."""

    def __init__(self, **spec: Any) -> None:
        self.resource: RebalancePlan = rebalance_plan({"mode": "rebalance", **spec})
        plan = answer(self.resource, make_planned(TO_3))
        if not plan.steps:
            self.write(plan, approvedPlan=plan.status.plan_hash)
            plan = see(self.resource)
        self.write(plan)
        self.name = start(plan).name

    def write(self, plan: Plan[Any], **spec: Any) -> Plan[Any]:
        self.resource = later(self.resource, plan, **spec)
        return plan


def is_planning(plan: Plan[Any]) -> bool:
    """Return True if the plan asks for another plan of its object, and moves nothing."""
    return isinstance(plan.look, Look) and not plan.steps and not plan.status.moves and plan.status.phase == "Pending"


class TestABatch:
    def test_names_the_replicas_that_its_plan_was_made_from(self) -> None:
        step = start(answer(rebalance_plan(), make_planned(TWO_BATCHES)))
        made = make_move(StoredObject(raw("RebalancePlan", {"mode": "drain", "brokers": [2]})), step)
        assert made["spec"]["partitions"] == [
            {"topic": "orders", "partition": 0, "replicas": [3, 2], "expectedReplicas": [1, 2]}
        ]

    def test_may_leave_fewer_replicas_of_a_partition_with_more_than_an_object_can_ask_for(self) -> None:
        before, after = range(1, MAX_REPLICAS + 6), (1, 2, 3)
        planned = make_planned([(0, before, after, 0)])
        step = start(answer(rebalance_plan(), planned, view(healthy(before), brokers=before)))
        made = make_move(
            StoredObject(raw("RebalancePlan", {"mode": "replicationFactor", "replicationFactor": 3})), step
        )
        (target,) = PartitionReassignment.model_validate(made | {"metadata": {"name": "a", "namespace": "b"}}).targets
        assert (target.expected_replicas, target.replicas) == (tuple(before), after)

    @pytest.mark.parametrize("cluster", [CHANGED, make_view()], ids=["changed", "changed back"])
    def test_that_is_refused_is_deleted_and_then_another_plan_is_made(self, cluster: Any) -> None:
        begun = Begun()
        dropped = begun.write(see(begun.resource, cluster, moves=make_batch(begun.name, "Pending")))
        assert dropped.steps == (CancelMove(name=begun.name, why="its plan is outdated"),)
        assert (dropped.status.reassignment, dropped.status.moves, dropped.status.plan_hash) == (None, (), None)
        (notice,) = dropped.notices
        assert (notice.reason, notice.is_warning) == ("PlanOutdated", True)
        assert ("other replicas: orders-0" in notice.message) is (cluster is CHANGED)
        again = see(begun.resource, cluster)
        assert is_planning(again)
        assert (again.status.counts.done, again.status.counts.failed) == (0, 0)

    def test_that_waits_for_a_deleted_topic_is_deleted_and_planned_again(self) -> None:
        begun = Begun()
        without = view(brokers=(1, 2, 3))
        waiting = make_batch(begun.name, "Pending", Reason.UNKNOWN_TOPIC)
        dropped = begun.write(see(begun.resource, without, moves=waiting))
        assert dropped.steps == (CancelMove(name=begun.name, why="its plan is outdated"),)
        (notice,) = dropped.notices
        assert "partitions are deleted: orders-0" in notice.message
        assert is_planning(see(begun.resource, without))

    def test_that_has_begun_is_followed_to_its_end(self) -> None:
        begun = Begun()
        running = make_batch(begun.name, "Running", Reason.UNKNOWN_TOPIC)
        assert see(begun.resource, moves=running).status.reassignment == begun.name

    def test_that_failed_as_outdated_before_anything_moved_is_planned_again(self) -> None:
        begun = Begun()
        after = see(begun.resource, CHANGED, moves=make_batch(begun.name, "Failed"))
        assert is_planning(after)
        assert [each.reason for each in after.notices] == ["PlanOutdated"]

    def test_that_failed_otherwise_is_the_end(self) -> None:
        begun = Begun()
        end = see(begun.resource, CHANGED, moves=make_batch(begun.name, "Failed", Reason.PARTITIONS_FAILED))
        assert end.status.phase == "Failed"

    def test_that_could_not_be_created_is_planned_again_if_replicas_have_changed(self) -> None:
        begun = Begun()
        assert start(see(begun.resource)).name == begun.name
        after = see(begun.resource, CHANGED)
        assert is_planning(after)
        assert [each.reason for each in after.notices] == ["PlanOutdated"]

    def test_of_an_approved_plan_gives_way_to_a_plan_that_needs_approval(self) -> None:
        begun = Begun(**REQUIRED)
        begun.write(see(begun.resource, CHANGED, moves=make_batch(begun.name, "Pending")))
        assert is_planning(see(begun.resource, CHANGED))
        planned = answer(begun.resource, make_planned([(1, [2, 1], [2, 3], 0)]), CHANGED)
        assert (planned.status.phase, planned.steps) == ("AwaitingApproval", ())


class TestADroppedBatch:
    @pytest.mark.parametrize("reason", [REFUSED, Reason.PROGRESSING, Reason.PAUSED])
    def test_is_deleted_by_the_next_operator_if_the_last_one_died_before(self, reason: Reason) -> None:
        begun = Begun()
        begun.write(see(begun.resource, CHANGED, moves=make_batch(begun.name, "Pending")))
        again = see(begun.resource, CHANGED, moves=make_batch(begun.name, "Pending", reason))
        assert (again.steps, again.look) == ((CancelMove(name=begun.name, why="its plan is outdated"),), None)
        assert again.notices == ()

    def test_is_deleted_before_its_plan_ends(self) -> None:
        begun = Begun(limits={"maxMinutes": 30})
        around = Surroundings(moves=make_batch(begun.name, "Pending"))
        late = Context(now=NOW + timedelta(minutes=30))
        dropped = begun.write(decide(begun.resource, CHANGED, late, around))
        assert ([type(step) for step in dropped.steps], dropped.status.phase) == ([CancelMove], "Pending")
        assert decide(begun.resource, CHANGED, late, Surroundings()).status.phase == "Completed"

    def test_that_is_being_deleted_or_has_begun_is_left_alone(self) -> None:
        begun = Begun()
        begun.write(see(begun.resource, CHANGED, moves=make_batch(begun.name, "Pending")))
        going = make_batch(begun.name, "Pending", deletionTimestamp="2026-01-01T00:00:00Z")
        running = make_batch(begun.name, "Running", Reason.PROGRESSING)
        assert all(is_planning(see(begun.resource, CHANGED, moves=moves)) for moves in (going, running))

    def test_is_deleted_while_its_plan_is_suspended_and_nothing_else_begins(self) -> None:
        begun = Begun()
        begun.write(see(begun.resource), suspend=True)
        dropped = begun.write(see(begun.resource, CHANGED, moves=make_batch(begun.name, "Pending")))
        assert [type(step) for step in dropped.steps] == [CancelMove]
        planned = answer(begun.resource, make_planned([(1, [2, 1], [2, 3], 0)]), CHANGED)
        assert (planned.status.phase, planned.steps) == ("Suspended", ())

    def test_stays_while_its_plan_is_paused(self) -> None:
        begun = Begun()
        spec = begun.resource.spec.model_dump(by_alias=True, mode="json", exclude_none=True)
        status = begun.resource.status.model_dump(by_alias=True, mode="json", exclude_none=True)
        paused = rebalance_plan(spec, status=status, annotations={"kontroller.dev/pause": "true"})
        plan = see(paused, CHANGED, moves=make_batch(begun.name, "Pending"))
        assert (plan.steps, plan.status.reassignment, ready(plan).reason) == ((), begun.name, Reason.PAUSED)

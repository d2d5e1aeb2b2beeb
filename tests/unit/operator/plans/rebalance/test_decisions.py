"""RebalancePlan: what is asked of the planner, what of its answer runs, and when a person has to agree."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from controller_core.model.ids import BrokerId, PartitionId, TopicName
from controller_core.model.snapshot import Snapshot
from controller_operator.plans.outcome import Context, Plan, StartMove, Verdict
from controller_operator.plans.permission import Permission
from controller_operator.plans.rebalance.looking import Found, Look, Planned
from controller_operator.plans.rebalance.planner import decide
from controller_operator.plans.rebalance.run import Surroundings
from controller_operator.resources import PartitionReassignment, RebalancePlan
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.rebalancing.rebalance_plan import MAX_MOVES, PlannedMove, ResourceBalance
from controller_planner.goals import Mode
from tests.unit.operator.clusters import NOW, healthy, ready, reassignment, rebalance_plan, status_of, view

REQUIRED = {"approval": "Required"}
Moves = Sequence[tuple[int, Sequence[int], Sequence[int], int]]
"""Moves of partitions of `orders`: number, replicas before and after, and batch."""
TO_3: Moves = [(0, [1, 2], [3, 2], 0), (1, [2, 1], [2, 3], 0)]
TWO_BATCHES: Moves = [(0, [1, 2], [3, 2], 0), (1, [2, 1], [2, 3], 1)]


def make_view(*replicas: Sequence[int], **about: Any) -> Snapshot:
    return view(healthy(*(replicas or ([1, 2], [2, 1]))), brokers=(1, 2, 3), **about)


def make_planned(moves: Moves, left_out: tuple[str, ...] = ()) -> Planned:
    return Planned(
        look_time=NOW,
        snapshot_hash="abc",
        moves=tuple(
            PlannedMove(
                topic=TopicName("orders"),
                partition=PartitionId(number),
                before=tuple(map(BrokerId, before)),
                after=tuple(map(BrokerId, after)),
                bytes=10,
                reasons=("drain",),
                batch=batch,
            )
            for number, before, after, batch in moves
        ),
        bytes=10 * len(moves),
        resources=(ResourceBalance(name="disk", before_percent=150, after_percent=101),),
        unknown=("read traffic unknown",),
        left_out=left_out,
    )


def see(resource: RebalancePlan, cluster: Snapshot | None = None, **around: Any) -> Plan[Any]:
    return decide(resource, cluster or make_view(), Context(now=NOW), Surroundings(**around))


def look_of(resource: RebalancePlan, cluster: Snapshot | None = None, **around: Any) -> Look:
    look = see(resource, cluster, **around).look
    assert isinstance(look, Look)
    return look


def answer(resource: RebalancePlan, found: Planned | Verdict, cluster: Snapshot | None = None) -> Plan[Any]:
    """Return the decision when the planner has answered."""
    key = "planned" if isinstance(found, Planned) else "trouble"
    there: Mapping[str, Any] = {key: found}
    return see(resource, cluster, found=Found(look=look_of(resource, cluster), **there))


def later(resource: RebalancePlan, plan: Plan[Any], **spec: Any) -> RebalancePlan:
    """Return the object after a decision was written, with another spec."""
    whole = {**resource.spec.model_dump(by_alias=True, mode="json", exclude_none=True), **spec}
    return rebalance_plan(whole, status=status_of(plan))


def make_owned(
    name: str,
    phase: str,
    done: int,
    total: int,
    *,
    moving: int = 0,
    says: tuple[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **metadata: Any,
) -> dict[str, PartitionReassignment]:
    """Return the PartitionReassignment of a batch. `says`: the reason why it is not ready, and the message."""
    whole = {"phase": phase, "counts": {"total": total, "done": done, "moving": moving}, **(status or {})}
    if says is not None:
        about = {"observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        whole["conditions"] = [{"type": "Ready", "status": "False", "reason": says[0], "message": says[1], **about}]
    return {name: reassignment({0: [3, 2]}, spec, name=name, status=whole, **metadata)}


def start(plan: Plan[Any]) -> StartMove:
    (step,) = plan.steps
    assert isinstance(step, StartMove)
    return step


class TestTheQuestion:
    def test_nothing_moves_before_the_planner_has_answered(self) -> None:
        plan = see(rebalance_plan())
        assert (plan.status.phase, ready(plan).reason, plan.steps) == ("Pending", Reason.PROGRESSING, ())
        assert plan.status.condition(ConditionType.RECONCILING) is not None

    def test_it_has_the_mode_the_brokers_and_the_brokers_that_take_nothing(self) -> None:
        look = look_of(rebalance_plan({"brokers": [2], "betweenLooksSeconds": 7}), make_view(cordoned=frozenset({1})))
        assert (look.goals.mode, look.goals.brokers) == (Mode.DRAIN, (2,))
        assert look.closed == {1}
        assert (look.between_looks_s, look.goals.limits.max_moves) == (7, MAX_MOVES)

    def test_patterns_name_topics_that_the_cluster_has(self) -> None:
        cluster = view(*(healthy([1, 2], name=name) for name in ("orders-eu", "orders-us", "logs", "orders-old")))
        scope = {"topics": ["orders-*", "logs"], "excludeTopics": ["*-old"]}
        goals = look_of(rebalance_plan({"scope": scope}), cluster).goals
        assert goals.topics == ("logs", "orders-eu", "orders-old", "orders-us")
        assert goals.excluded_topics == ("orders-old",)

    def test_racks_are_those_of_the_spec(self) -> None:
        assert look_of(rebalance_plan({"scope": {"racks": ["a", "b"]}})).goals.racks == ("a", "b")
        assert look_of(rebalance_plan({"scope": {"topics": ["*"]}})).goals.racks is None

    def test_a_pattern_that_matches_nothing_needs_a_person(self) -> None:
        plan = see(rebalance_plan({"scope": {"topics": ["paymnets*"]}}))
        assert ready(plan).reason is Reason.UNKNOWN_TOPIC
        assert "paymnets*" in ready(plan).message
        assert plan.look is None

    def test_a_rebalance_leaves_topics_whose_replicas_a_kafkatopic_names(self) -> None:
        resource = rebalance_plan({"mode": "rebalance"})
        look = look_of(resource, find_pinned=lambda: ["orders", "elsewhere"])
        assert look.goals.excluded_topics == ("orders",)
        assert "driftPolicy Enforce" in look.notes[0]

    def test_a_relief_has_its_percentage_and_leaves_such_topics_as_well(self) -> None:
        resource = rebalance_plan({"mode": "relieve", "brokers": [2], "belowPercent": 80})
        look = look_of(resource, find_pinned=lambda: ["orders"])
        assert (look.goals.mode, look.goals.brokers, look.goals.below_percent) == (Mode.RELIEVE, (2,), 80)
        assert look.goals.excluded_topics == ("orders",)

    def test_goals_that_contradict_themselves_need_a_person(self) -> None:
        plan = see(rebalance_plan({"brokers": [1], "scope": {"excludeBrokers": [1]}}))
        assert ready(plan).reason is Reason.PLAN_IMPOSSIBLE
        assert ready(plan).message == "brokers are named and excluded: 1"

    def test_a_failure_holds_until_brokers_change(self) -> None:
        resource = rebalance_plan()
        trouble = Verdict.make_stalled(Reason.PLAN_IMPOSSIBLE, "add brokers")
        found = Found(look=look_of(resource), trouble=trouble)
        assert ready(see(resource, found=found)).message == "add brokers"
        more = view(healthy([1, 2], [2, 1]), brokers=(1, 2, 3, 4))
        assert ready(see(resource, more, found=found)).reason is Reason.PROGRESSING

    def test_the_answer_for_an_older_spec_or_another_cluster_does_not_count(self) -> None:
        resource = rebalance_plan()
        found = Found(look=look_of(resource), planned=make_planned(TO_3))
        assert not see(rebalance_plan(generation=2), found=found).steps
        assert not found.answers(look_of(resource, _view_another_cluster()))


def _view_another_cluster() -> Snapshot:
    known = make_view()
    return Snapshot(
        version=1,
        cluster_id="another",
        controller=known.controller,
        brokers=known.brokers,
        topics=known.topics,
    )


class TestWithoutApproval:
    def test_the_whole_plan_is_on_record_before_its_first_batch_begins(self) -> None:
        plan = answer(rebalance_plan({"throttle": {"bytesPerSecond": 5000}}), make_planned(TWO_BATCHES))
        status = status_of(plan)
        assert [each["partition"] for each in status["moves"]] == [0, 1]
        assert status["counts"] == {
            "moves": 2,
            "batches": 2,
            "bytes": 20,
            "done": 0,
            "failed": 0,
            "bytesCopied": 0,
            "expectedSeconds": 1,
        }
        assert status["resources"] == [{"name": "disk", "beforePercent": 150, "afterPercent": 101}]
        assert status["unknown"] == ["read traffic unknown"]
        step = start(plan)
        assert (status["reassignment"], step.bytes_per_second) == (step.name, 5000)
        assert [(str(tp), to) for tp, to in step.partitions] == [("orders-0", (3, 2))]

    def test_a_restarted_operator_creates_the_same_object(self) -> None:
        resource = rebalance_plan()
        plan = answer(resource, make_planned(TO_3))
        again = see(later(resource, plan))
        assert start(again) == start(plan)
        assert again.status == plan.status

    def test_plans_of_other_objects_have_other_names(self) -> None:
        names = {start(answer(rebalance_plan(uid=uid), make_planned(TO_3))).name for uid in ("a", "b")}
        assert len(names) == 2

    def test_after_a_batch_the_rest_is_planned_from_a_new_look(self) -> None:
        resource = rebalance_plan({"mode": "rebalance"})
        plan = answer(resource, make_planned(TWO_BATCHES))
        done = make_owned(start(plan).name, "Completed", 1, 1)
        after = see(later(resource, plan), make_view([3, 2], [2, 1]), moves=done)
        assert isinstance(after.look, Look)
        assert after.look.number == 1
        assert after.status.counts.done == 1
        assert after.status.counts.bytes_copied == 10
        assert (after.status.moves, after.status.reassignment) == ((), None)

    def test_the_last_batch_of_a_rebalance_is_its_end(self) -> None:
        resource = rebalance_plan({"mode": "rebalance"})
        plan = answer(resource, make_planned(TO_3))
        done = make_owned(start(plan).name, "Completed", 2, 2)
        end = see(later(resource, plan), make_view([3, 2], [2, 3]), moves=done)
        assert end.status.phase == "Completed"
        assert end.status.condition(ConditionType.COMPLETE) is not None
        assert [each.reason for each in end.notices] == ["PlanCompleted"]

    def test_a_relief_carries_out_all_batches_without_a_new_look(self) -> None:
        resource = rebalance_plan({"mode": "relieve", "brokers": [1]})
        plan = answer(resource, make_planned(TWO_BATCHES))
        first = start(plan)
        done = make_owned(first.name, "Completed", 1, 1)
        plan = see(later(resource, plan), make_view([3, 2], [2, 1]), moves=done)
        second = start(plan)
        assert (second.name != first.name, [tp.partition for tp, _ in second.partitions]) == (True, [1])
        done |= make_owned(second.name, "Completed", 1, 1)
        end = see(later(resource, plan), make_view([3, 2], [2, 3]), moves=done)
        assert (end.status.phase, ready(end).message) == ("Completed", "the plan is carried out; 2 partitions moved")

    @pytest.mark.parametrize(
        ("mode", "left_out"), [("drain", ()), ("relieve", ("broker 1 keeps 85 bytes",))], ids=["drain", "short relief"]
    )
    def test_a_drain_and_a_relief_that_falls_short_look_again(self, mode: str, left_out: tuple[str, ...]) -> None:
        resource = rebalance_plan({"mode": mode, "brokers": [1]})
        plan = answer(resource, make_planned(TO_3, left_out))
        done = make_owned(start(plan).name, "Completed", 2, 2)
        cluster = make_view([3, 2], [2, 3])
        after = see(later(resource, plan), cluster, moves=done)
        assert isinstance(after.look, Look)
        end = answer(later(resource, after), make_planned([]), cluster)
        assert (end.status.phase, ready(end).message) == (
            "Completed",
            "nothing is left to move; 2 partitions moved",
        )
        assert status_of(end)["resources"], "what was planned stays to be read"

    def test_a_relief_that_cannot_go_on_needs_a_person_who_reads_how_much_is_too_much(self) -> None:
        too_much = "broker 2 keeps 85 bytes, 5 more than 80 percent of its disks"
        plan = answer(rebalance_plan({"mode": "relieve", "brokers": [2]}), make_planned([], (too_much,)))
        assert (ready(plan).reason, ready(plan).message) == (Reason.PLAN_IMPOSSIBLE, too_much)

    def test_a_drain_that_cannot_go_on_needs_a_person_and_is_no_success(self) -> None:
        plan = answer(rebalance_plan(), make_planned([], ("orders-0 (drain): no broker has room for it",)))
        assert ready(plan).reason is Reason.PLAN_IMPOSSIBLE
        assert ready(plan).message == "orders-0 (drain): no broker has room for it"
        assert plan.status.condition(ConditionType.STALLED) is not None

    @pytest.mark.parametrize("limits", [{"maxMoves": 2}, {"maxBytes": 20}], ids=["moves", "bytes"])
    def test_limits_are_for_all_batches_together(self, limits: dict[str, int]) -> None:
        resource = rebalance_plan({"limits": limits})
        plan = answer(resource, make_planned(TO_3))
        done = make_owned(start(plan).name, "Completed", 2, 2)
        end = see(later(resource, plan), make_view([3, 2], [2, 3]), moves=done)
        assert end.status.phase == "Completed"
        assert "limits" in ready(end).message

    @pytest.mark.parametrize("approval", [{}, REQUIRED], ids=["planned again", "approved"])
    def test_no_batch_begins_after_the_last_minute(self, approval: dict[str, str]) -> None:
        resource = rebalance_plan({"limits": {"maxMinutes": 30}, **approval})
        plan = answer(resource, make_planned(TWO_BATCHES))
        resource = later(resource, plan, approvedPlan=plan.status.plan_hash)
        plan = see(resource)
        done = make_owned(start(plan).name, "Completed", 1, 1)
        resource, cluster = later(resource, plan), make_view([3, 2], [2, 1])
        ends = []
        for minutes in (29, 30):
            context = Context(now=NOW + timedelta(minutes=minutes))
            ends.append(decide(resource, cluster, context, Surroundings(moves=done)))
        assert (ends[0].look is not None or ends[0].steps != (), ends[0].status.phase != "Completed") == (True, True)
        assert (ends[1].look, ends[1].steps, ends[1].status.phase) == (None, (), "Completed")
        assert ready(ends[1]).message == "the limits of spec.limits are used up; 1 partition moved"

    def test_a_batch_takes_a_quarter_of_the_minutes_at_most(self) -> None:
        limits = [
            {"maxMinutes": 2},
            {"maxMinutes": 2, "maxBatchBytesPerBroker": 29},
            {"maxBatchBytesPerBroker": 99_999},
        ]
        looks = [look_of(rebalance_plan({"limits": each, "throttle": {"bytesPerSecond": 2_000}})) for each in limits]
        assert [look.goals.limits.max_batch_bytes_per_broker for look in looks] == [60_000, 29, 99_999]
        without_rate = look_of(rebalance_plan({"limits": {"maxMinutes": 2}}))
        assert without_rate.goals.limits.max_batch_bytes_per_broker is None

    def test_what_is_left_of_the_limits_is_the_limit_of_the_next_plan(self) -> None:
        resource = rebalance_plan({"limits": {"maxMoves": 5, "maxBytes": 100}})
        plan = answer(resource, make_planned(TO_3))
        done = make_owned(start(plan).name, "Completed", 2, 2)
        after = see(later(resource, plan), make_view([3, 2], [2, 3]), moves=done)
        assert isinstance(after.look, Look)
        assert (after.look.goals.limits.max_moves, after.look.goals.limits.max_bytes) == (3, 80)

    def test_some_partitions_that_fail_do_not_hinder_the_others(self) -> None:
        resource = rebalance_plan({"mode": "rebalance"})
        plan = answer(resource, make_planned(TO_3))
        failed = make_owned(start(plan).name, "Failed", 1, 2)
        after = see(later(resource, plan), make_view([3, 2], [2, 1]), moves=failed)
        assert isinstance(after.look, Look)
        assert (after.status.counts.done, after.status.counts.failed) == (1, 1)

    def test_a_batch_that_moves_nothing_is_the_end(self) -> None:
        resource = rebalance_plan()
        plan = answer(resource, make_planned(TO_3))
        end = see(later(resource, plan), moves=make_owned(start(plan).name, "Failed", 0, 2))
        assert (end.status.phase, ready(end).reason) == ("Failed", Reason.PARTITIONS_FAILED)
        assert end.status.condition(ConditionType.FAILED) is not None


class TestSomebodyElse:
    def test_who_deletes_the_reassignment_cancels_the_plan(self) -> None:
        resource = rebalance_plan()
        plan = answer(resource, make_planned(TO_3))
        seen = see(later(resource, plan), moves=make_owned(start(plan).name, "Running", 0, 2))
        assert seen.status.phase == "Running"
        end = see(later(resource, seen))
        assert (end.status.phase, ready(end).reason) == ("Cancelled", Reason.CANCELLED)

    def test_a_reassignment_that_is_gone_after_its_end_is_no_cancellation(self) -> None:
        resource = rebalance_plan({"mode": "rebalance"})
        plan = answer(resource, make_planned(TO_3))
        seen = see(later(resource, plan), moves=make_owned(start(plan).name, "Running", 0, 2))
        assert see(later(resource, seen), make_view([3, 2], [2, 3])).status.phase == "Completed"

    def test_a_reassignment_that_waits_says_why(self) -> None:
        resource = rebalance_plan()
        plan = answer(resource, make_planned(TO_3))
        said = {
            "type": "Ready",
            "status": "False",
            "reason": "PinnedByTopic",
            "message": "KafkaTopic shop/orders would move orders-0 back",
            "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        name = start(plan).name
        moves = {name: reassignment({0: [3, 2]}, name=name, status={"phase": "Pending", "conditions": [said]})}
        assert "KafkaTopic shop/orders" in ready(see(later(resource, plan), moves=moves)).message

    def test_a_pause_stops_everything_and_shows_what_would_come(self) -> None:
        paused = rebalance_plan(annotations={"kontroller.dev/pause": "true"})
        plan = see(paused)
        assert (plan.look, plan.steps, ready(plan).reason) == (None, (), Reason.PAUSED)

    def test_suspend_keeps_the_next_batch_from_beginning(self) -> None:
        plan = answer(rebalance_plan({"suspend": True}), make_planned(TO_3))
        assert (plan.status.phase, ready(plan).reason, plan.steps) == ("Suspended", Reason.SUSPENDED, ())

    def test_a_deleted_object_does_nothing_more(self) -> None:
        plan = see(rebalance_plan(deletionTimestamp="2026-01-01T00:00:00Z"))
        assert (plan.look, plan.steps) == (None, ())


class TestApproval:
    def test_nothing_moves_until_this_very_plan_is_approved(self) -> None:
        resource = rebalance_plan(REQUIRED)
        plan = answer(resource, make_planned(TWO_BATCHES))
        due = plan.status.plan_hash
        assert (plan.status.phase, plan.steps) == ("AwaitingApproval", ())
        assert f"set approvedPlan to {due}" in ready(plan).message
        other = see(later(resource, plan, approvedPlan="0123456789abcdef"))
        assert "approvedPlan 0123456789abcdef is another plan" in ready(other).message
        assert start(see(later(resource, plan, approvedPlan=due))).name

    def test_the_later_batches_of_an_approved_plan_run_as_approved(self) -> None:
        resource = rebalance_plan(REQUIRED)
        plan = answer(resource, make_planned(TWO_BATCHES))
        resource = later(resource, plan, approvedPlan=plan.status.plan_hash)
        first = see(resource)
        done = make_owned(start(first).name, "Completed", 1, 1)
        second = see(later(resource, first), make_view([3, 2], [2, 1]), moves=done)
        assert [str(tp) for tp, _ in start(second).partitions] == ["orders-1"]
        assert second.status.plan_hash == plan.status.plan_hash
        assert start(second).name != start(first).name

    @pytest.mark.parametrize(
        ("cluster", "why"),
        [
            (make_view([1, 3], [2, 1]), "partitions have other replicas: orders-0"),
            (make_view([1, 2]), "partitions are deleted: orders-1"),
            (view(healthy([1, 2], [2, 1]), brokers=(1, 2)), "brokers are down or take no replicas: 3"),
            (make_view(cordoned=frozenset({3})), "brokers are down or take no replicas: 3"),
        ],
        ids=["moved", "deleted", "down", "cordoned"],
    )
    def test_a_plan_of_another_cluster_than_the_present_one_is_made_again(self, cluster: Snapshot, why: str) -> None:
        resource = rebalance_plan(REQUIRED)
        plan = answer(resource, make_planned(TO_3))
        approved = later(resource, plan, approvedPlan=plan.status.plan_hash)
        after = see(approved, cluster)
        assert (after.steps, after.status.plan_hash) == ((), None)
        assert isinstance(after.look, Look)
        assert [each.reason for each in after.notices] == ["PlanOutdated"]
        assert why in after.notices[0].message

    def test_lower_limits_make_the_plan_again(self) -> None:
        resource = rebalance_plan(REQUIRED)
        plan = answer(resource, make_planned(TO_3))
        after = see(later(resource, plan, limits={"maxMoves": 1}, approvedPlan=plan.status.plan_hash))
        assert after.steps == ()
        assert "exceeds spec.limits" in after.notices[0].message


def test_a_namespace_with_a_topic_prefix_balances_no_cluster() -> None:
    refusal = Permission(namespace="shop", prefixes=("shop-",)).refuse(rebalance_plan())
    assert refusal is not None
    assert refusal.reason is Reason.TOPIC_PREFIX_REQUIRED


def test_the_reminder_of_an_approval_is_renewed_each_hour() -> None:
    resource = rebalance_plan(REQUIRED)
    plan = answer(resource, make_planned(TO_3))
    again = decide(later(resource, plan), make_view(), Context(now=NOW + timedelta(hours=2)), Surroundings())
    assert again.notices[0].count == 3

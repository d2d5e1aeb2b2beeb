"""Brokers are emptied by a plan that stands in the status from the first move on."""

from dataclasses import replace
from typing import Any

from controller_core.model.ids import BrokerId
from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.actions import SubmitReassignment
from controller_operator.plans.outcome import Context, Plan
from controller_operator.plans.permission import Permission
from controller_operator.plans.reassignment import drain_plan
from controller_operator.plans.reassignment.planner import decide
from controller_operator.resources import PartitionReassignment
from controller_operator.resources.conditions import Reason
from controller_operator.resources.reassignment import ReassignmentPhase
from tests.unit.operator.clusters import NOW, assign, broker, healthy, lead, raw, ready, status_of, topic, view

FRESH = replace(Context(now=NOW), is_view_fresh=True)


def make_drain(*brokers: int, status: dict[str, Any] | None = None, **spec: Any) -> PartitionReassignment:
    body = raw("PartitionReassignment", {"drainBrokers": [*brokers], **spec}, status=status)
    return PartitionReassignment.model_validate(body)


def look(move: PartitionReassignment, seen: Snapshot) -> Plan[Any]:
    return decide(move, seen, FRESH)


def list_asked(plan: Plan[Any]) -> list[dict[int, tuple[int, ...]]]:
    return [
        {tp.partition: to for tp, to in step.partitions.items()}
        for step in plan.steps
        if isinstance(step, SubmitReassignment)
    ]


def test_every_replica_on_the_brokers_goes_to_another_and_no_other_moves() -> None:
    plan = look(make_drain(1, 2), view(healthy([1, 2], [3, 4], [4, 1]), brokers=(1, 2, 3, 4, 5, 6)))
    assert plan.status.phase is ReassignmentPhase.RUNNING
    (moves,) = list_asked(plan)
    assert moves.keys() == {0, 2}
    assert set(moves[0]) == {5, 6}
    assert moves[2][0] == 4
    assert not {1, 2} & set(moves[2])
    assert [(each.partition, each.replicas) for each in plan.status.plan] == list(moves.items())


def test_a_broker_that_is_dead_can_be_emptied_too() -> None:
    plan = look(make_drain(1), view(topic((assign([1, 2]), lead(2, [2]))), brokers=(2, 3)))
    assert list_asked(plan) == [{0: (3, 2)}]


def test_the_plan_stays_as_it_began_whatever_changes_meanwhile() -> None:
    began = look(make_drain(1), view(healthy([1, 2], [1, 3]), brokers=(1, 2, 3, 4)))
    later = view(healthy([1, 2], [1, 3]), brokers=(1, 2, 3, 4, 5, 6))
    again = look(make_drain(1, status=status_of(began)), later)
    assert again.status.plan == began.status.plan
    assert list_asked(again) == list_asked(began)


def test_the_plan_is_only_shown_while_it_is_suspended_and_follows_the_cluster() -> None:
    shown = look(make_drain(1, suspend=True), view(healthy([1, 2]), brokers=(1, 2, 3)))
    assert shown.status.phase is ReassignmentPhase.SUSPENDED
    assert not shown.steps
    assert [each.replicas for each in shown.status.plan] == [(3, 2)]
    later = look(make_drain(1, suspend=True, status=status_of(shown)), view(healthy([1, 2], [1, 3]), brokers=(1, 2, 3)))
    assert len(later.status.plan) == 2
    begun = look(make_drain(1, status=status_of(later)), view(healthy([1, 2], [1, 3]), brokers=(1, 2, 3)))
    assert begun.status.phase is ReassignmentPhase.RUNNING


def test_a_broker_without_replicas_is_empty_already() -> None:
    plan = look(make_drain(6), view(healthy([1, 2])))
    assert plan.status.phase is ReassignmentPhase.COMPLETED
    assert ready(plan).reason is Reason.COMPLETED


def test_too_few_brokers_are_waited_for_and_said() -> None:
    plan = look(make_drain(1), view(healthy([1, 2]), brokers=(1, 2)))
    assert plan.status.phase is ReassignmentPhase.PENDING
    assert ready(plan).reason is Reason.NOT_ENOUGH_BROKERS
    assert "broker 1 cannot be emptied" in ready(plan).message
    assert "start more brokers" in ready(plan).message


def test_brokers_that_take_no_new_replicas_keep_theirs_and_get_none() -> None:
    cordoned = frozenset({BrokerId(3), BrokerId(4)})
    plan = look(make_drain(1), view(healthy([1, 2], [1, 3], [5, 1]), brokers=(1, 2, 3, 4, 5), cordoned=cordoned))
    (moves,) = list_asked(plan)
    assert moves == {0: (5, 2), 1: (2, 3), 2: (5, 2)}


def test_brokers_that_take_no_new_replicas_are_named_where_too_few_are_left() -> None:
    plan = look(make_drain(1), view(healthy([1, 2]), brokers=(1, 2, 3), cordoned=frozenset({BrokerId(3)})))
    assert ready(plan).reason is Reason.NOT_ENOUGH_BROKERS
    assert "all cordoned take no new replicas: 3" in ready(plan).message


def test_topics_that_are_being_deleted_are_left_alone() -> None:
    plan = look(make_drain(1), view(healthy([1, 2]), brokers=(1, 2, 3), deleting=frozenset({"orders"})))
    assert plan.status.phase is ReassignmentPhase.COMPLETED


def test_racks_are_kept_apart() -> None:
    racks = {number: broker(number, rack="ab"[number % 2]) for number in (1, 2, 3, 4)}
    seen = replace(view(healthy([1, 2])), brokers={each.id: each for each in racks.values()})
    assert list_asked(look(make_drain(1), seen)) == [{0: (3, 2)}]


def test_more_partitions_than_one_object_may_move_are_too_many(monkeypatch: Any) -> None:
    monkeypatch.setattr(drain_plan, "MAX_PARTITIONS", 1)
    monkeypatch.setattr(drain_plan, "drain", None)  # which would be computed for seconds, and in vain
    plan = look(make_drain(1), view(healthy([1, 2], [1, 2]), brokers=(1, 2, 3)))
    assert ready(plan).reason is Reason.TOO_LARGE
    assert ready(plan).message.startswith("2 partitions have replicas on broker 1, and one object can move 1:")
    assert not plan.steps


def test_who_is_held_to_a_prefix_empties_no_brokers() -> None:
    refusal = Permission(namespace="payments", prefixes=("payments.",)).refuse(make_drain(1))
    assert refusal is not None
    assert refusal.reason is Reason.TOPIC_PREFIX_REQUIRED
    assert "instead of drainBrokers" in refusal.message

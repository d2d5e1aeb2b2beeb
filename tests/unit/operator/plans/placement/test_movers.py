"""A KafkaTopic names the object that moved its replicas, as long as that exists."""

from dataclasses import replace
from typing import Any

import pytest

from controller_core.model.snapshot import Snapshot
from controller_operator.plans.outcome import Context, Plan
from controller_operator.plans.topic.case import Surroundings
from controller_operator.plans.topic.planner import decide
from controller_operator.resources import KafkaTopic, PartitionReassignment
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason
from tests.unit.operator.clusters import NOW, healthy, kafka_topic, ready, reassignment, status_of, view

FRESH = replace(Context(now=NOW), is_view_fresh=True)
BEGUN = {"phase": "Completed", "startTime": "2026-01-01T00:00:00Z"}
MOVED = view(healthy([3, 1], [1, 2]))


def look(resource: KafkaTopic, seen: Snapshot, *moves: PartitionReassignment) -> Plan[Any]:
    return decide(resource, seen, FRESH, Surroundings(find_movers=lambda: moves))


def settle(policy: str, **spec: Any) -> KafkaTopic:
    whole = {"partitions": None, "replicationFactor": None, "replicaAssignment": [[1, 2], [1, 2]],
             "driftPolicy": policy, **spec}  # fmt: skip
    return kafka_topic(whole, status=status_of(look(kafka_topic(whole), view(healthy([1, 2], [1, 2])))))


def move(name: str = "orders-to-3", status: dict[str, Any] | None = None, **about: Any) -> PartitionReassignment:
    return reassignment({0: [3, 1]}, name=name, uid=name, status=BEGUN if status is None else status, **about)


def test_a_reported_move_names_the_object_that_moved() -> None:
    plan = look(settle("Report"), MOVED, move())
    said = "moved by kpr/orders-to-3 and kept: replicaAssignment[0]: make the spec equal, or set driftPolicy to Enforce"
    assert (ready(plan).status, ready(plan).message) == (ConditionStatus.TRUE, said)
    drifted = plan.status.condition(ConditionType.DRIFTED)
    assert drifted is not None
    assert (drifted.status, drifted.reason, drifted.message) == (ConditionStatus.TRUE, Reason.DRIFTED, said)


@pytest.mark.parametrize(
    "moves",
    [(), (move(status={"phase": "Pending"}),), (reassignment({0: [5, 6]}, status=BEGUN),)],
    ids=["none is left", "it has not begun", "it moved it elsewhere"],
)
def test_what_no_object_has_moved_was_changed_elsewhere(moves: tuple[PartitionReassignment, ...]) -> None:
    assert ready(look(settle("Report"), MOVED, *moves)).message.startswith(
        "changed elsewhere and kept: replicaAssignment[0]: "
    )


def test_what_was_moved_and_what_was_changed_elsewhere_are_told_apart() -> None:
    resource = settle("Report")
    seen = view(healthy([3, 1], [1, 4]))
    assert ready(look(resource, seen, move())).message.startswith(
        "moved by kpr/orders-to-3 and kept: replicaAssignment[0]; changed elsewhere and kept: replicaAssignment[1]: "
    )


def test_an_object_of_another_namespace_is_named_with_it() -> None:
    assert (
        "moved by kpr/orders-to-3 of namespace ops and"
        in ready(look(settle("Report"), MOVED, move(namespace="ops"))).message
    )


def test_of_two_moves_to_the_same_place_the_one_that_began_last_is_named() -> None:
    later = move("again", {"phase": "Running", "startTime": "2026-01-02T00:00:00Z"})
    assert "moved by kpr/again and" in ready(look(settle("Report"), MOVED, later, move())).message


def test_what_is_put_right_is_not_blamed_on_others() -> None:
    (notice,) = look(settle("Enforce"), MOVED, move()).notices
    assert notice.message == "topic orders was moved by kpr/orders-to-3 and is corrected: replicaAssignment[0]"


def test_another_number_of_replicas_names_the_move_that_made_it() -> None:
    whole = {"driftPolicy": "Report"}
    resource = kafka_topic(whole, status=status_of(look(kafka_topic(whole), view(healthy([1, 2], [1, 2])))))
    grown = reassignment({0: [1, 2, 3]}, name="grow", status=BEGUN)
    plan = look(resource, view(healthy([1, 2, 3], [1, 2])), grown)
    assert ready(plan).message.startswith("moved by kpr/grow and kept: replicationFactor: ")


def test_moves_are_not_looked_for_where_no_replica_differs() -> None:
    def find() -> tuple[PartitionReassignment, ...]:
        raise AssertionError("thousands of topics are as their specs say")

    plan = decide(settle("Report"), view(healthy([1, 2], [1, 2])), FRESH, Surroundings(find_movers=find))
    assert ready(plan).reason is Reason.RECONCILED


def test_a_topic_without_a_replica_assignment_takes_no_placement_for_drift() -> None:
    resource = kafka_topic(status=status_of(look(kafka_topic(), view(healthy([1, 2], [2, 3])))))
    plan = look(resource, view(healthy([5, 6], [3, 4])), move())
    assert (plan.steps, ready(plan).reason, plan.status.drift) == ((), Reason.RECONCILED, ())

"""The arithmetic of a reassignment: from OAR by way of OAR + RAR to RAR, as in the example of seed 000."""

from collections.abc import Iterable

import pytest
from hypothesis import given

from controller_core.model.ids import BrokerId
from controller_core.model.metadata import LeaderAndIsr, ReplicaAssignment
from controller_core.model.reassignment import (
    ReassignmentStep,
    all_in_sync,
    begin_reassignment,
    complete_reassignment,
    dropped_replicas,
    step_of,
)
from tests.unit.model.strategies import replica_lists


def ids(numbers: Iterable[int]) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(number) for number in numbers)


def assigned(replicas: Iterable[int], adding: Iterable[int] = (), removing: Iterable[int] = ()) -> ReplicaAssignment:
    return ReplicaAssignment(replicas=ids(replicas), adding=ids(adding), removing=ids(removing))


def leadership(leader: int, isr: Iterable[int]) -> LeaderAndIsr:
    return LeaderAndIsr(leader=BrokerId(leader), isr=ids(isr))


@pytest.mark.parametrize(
    ("before", "target", "after"),
    [
        (assigned([1, 2, 3]), [4, 5, 6], assigned([4, 5, 6, 1, 2, 3], [4, 5, 6], [1, 2, 3])),
        (assigned([1, 2, 3]), [3, 4], assigned([3, 4, 1, 2], [4], [1, 2])),
        (assigned([1, 2, 3]), [3, 1, 2], assigned([3, 1, 2])),
        (assigned([1]), [1, 2], assigned([1, 2], [2])),
        (assigned([1, 2]), [2], assigned([2, 1], [], [1])),
        (assigned([4, 5, 6, 1, 2, 3], [4, 5, 6], [1, 2, 3]), [4, 7], assigned([4, 7, 1, 2, 3], [4, 7], [1, 2, 3])),
        (assigned([4, 5, 6, 1, 2, 3], [4, 5, 6], [1, 2, 3]), [1, 2, 3], assigned([1, 2, 3])),
    ],
    ids=["disjoint", "overlapping", "order only", "grow", "shrink", "another target", "back to the origin"],
)
def test_a_reassignment_begins_with_the_target_followed_by_what_is_removed(
    before: ReplicaAssignment, target: list[int], after: ReplicaAssignment
) -> None:
    assert begin_reassignment(before, ids(target)) == after
    assert complete_reassignment(after) == assigned(target)


def test_a_replaced_target_drops_what_was_being_added_for_the_former_one_only() -> None:
    running = begin_reassignment(assigned([1, 2, 3]), ids([4, 5, 6]))
    assert dropped_replicas(running, begin_reassignment(running, ids([4, 7]))) == ids([5, 6])
    assert dropped_replicas(running, begin_reassignment(running, ids([1, 2, 3]))) == ids([4, 5, 6])
    assert dropped_replicas(assigned([1, 2, 3]), running) == ()


def test_the_steps_are_the_rows_of_the_specification() -> None:
    target = ids([4, 5, 6])
    origin, full = assigned([1, 2, 3]), begin_reassignment(assigned([1, 2, 3]), target)
    rows = [
        (origin, leadership(1, [1, 2, 3]), ReassignmentStep.NOT_STARTED),
        (full, leadership(1, [1, 2, 3]), ReassignmentStep.WAITING_FOR_ISR),
        (full, leadership(1, [1, 2, 3, 4, 5]), ReassignmentStep.WAITING_FOR_ISR),
        (full, None, ReassignmentStep.WAITING_FOR_ISR),
        (full, leadership(1, [1, 2, 3, 4, 5, 6]), ReassignmentStep.MOVING_LEADER),
        (full, leadership(4, [1, 2, 3, 4, 5, 6]), ReassignmentStep.REMOVING_OLD_REPLICAS),
        (full, leadership(4, [4, 5, 6]), ReassignmentStep.REMOVING_OLD_REPLICAS),
        (complete_reassignment(full), leadership(4, [4, 5, 6]), ReassignmentStep.COMPLETED),
    ]
    assert [step_of(assignment, target, state) for assignment, state, _ in rows] == [step for _, _, step in rows]


def test_the_order_of_the_target_counts_for_being_complete() -> None:
    assert step_of(assigned([1, 2]), ids([2, 1]), leadership(1, [1, 2])) is ReassignmentStep.NOT_STARTED


def test_all_of_the_target_must_be_in_sync() -> None:
    assert all_in_sync(ids([2, 3]), leadership(1, [3, 1, 2]))
    assert not all_in_sync(ids([2, 4]), leadership(1, [3, 1, 2]))


@given(replica_lists(), replica_lists())
def test_origin_and_target_can_be_told_from_the_assignment_while_it_runs(
    origin: tuple[BrokerId, ...], target: tuple[BrokerId, ...]
) -> None:
    running = begin_reassignment(ReplicaAssignment(replicas=origin), target)
    assert running.target == target
    assert set(running.origin) == set(origin)
    assert set(running.replicas) == set(origin) | set(target)
    assert len(set(running.replicas)) == len(running.replicas)
    assert running.is_being_reassigned == (set(origin) != set(target))
    assert complete_reassignment(running) == ReplicaAssignment(replicas=target)


@given(replica_lists(), replica_lists(), replica_lists())
def test_replacing_a_target_is_as_if_the_former_had_never_been_but_for_what_it_drops(
    origin: tuple[BrokerId, ...], first: tuple[BrokerId, ...], second: tuple[BrokerId, ...]
) -> None:
    begun = ReplicaAssignment(replicas=origin)
    running = begin_reassignment(begun, first)
    replaced, direct = begin_reassignment(running, second), begin_reassignment(begun, second)
    assert replaced.target == direct.target
    assert set(replaced.adding) == set(direct.adding)
    assert set(replaced.removing) == set(direct.removing)
    assert set(dropped_replicas(running, replaced)) == set(first) - set(origin) - set(second)

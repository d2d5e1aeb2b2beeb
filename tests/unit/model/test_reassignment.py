"""The arithmetic of a reassignment, from OAR by way of OAR + RAR to RAR."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.model.ids import BrokerId
from controller_core.model.metadata import LeaderAndIsr, ReplicaAssignment
from controller_core.model.reassignment import (
    ReassignmentStep,
    all_in_sync,
    begin_reassignment,
    complete_reassignment,
    find_dropped_replicas,
    find_step,
)


def ids(*brokers: int) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(broker) for broker in brokers)


def assign(*replicas: int) -> ReplicaAssignment:
    return ReplicaAssignment(replicas=ids(*replicas))


def test_the_example_of_the_specification_begins_with_all_six_replicas() -> None:
    union = begin_reassignment(assign(1, 2, 3), ids(4, 5, 6))
    assert union == ReplicaAssignment(replicas=ids(4, 5, 6, 1, 2, 3), adding=ids(4, 5, 6), removing=ids(1, 2, 3))
    assert (union.origin, union.target) == (ids(1, 2, 3), ids(4, 5, 6))
    assert complete_reassignment(union) == assign(4, 5, 6)


def test_replicas_that_stay_are_neither_added_nor_removed() -> None:
    union = begin_reassignment(assign(1, 2, 3), ids(3, 4))
    assert (union.replicas, union.adding, union.removing) == (ids(3, 4, 1, 2), ids(4), ids(1, 2))


def test_another_order_of_the_same_replicas_adds_and_removes_nothing() -> None:
    union = begin_reassignment(assign(1, 2, 3), ids(2, 1, 3))
    assert union == assign(2, 1, 3)
    assert not union.is_being_reassigned


def test_another_target_on_the_way_keeps_the_origin_and_drops_what_only_the_former_needed() -> None:
    first = begin_reassignment(assign(1, 2), ids(3, 4))
    second = begin_reassignment(first, ids(4, 5))
    assert second == ReplicaAssignment(replicas=ids(4, 5, 1, 2), adding=ids(4, 5), removing=ids(1, 2))
    assert find_dropped_replicas(first, second) == ids(3)


def test_the_origin_as_target_takes_everything_back() -> None:
    first = begin_reassignment(assign(1, 2), ids(3, 4))
    back = begin_reassignment(first, ids(1, 2))
    assert back == assign(1, 2)
    assert find_dropped_replicas(first, back) == ids(3, 4)


@pytest.mark.parametrize(("isr", "is_over"), [((1, 2, 3), False), ((1, 4, 5), False), ((6, 5, 4, 1), True)])
def test_the_wait_is_over_when_all_of_the_target_is_in_sync(isr: tuple[int, ...], is_over: bool) -> None:
    assert all_in_sync(ids(4, 5, 6), LeaderAndIsr(leader=BrokerId(1), isr=ids(*isr))) is is_over


UNION = begin_reassignment(assign(1, 2, 3), ids(4, 5, 6))


@pytest.mark.parametrize(
    ("assignment", "leader", "isr", "step"),
    [
        (assign(1, 2, 3), 1, (1, 2, 3), ReassignmentStep.NOT_STARTED),
        (UNION, 1, (1, 2, 3), ReassignmentStep.WAITING_FOR_ISR),
        (UNION, 1, (1, 2, 3, 4, 5, 6), ReassignmentStep.MOVING_LEADER),
        (UNION, 4, (1, 2, 3, 4, 5, 6), ReassignmentStep.REMOVING_OLD_REPLICAS),
        (UNION, 4, (4, 5, 6), ReassignmentStep.REMOVING_OLD_REPLICAS),
        (assign(4, 5, 6), 4, (4, 5, 6), ReassignmentStep.COMPLETED),
    ],
)
def test_the_step_follows_from_what_zookeeper_holds(
    assignment: ReplicaAssignment, leader: int, isr: tuple[int, ...], step: ReassignmentStep
) -> None:
    assert find_step(assignment, ids(4, 5, 6), LeaderAndIsr(leader=BrokerId(leader), isr=ids(*isr))) is step


brokers = st.lists(st.integers(min_value=0, max_value=9).map(BrokerId), min_size=1, max_size=6, unique=True).map(tuple)


@given(brokers, brokers, brokers)
def test_what_is_cancelled_is_as_it_was_in_its_order_too(
    origin: tuple[BrokerId, ...], target: tuple[BrokerId, ...], other: tuple[BrokerId, ...]
) -> None:
    begun = begin_reassignment(ReplicaAssignment(replicas=origin), target)
    if begun.is_being_reassigned:
        assert begin_reassignment(begun, begun.origin) == ReplicaAssignment(replicas=origin)
        replaced = begin_reassignment(begun, other)
        assert replaced.origin == origin or not replaced.is_being_reassigned


@given(brokers, brokers)
def test_origin_and_target_can_be_read_from_the_union(
    origin: tuple[BrokerId, ...], target: tuple[BrokerId, ...]
) -> None:
    union = begin_reassignment(ReplicaAssignment(replicas=origin), target)
    assert union.target == target
    assert set(union.origin) == set(origin)
    assert union.origin == origin or not union.is_being_reassigned
    assert set(union.replicas) == set(origin) | set(target)
    assert len(set(union.replicas)) == len(union.replicas)

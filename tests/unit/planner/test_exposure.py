"""Brokers that failed together before: replicas of a partition avoid them, after all constraints."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.plan.checker import apply_moves, find_violations
from bench.plan.instances import INSTANCES, make_snapshot
from controller_planner.goals import Goals, InvalidGoals, Limits, Mode, Unsatisfiable
from controller_planner.loads import LoadSnapshot
from controller_planner.losses import Loss, count_pairs, make_result
from controller_planner.plan import Plan, Reason
from controller_planner.planning import make_plan
from tests.unit.planner.clusters import make_cluster, problems

RING = [[0, 1], [1, 2], [2, 3], [3, 0]] * 3
PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(4, 8), st.sampled_from([1.0, 7.0])), min_size=1, max_size=6)


def plan_for(snapshot: LoadSnapshot, goals: Goals) -> Plan:
    plan = make_plan(snapshot, goals)
    assert find_violations(plan) == []
    return plan


def drain(broker: int, *pairs: tuple[int, int, float]) -> Goals:
    return Goals(mode=Mode.DRAIN, brokers=(broker,), failed_together=pairs)


def rebalance(*pairs: tuple[int, int, float], **fields: Any) -> Goals:
    return Goals(failed_together=pairs, **fields)


def list_pairs(plan: Plan) -> set[frozenset[int]]:
    return {frozenset(replicas) for replicas in apply_moves(plan).values()}


def test_an_outage_of_all_brokers_hinders_no_rebalance() -> None:
    rows = [[number % 12, (number + 1) % 12, (number + 5) % 12] for number in range(240)]
    for row in [row for row in rows if 0 not in row][:5]:
        row[-1] = 0
    snapshot = make_cluster(rows, brokers=12)
    all_lost = tuple(count_pairs([Loss(brokers=tuple(range(12)))]))
    for goals in (rebalance(), rebalance(*all_lost)):
        plan = plan_for(snapshot, goals)
        relative = [(loads / plan.shares)[:, 0].max() for loads in (plan.loads_before, plan.loads_after)]
        assert relative[1] <= 1.05 < relative[0]


def test_only_what_pairs_do_not_have_in_common_counts() -> None:
    snapshot = make_cluster(RING, brokers=4)
    outages = Loss(brokers=(0, 1, 2, 3), times=5)
    plans = [
        plan_for(snapshot, rebalance(*count_pairs(losses)))
        for losses in ([outages, Loss(brokers=(0, 1))], [Loss(brokers=(0, 1))], [outages])
    ]
    moves = [[*plan.iterate_moves()] for plan in plans]
    assert moves[0] == moves[1] != []
    assert moves[2] == []


@pytest.mark.parametrize(("suspect", "chosen"), [(2, 3), (3, 2)])
def test_a_replica_that_moves_avoids_a_broker_that_failed_together_with_the_other_one(
    suspect: int, chosen: int
) -> None:
    plan = plan_for(make_cluster([[0, 1]] * 4, brokers=4), drain(1, (0, suspect, 1.0)))
    assert list_pairs(plan) == {frozenset({0, chosen})}
    assert all(move.reasons == (Reason.DRAIN,) for move in plan.iterate_moves())


def test_the_pair_that_failed_less_often_is_chosen() -> None:
    plan = plan_for(make_cluster([[0, 3]], brokers=4), drain(3, (0, 1, 9.0), (2, 0, 1.0)))
    assert list_pairs(plan) == {frozenset({0, 2})}


def test_racks_and_capacities_come_first() -> None:
    racks = ["a", "b", "b", "a"]
    assert list_pairs(plan_for(make_cluster([[0, 1]], brokers=4, racks=racks), drain(1, (0, 2, 1.0)))) == {
        frozenset({0, 2})
    }
    full = make_cluster([[0, 1], [3]], brokers=4, capacity_disk_bytes=[9, 9, 9, 1.5])
    assert frozenset({0, 2}) in list_pairs(plan_for(full, drain(1, (0, 2, 1.0))))


@pytest.mark.parametrize("mode", [Mode.REBALANCE, Mode.SPREAD])
def test_replicas_on_brokers_that_failed_together_part(mode: Mode) -> None:
    plan = plan_for(make_cluster(RING, brokers=4), rebalance((0, 1, 1.0), mode=mode))
    assert frozenset({0, 1}) not in list_pairs(plan)
    parted = [move for move in plan.iterate_moves() if set(move.before) == {0, 1}]
    assert len(parted) == 3
    assert all(Reason.EXPOSURE in move.reasons for move in parted)
    assert len(make_plan(make_result(plan), plan.goals)) == 0


def test_a_rebalance_parts_them_and_keeps_loads_even() -> None:
    plan = plan_for(make_cluster(RING, brokers=4), rebalance((0, 1, 1.0)))
    assert np.ptp(plan.loads_after[:, 0]) == 0
    instance = next(each for each in INSTANCES if each.name == "small")
    found = plan_for(make_snapshot(instance), rebalance((0, 1, 5.0), (1, 2, 1.0), (3, 4, 2.0)))
    assert [pair for pair in list_pairs(found) if {0, 1} <= pair or {1, 2} <= pair or {3, 4} <= pair] == []
    assert float(np.nanmax(found.loads_after / found.shares - found.bounds)) <= 0.001


def test_other_modes_move_nothing_for_that_alone() -> None:
    snapshot = make_cluster(RING, brokers=5, takes_replicas=[True] * 4 + [False])
    for goals in (Goals(mode=Mode.LEADERS_ONLY), Goals(mode=Mode.DRAIN, brokers=(4,))):
        assert len(plan_for(snapshot, replace(goals, failed_together=((0, 1, 1.0),)))) == 0


def test_without_another_place_replicas_stay() -> None:
    assert len(plan_for(make_cluster([[0, 1], [1, 0]] * 2, brokers=2), rebalance((0, 1, 1.0)))) == 0
    racks = ["a", "b", "b"]
    assert (
        len(plan_for(make_cluster([[0, 1], [2, 0]], brokers=3, racks=racks), rebalance((0, 1, 1.0), (0, 2, 1.0)))) == 0
    )


def test_limits_and_the_scope_hold() -> None:
    snapshot = make_cluster(RING, brokers=4, topics=("t", "u"), topic=[0] * 4 + [1] * 8)
    limited = plan_for(snapshot, rebalance((0, 1, 1.0), topics=("u",), limits=Limits(max_moves=1)))
    assert {move.topic for move in limited.iterate_moves()} == {"u"}
    assert len(limited) == 1


def test_the_hash_of_a_plan_depends_on_the_pairs_and_is_as_before_without_any() -> None:
    snapshot = make_cluster([[0, 1], [1, 2], [2, 0]], brokers=3)
    hashes = [make_plan(snapshot, rebalance(*pairs)).compute_hash() for pairs in ((), ((0, 1, 1.0),), ((0, 2, 1.0),))]
    assert len(set(hashes)) == 3
    assert "failed_together" not in repr(Goals())


def test_pairs_are_counted_in_losses_of_several_brokers() -> None:
    losses = [Loss(brokers=(3, 1, 2), times=2), Loss(brokers=(1, 2)), Loss(brokers=(5,))]
    assert [*count_pairs(losses)] == [(1, 2, 3.0), (1, 3, 2.0), (2, 3, 2.0)]


@pytest.mark.parametrize(
    ("pair", "why"),
    [
        ((0, 0, 1.0), "brokers 0 and 0 failed together 1.0 times; give a pair and a count"),
        ((0, 1, 0.0), "give a pair and a count"),
        ((0, 1, float("inf")), "give a pair and a count"),
        ((0, 9, 1.0), "the cluster has no broker 9"),
    ],
)
def test_pairs_that_make_no_sense_are_refused(pair: tuple[int, int, float], why: str) -> None:
    with pytest.raises(InvalidGoals, match=why):
        make_plan(make_cluster(RING, brokers=4), rebalance(pair))


@given(problems(), PAIRS)
def test_no_plan_violates_a_constraint_for_the_sake_of_pairs(
    problem: tuple[LoadSnapshot, Goals], pairs: list[tuple[int, int, float]]
) -> None:
    snapshot, goals = problem
    known = tuple(pair for pair in pairs if pair[1] < len(snapshot.brokers))
    try:
        plan = make_plan(snapshot, replace(goals, failed_together=known))
    except (InvalidGoals, Unsatisfiable):
        return
    assert find_violations(plan) == []


@given(problems([Mode.REBALANCE]), PAIRS)
def test_a_rebalance_of_its_own_result_is_empty_with_pairs_as_well(
    problem: tuple[LoadSnapshot, Goals], pairs: list[tuple[int, int, float]]
) -> None:
    snapshot, goals = problem
    known = tuple(pair for pair in pairs if pair[1] < len(snapshot.brokers))
    goals = replace(goals, failed_together=known, limits=Limits())
    try:
        plan = make_plan(snapshot, goals)
    except (InvalidGoals, Unsatisfiable):
        return
    if not plan.left_out:
        assert list(make_plan(make_result(plan), goals).iterate_moves()) == []

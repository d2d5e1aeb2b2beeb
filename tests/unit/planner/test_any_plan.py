"""Plans for random clusters: no hard constraint is violated at any time, and the same input gives the same plan."""

import numpy as np
from hypothesis import given

from bench.plan.checker import find_violations
from controller_planner.goals import Goals, InvalidGoals, Unsatisfiable
from controller_planner.loads import LoadSnapshot
from controller_planner.plan import Plan
from controller_planner.planning import make_plan
from tests.unit.planner.clusters import apply_plan, problems


def try_plan(snapshot: LoadSnapshot, goals: Goals) -> Plan | None:
    try:
        return make_plan(snapshot, goals)
    except (InvalidGoals, Unsatisfiable):
        return None


@given(problems())
def test_no_plan_violates_a_constraint(problem: tuple[LoadSnapshot, Goals]) -> None:
    plan = try_plan(*problem)
    assert plan is None or find_violations(plan) == []


@given(problems())
def test_the_same_snapshot_and_seed_give_the_same_plan(problem: tuple[LoadSnapshot, Goals]) -> None:
    hashes = {plan.compute_hash() if plan is not None else "" for plan in (try_plan(*problem), try_plan(*problem))}
    assert len(hashes) == 1


@given(problems())
def test_a_plan_of_its_own_result_is_empty(problem: tuple[LoadSnapshot, Goals]) -> None:
    snapshot, goals = problem
    plan = try_plan(snapshot, goals)
    if plan is None or plan.left_out or goals.limits.max_moves is not None:
        return
    again = try_plan(apply_plan(plan), goals)
    assert again is None or list(again.iterate_moves()) == []


@given(problems())
def test_the_loads_that_a_plan_promises_are_those_of_its_result(problem: tuple[LoadSnapshot, Goals]) -> None:
    plan = try_plan(*problem)
    if plan is None:
        return
    replicas = apply_plan(plan).partitions.replicas
    count = np.bincount(replicas[replicas >= 0], minlength=len(plan.snapshot.brokers))
    assert plan.loads_after[:, 0].tolist() == count.tolist()

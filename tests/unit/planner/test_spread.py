"""The mode spread: the replicas and leaders of each topic, on large clusters as well."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from bench.plan.checker import apply_moves, find_violations
from bench.plan.instances import INSTANCES, make_snapshot
from controller_planner.goals import Goals, InvalidGoals, Mode, Unsatisfiable
from controller_planner.loads import LoadSnapshot
from controller_planner.losses import make_result
from controller_planner.plan import Plan, Reason
from controller_planner.planning import make_plan
from tests.unit.planner.clusters import make_cluster, problems

SPREAD = Goals(mode=Mode.SPREAD)


def plan_for(snapshot: LoadSnapshot, goals: Goals = SPREAD) -> Plan:
    plan = make_plan(snapshot, goals)
    assert find_violations(plan) == []
    return plan


def count_leaders(plan: Plan) -> Mapping[str, Counter[int]]:
    """Return how many partitions of each topic each broker leads after the plan."""
    found: dict[str, Counter[int]] = {}
    for (topic, _), replicas in apply_moves(plan).items():
        found.setdefault(topic, Counter())[replicas[0]] += 1
    return found


def test_the_leaders_of_each_topic_are_spread_although_all_together_are_even() -> None:
    rows = [[0, 1]] * 4 + [[1, 0]] * 4
    snapshot = make_cluster(rows, brokers=2, topics=("t", "u"), topic=[0] * 4 + [1] * 4, number=[0, 1, 2, 3] * 2)
    plan = plan_for(snapshot)
    assert count_leaders(plan) == {"t": {0: 2, 1: 2}, "u": {0: 2, 1: 2}}
    assert plan.total_bytes == 0
    assert {move.reasons for move in plan.iterate_moves()} == {(Reason.TOPIC_SPREAD,)}
    assert len(plan) == 4, "no more change than must"


def test_a_broker_that_cannot_take_a_leader_passes_another_one_on() -> None:
    # Broker 0 leads four. It shares no partition with broker 2, which leads none.
    plan = plan_for(make_cluster([[0, 1]] * 3 + [[1, 2]] * 3, brokers=3))
    assert count_leaders(plan)["t"] == {0: 2, 1: 2, 2: 2}


def test_a_replica_that_lags_does_not_become_the_leader() -> None:
    snapshot = make_cluster([[0, 1]] * 4, brokers=2, in_sync=[[True, False]] * 4)
    assert len(plan_for(snapshot)) == 0


def test_the_smallest_replicas_of_a_topic_leave() -> None:
    plan = plan_for(make_cluster([[0]] * 4, brokers=2, size_bytes=[9.0, 1.0, 8.0, 2.0]))
    assert sorted(move.partition for move in plan.iterate_moves()) == [1, 3]


@pytest.mark.parametrize("name", ["small", "few large", "factor 2"])
def test_a_large_cluster_is_spread_and_a_plan_of_its_own_result_is_empty(name: str) -> None:
    instance = next(each for each in INSTANCES if each.name == name)
    snapshot = make_snapshot(instance)
    plan = plan_for(snapshot)
    taken = {topic: -(-counts.total() // instance.brokers) for topic, counts in count_leaders(plan).items()}
    over = sum(
        max(number - taken[topic], 0) for topic, counts in count_leaders(plan).items() for number in counts.values()
    )
    assert over <= 0.01 * instance.partitions
    assert len(make_plan(make_result(plan), SPREAD)) == 0


def test_next_leaders_that_are_uneven_do_not_keep_topics_from_being_spread() -> None:
    rows = [[at % 5, (at + 1) % 5, (at + 2) % 5] for at in range(200)] + [[0, 1, 2]] * 2
    topic = np.repeat([0, 1], [200, 2])
    number = np.concatenate([np.arange(200), np.arange(2)])
    plan = plan_for(make_cluster(rows, brokers=5, topics=("t", "u"), topic=topic, number=number))
    assert max(count_leaders(plan)["u"].values()) == 1
    held = Counter(broker for (name, _), replicas in apply_moves(plan).items() if name == "u" for broker in replicas)
    assert max(held.values()) <= 2


@given(problems([Mode.SPREAD]))
def test_a_spread_of_its_own_result_is_empty(problem: tuple[LoadSnapshot, Goals]) -> None:
    snapshot, goals = problem
    goals = replace(goals, limits=SPREAD.limits)
    try:
        plan = make_plan(snapshot, goals)
    except (InvalidGoals, Unsatisfiable):
        return
    assert find_violations(plan) == []
    if not plan.left_out:
        assert len(make_plan(make_result(plan), goals)) == 0

"""The bars of plans: what no plan can avoid is no miss, and what is above it is one."""

from dataclasses import replace

import numpy as np
import pytest

from bench.plan.bars import Result, compute_excess, find_missed, find_missed_backtest
from bench.plan.instances import INSTANCES, Instance, make_snapshot
from bench.plan.optimum import compute_excess_bound, solve_exactly
from controller_planner.goals import Mode
from controller_planner.planning import make_plan
from tests.unit.planner.clusters import make_cluster

TINY = Instance(name="t", partitions=4, brokers=2, racks=1)
RELIEVE = Instance(name="r", partitions=4, brokers=2, racks=1, mode=Mode.RELIEVE, named=1)


def test_leaders_that_cannot_be_divided_force_an_excess_on_any_plan() -> None:
    snapshot = make_cluster([[0, 1]] * 4, brokers=2, out_bytes_per_second=[10, 1, 1, 1], in_bytes_per_second=[0] * 4)
    plan = make_plan(snapshot)
    least = compute_excess_bound(plan)
    assert least == pytest.approx(1 / 6.5), "whoever leads the partition that sends 10 leads another one, too"
    assert solve_exactly(plan).excess == pytest.approx(least)
    assert compute_excess(plan) == pytest.approx(least)


def test_leaders_that_can_be_divided_force_nothing() -> None:
    assert compute_excess_bound(make_plan(make_cluster([[0, 1]] * 4, brokers=2))) == 0


@pytest.mark.parametrize(
    ("excess", "missed"), [(0.5, []), (0.6, ["t: 0.600 above the bounds in sum; the least is 0.500"])]
)
def test_an_excess_that_no_plan_can_avoid_is_the_bar_for_the_balance(excess: float, missed: list[str]) -> None:
    over = np.array([0, 0, 0, excess, 0])
    result = Result(instance=TINY, over_bound=over, balance=1 + over, excess=excess, least_excess=0.5)
    assert list(find_missed(result)) == missed
    assert list(find_missed(replace(result, least_excess=0.0))) == [
        f"t: out {1 + excess:.3f} of the share, {excess:.3f} above the bound"
    ]


def test_a_relief_is_held_to_the_fewest_bytes_and_not_to_an_even_cluster() -> None:
    over = np.full(5, 0.5)
    result = Result(instance=RELIEVE, over_bound=over, balance=1 + over, total_bytes=101.0, least_bytes=100.0)
    assert list(find_missed(result)) == []
    assert list(find_missed(replace(result, total_bytes=102.0))) == [
        "r: 1.020 times the bytes of the bound; the bar is 1.01"
    ]


def test_each_instance_makes_the_goals_of_its_mode() -> None:
    for instance in INSTANCES:
        assert (instance.goals.mode, len(instance.goals.brokers)) == (instance.mode, instance.named)
    relief = next(instance for instance in INSTANCES if instance.mode is Mode.RELIEVE)
    small = replace(relief, partitions=2_000)
    plan = make_plan(make_snapshot(small), small.goals)
    assert 0 < len(plan) < 2_000
    assert plan.left_out == ()


def test_a_thousand_losses_have_three_seconds() -> None:
    assert list(find_missed_backtest("b", 2.9)) == []
    assert list(find_missed_backtest("b", 3.1)) == ["b: 3.10 seconds for a backtest; the bar is 3"]


@pytest.mark.parametrize(
    ("most", "missed"), [(53.0, []), (54.0, ["t: one broker takes over 54 leaders of another; the bar is 53"])]
)
def test_a_bar_for_leaders_is_named_as_the_largest_number_that_meets_it(most: float, missed: list[str]) -> None:
    result = Result(instance=TINY, over_bound=np.zeros(5), balance=np.ones(5), next_leaders=(most, 53.5))
    assert list(find_missed(result)) == missed
